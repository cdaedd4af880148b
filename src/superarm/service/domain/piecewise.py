"""Decoding long JSON in many short calls of the decoder.

One call of the decoder for some megabytes keeps the interpreter, and with it every other thread, for a tenth of a
second. Here long lists, dictionaries and structs are decoded part by part, with the same result.
"""

import functools
import re
import types
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

PIECE_BYTES = 16_384
"""What is shorter is decoded by one call; elements of a list are joined until they are as long."""

Piece = bytes | str | msgspec.Raw

Decode = Callable[[Piece, str], Any]
"""Decodes a piece; the text says where it is in the whole, for errors."""


class PiecewiseDecoder:
    """Decodes JSON of one type, at once or in pieces.

    >>> decoder = PiecewiseDecoder(dict[str, list[int]])
    >>> decoder.decode_in_pieces(b'{"a": [1, 2]}') == decoder.decode_at_once(b'{"a": [1, 2]}')
    True
    """

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self.decode_at_once = msgspec.json.Decoder(kind).decode

    @functools.cached_property
    def _decode_parts(self) -> Decode:
        """Decodes a long piece; made when the first one comes."""
        return _find_way(self._kind) or functools.partial(_decode, self.decode_at_once)

    def decode_in_pieces(self, body: Piece, at: str = "") -> Any:
        """The same as ``decode_at_once``, slower, in many short calls."""
        if _size(body) < PIECE_BYTES:
            return _decode(self.decode_at_once, body, at)
        return self._decode_parts(body, at)


def _size(piece: Piece) -> int:
    return len(piece) if isinstance(piece, (bytes, str)) else memoryview(piece).nbytes


