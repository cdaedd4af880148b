"""Decoding bodies. A large one is decoded in a thread, element by element, while other requests are answered.

One call of the decoder for a body of some megabytes would keep the interpreter for a tenth of a second, in whichever
thread it is made.
"""

import asyncio
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

LARGE_BYTES = 65_536

Convert = Callable[[Any, str], Any]
"""Turns a value of the loose type into one of the strict type; the text says where it is, for errors."""


class BodyDecoder:
    """Decodes bodies of one type.

    >>> from superarm.service.schemas import TellBody
    >>> decoder = BodyDecoder(TellBody)
    >>> decoder.decode_in_pieces(b'{"outcome": [[1, null]]}') == decoder.decode_at_once(b'{"outcome": [[1, null]]}')
    True
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self.decode_at_once = msgspec.json.Decoder(kind).decode
        self._conversions: dict[str, Convert] = {}
        hints, fields = get_type_hints(kind, include_extras=True), []
        for field in msgspec.structs.fields(kind):
            loose, convert = _loosen(hints[field.name])
            if convert is not None:
                self._conversions[field.name] = convert
            fields.append((field.name, loose, msgspec.UNSET) if not field.required else (field.name, loose))
        required_first = sorted(fields, key=len)
        loose_kind = msgspec.defstruct(f"Loose{kind.__name__}", required_first, forbid_unknown_fields=True)
        self._loose = msgspec.json.Decoder(loose_kind)

    async def decode(self, body: bytes) -> Any:
        """The body; ``msgspec.ValidationError`` says what does not fit."""
        if len(body) < LARGE_BYTES:
            return self.decode_at_once(body)
        return await asyncio.to_thread(self.decode_in_pieces, body)

    def decode_in_pieces(self, body: bytes) -> Any:
        """The same as ``decode_at_once``, slower, in many short calls of the decoder."""
        loose = self._loose.decode(body)
        given = {}
        for name in loose.__struct_fields__:
            value = getattr(loose, name)
            if value is not msgspec.UNSET:
                convert = self._conversions.get(name)
                given[name] = value if convert is None else convert(value, f".{name}")
        return self._kind(**given)


def _loosen(hint: Any) -> tuple[Any, Convert | None]:
    """A type that leaves elements of lists and values of dictionaries undecoded, and how to decode them."""
    origin = get_origin(hint)
    if origin is Annotated:
        inner, *constraints = get_args(hint)
        loose, convert = _loosen(inner)
        return (hint, None) if convert is None else (Annotated[(loose, *constraints)], convert)
    if origin in (Union, types.UnionType):
        parts = [_loosen(part) for part in get_args(hint)]
        found = [convert for _, convert in parts if convert is not None]
        if len(found) != 1:
            return hint, None
        convert = found[0]
        return Union[tuple(loose for loose, _ in parts)], lambda v, at: convert(v, at) if _is_plain(v) else v  # noqa: UP007
    if origin is list:
        decode = msgspec.json.Decoder(get_args(hint)[0]).decode
        return list[msgspec.Raw], lambda raws, at: [_decode(decode, raw, f"{at}[{n}]") for n, raw in enumerate(raws)]
    if origin is dict:
        key, value = get_args(hint)
        decode = msgspec.json.Decoder(value).decode
        return dict[key, msgspec.Raw], lambda raws, at: {  # type: ignore[valid-type]
            name: _decode(decode, raw, f"{at}[...]") for name, raw in raws.items()
        }
    return hint, None


def _is_plain(value: Any) -> bool:
    return isinstance(value, (list, dict))


def _decode(decode: Callable[[Any], Any], raw: Any, at: str) -> Any:
    try:
        return decode(raw)
    except msgspec.ValidationError as error:
        said = str(error)
        place = said.replace(" - at `$", f" - at `${at}") if " - at `$" in said else f"{said} - at `${at}`"
        raise msgspec.ValidationError(place) from None
