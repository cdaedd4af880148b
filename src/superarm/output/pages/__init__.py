"""Self-contained HTML pages: one way to fill templates, and numbers as people read them, for reports of every kind.

``templates/style.css`` is the style sheet that all pages include.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from superarm.core.errors import MissingExtra
from superarm.output.table import format_number


def format_p(p: float) -> str:
    """A p-value as people read it.

    >>> format_p(0.0004), format_p(0.25)
    ('< 0.001', '0.250')
    """
    return "–" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def render_page(package: str, name: str, context: dict[str, Any], filters: Mapping[str, Callable[..., Any]]) -> str:
    """The template ``name`` of ``package`` with ``context`` filled in; it may include ``style.css``.

    What is filled in is text: markup in it is escaped.
    """
    environment = _environment(package)
    environment.filters.update(filters)
    text: str = environment.get_template(name).render(context)
    return text


@cache
def _environment(package: str) -> Any:
    try:
        from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise MissingExtra("jinja2", "lab") from None
    loader = ChoiceLoader([PackageLoader(package, "templates"), PackageLoader("superarm.output.pages", "templates")])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {"number": format_number, "p": format_p}
    return environment