def _decode(decode: Callable[[Any], Any], body: Piece, at: str) -> Any:
    """Decode by one call; an error names the place in the whole, not the one in the piece."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        said = str(error)
        found = _PLACE.search(said)
        place = f"{said[: found.end()]}{at}{said[found.end() :]}" if found else f"{said} - at `${at}`" if at else said
        raise msgspec.ValidationError(place) from None


_PLACE = re.compile(r" - at (?:`key` in )?`\$(?=[^`]*`$)")
"""Where msgspec begins to say at which place of the body it has found an error."""


def _find_way(kind: Any) -> Decode | None:
    """How long values of a type are decoded part by part; None if they are not."""
    inner, *constraints = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    origin, parts = get_origin(inner), get_args(inner)
    if origin in (Union, types.UnionType):
        return functools.partial(_decode_union, _UnionParts(parts))
    if origin is list or (origin is tuple and parts[1:] == (Ellipsis,)):
        return functools.partial(_decode_list, _ListParts(origin, parts[0], constraints))
    if origin is dict:
        return functools.partial(_decode_dictionary, _DictionaryParts(parts[0], parts[1], constraints))
    if _is_struct(inner) and not inner.__struct_config__.array_like:
        return functools.partial(_decode_struct, _StructParts(inner))
    return None


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _decoder(kind: Any, constraints: list[Any]) -> Callable[[Any], Any]:
    return msgspec.json.Decoder(Annotated[(kind, *constraints)] if constraints else kind).decode


class _ListParts:
    """The decoders of a list or tuple: of its elements undecoded, of one element, and of several."""

    def __init__(self, make: type, element: Any, constraints: list[Any]) -> None:
        self.make, self.raws = make, _decoder(list[msgspec.Raw], constraints)
        self.one, self.several = PiecewiseDecoder(element), _decoder(list[element], [])

    def decode_several(self, raws: list[Any], first: int, at: str) -> list[Any]:
        """Short elements by one call; if that fails, one by one, to say which is wrong."""
        try:
            return list(_decode(self.several, b"[" + b",".join(raws) + b"]", at))
        except msgspec.ValidationError:
            return [self.one.decode_in_pieces(raw, f"{at}[{n}]") for n, raw in enumerate(raws, first)]


def _decode_list(parts: _ListParts, body: Piece, at: str) -> Any:
    found = list[Any]()
    for group in _group(_decode(parts.raws, body, at)):
        if len(group) == 1:
            found.append(parts.one.decode_in_pieces(group[0], f"{at}[{len(found)}]"))
        else:
            found += parts.decode_several(group, len(found), at)
    return found if parts.make is list else tuple(found)


def _group(raws: list[Any]) -> Iterator[list[Any]]:
    """Elements that follow one another, together shorter than ``PIECE_BYTES`` if they are more than one."""
    group, size = list[Any](), 0
    for raw in raws:
        length = _size(raw)
        if group and size + length >= PIECE_BYTES:
            yield group
            group, size = [], 0
        group.append(raw)
        size += length
    if group:
        yield group


KEYS_AT_ONCE = 1_000
"""So many keys of a dictionary are checked by one call."""


class _DictionaryParts:
    """The decoders of a dictionary with text as keys: of its values undecoded, and of a value; and a check of keys."""

    def __init__(self, key: Any, value: Any, constraints: list[Any]) -> None:
        self.raws, self.value = _decoder(dict[str, msgspec.Raw], constraints), PiecewiseDecoder(value)
        self._keys: Any = dict[key, None]

    def check(self, keys: dict[str, Any]) -> None:
        """Refuse keys as the decoder would."""
        msgspec.convert(keys, self._keys)


def _decode_dictionary(parts: _DictionaryParts, body: Piece, at: str) -> Any:
    found = _decode(parts.raws, body, at)
    keys = list(found)
    for n in range(0, len(keys), KEYS_AT_ONCE):
        _decode(parts.check, dict.fromkeys(keys[n : n + KEYS_AT_ONCE]), at)  # type: ignore[arg-type]
    return {name: parts.value.decode_in_pieces(raw, f"{at}[...]") for name, raw in found.items()}


class _StructParts:
    """The decoders of a struct: of its fields undecoded, and of each field by its name."""

    def __init__(self, kind: type[msgspec.Struct]) -> None:
        self.kind, config = kind, kind.__struct_config__
        hints, raws = get_type_hints(kind, include_extras=True), list[Any]()
        self.fields = list[tuple[str, str, PiecewiseDecoder]]()
        for field in msgspec.structs.fields(kind):
            default = msgspec.NODEFAULT if field.required else msgspec.UNSET
            held = msgspec.Raw if field.required else msgspec.Raw | msgspec.UnsetType
            raws.append((field.name, held, msgspec.field(name=field.encode_name, default=default)))
            self.fields.append((field.name, field.encode_name, PiecewiseDecoder(hints[field.name])))
        made: Any = msgspec.defstruct(
            f"Raw{kind.__name__}",
            raws,
            tag=config.tag,
            tag_field=config.tag_field,
            forbid_unknown_fields=config.forbid_unknown_fields,
            kw_only=True,
        )
        self.raws = msgspec.json.Decoder(made).decode


def _decode_struct(parts: _StructParts, body: Piece, at: str) -> Any:
    raws, given = _decode(parts.raws, body, at), dict[str, Any]()
    for name, written, decoder in parts.fields:
        raw = getattr(raws, name)
        if raw is not msgspec.UNSET:
            given[name] = decoder.decode_in_pieces(raw, f"{at}.{written}")
    return parts.kind(**given)


class _UnionParts:
    """The decoders of a union's types: by the first character of a value, and of structs by their tag."""

    def __init__(self, kinds: tuple[Any, ...]) -> None:
        self.whole = _decoder(Union[kinds], [])  # noqa: UP007
        self.array = [PiecewiseDecoder(kind) for kind in kinds if _origin(kind) in (list, tuple)]
        objects = [kind for kind in kinds if _is_struct(kind) or _origin(kind) is dict]
        self.object = [PiecewiseDecoder(kind) for kind in objects]
        self.tagged = dict[Any, PiecewiseDecoder]()
        self.read_tag: Any = None
        if len(objects) > 1:  # msgspec allows only structs then, all with one tag field
            tag_field = objects[0].__struct_config__.tag_field
            self.tagged = {kind.__struct_config__.tag: PiecewiseDecoder(kind) for kind in objects}
            self.read_tag = msgspec.json.Decoder(
                msgspec.defstruct("Tag", [("tag", Any, msgspec.field(name=tag_field))])
            )

    def find(self, body: Piece) -> PiecewiseDecoder | None:
        """The decoder of a value; None if it is none of the types that are decoded in pieces."""
        head = body[:64] if isinstance(body, (bytes, str)) else bytes(memoryview(body)[:64])
        start = head.lstrip()[:1]
        found = self.object if start in (b"{", "{") else self.array if start in (b"[", "[") else []
        if self.read_tag is not None and found is self.object:
            try:
                return self.tagged.get(self.read_tag.decode(body).tag)
            except (msgspec.ValidationError, TypeError):
                return None
        return found[0] if len(found) == 1 else None


def _origin(kind: Any) -> Any:
    return get_origin(get_args(kind)[0] if get_origin(kind) is Annotated else kind)


def _decode_union(parts: _UnionParts, body: Piece, at: str) -> Any:
    found = parts.find(body)
    return _decode(parts.whole, body, at) if found is None else found.decode_in_pieces(body, at)
