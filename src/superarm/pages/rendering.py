"""Templates, filled in."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from superarm.core.errors import MissingExtra
from superarm.pages.numbers import format_number, format_p


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
    loader = ChoiceLoader([PackageLoader(package, "templates"), PackageLoader("superarm.pages", "templates")])
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {"number": format_number, "p": format_p}
    return environment
