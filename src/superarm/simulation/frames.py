"""Tables for pandas, polars and Arrow; each library is needed only by the function that makes its table."""

from collections.abc import Mapping
from typing import Any

from superarm.core.errors import MissingExtra


def to_arrow(columns: Mapping[str, Any]) -> Any:
    """An Arrow table."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("pyarrow", "lab") from None
    return pyarrow.table(dict(columns))


def to_pandas(columns: Mapping[str, Any]) -> Any:
    """A pandas DataFrame."""
    try:
        import pandas
    except ImportError:
        raise MissingExtra("pandas", "frames") from None
    return pandas.DataFrame(dict(columns))


def to_polars(columns: Mapping[str, Any]) -> Any:
    """A polars DataFrame."""
    try:
        import polars
    except ImportError:
        raise MissingExtra("polars", "frames") from None
    return polars.DataFrame(dict(columns))
