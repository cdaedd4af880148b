"""Fields of named tuples that kernels may read under old names; the interfaces of numba that this needs."""

# mypy: disable-error-code="no-untyped-call"
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numba
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_getattr


def find_fields(renamed: Mapping[type, Mapping[str, str]], found: Callable[[type, str, str], None]) -> None:
    """Let kernels read the fields of named tuples under old names, ``{tuple: {old: new}}``; ``found`` is told of each.

    A field is found in two steps: its type, which is None for any other tuple, so that the search goes on, and the code
    that reads it, which every tuple with a field of that name is given.
    """

    class OldFields(AttributeTemplate):
        key = numba.types.NamedTuple

        def generic_resolve(self, value: Any, attr: str) -> Any:  # type: ignore[override]
            new = renamed.get(value.instance_class, {}).get(attr)
            if new is None:
                return None
            found(value.instance_class, attr, new)
            return value.types[value.fields.index(new)]

    infer_getattr(OldFields)

    def read(context: Any, builder: Any, kind: Any, value: Any, old: str) -> Any:
        index = kind.fields.index(old if old in kind.fields else renamed[kind.instance_class][old])
        return impl_ret_borrowed(context, builder, kind[index], builder.extract_value(value, index))

    for old in {old for names in renamed.values() for old in names}:
        lower_getattr(numba.types.NamedTuple, old)(functools.partial(read, old=old))
