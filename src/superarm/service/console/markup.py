"""HTML that cannot be broken by what it shows: text is escaped unless it was made here."""

from collections.abc import Sequence
from html import escape
from typing import Any

_ALONE = ("br", "input", "link", "meta")  # those of SVG need their end


class Html(str):
    """Markup, as against text."""

    __slots__ = ()


def tag(name: str, /, *children: Any, **attributes: Any) -> Html:
    """An element; ``class_`` is class, ``data_x`` is data-x; None and False leave an attribute or a child out.

    >>> tag("a", "<b> & c", href='x"y', class_="big")
    '<a href="x&quot;y" class="big">&lt;b&gt; &amp; c</a>'
    """
    words = [name]
    for key, value in attributes.items():
        if value is not None and value is not False:
            word = key.rstrip("_").replace("_", "-")
            words.append(word if value is True else f'{word}="{escape(_plain(value))}"')
    opening = f"<{' '.join(words)}>"
    return Html(opening if name in _ALONE and not children else f"{opening}{join(*children)}</{name}>")


def join(*parts: Any) -> Html:
    """Parts one after the other; lists are taken apart."""
    out = list[str]()
    for part in parts:
        if part is None or part is False:
            continue
        if isinstance(part, list | tuple):
            out.append(join(*part))
        else:
            out.append(part if isinstance(part, Html) else escape(_plain(part)))
    return Html("".join(out))


def with_code(text: str) -> list[Any]:
    """A sentence whose words in backticks are code.

    >>> join(with_code("name the `items`"))
    'name the <code>items</code>'
    """
    return [tag("code", part) if n % 2 else part for n, part in enumerate(text.split("`"))]


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def shorten(names: Sequence[str], most: int) -> list[str]:
    """Names of at most so many letters: their beginnings, or beginnings and ends where beginnings are alike.

    >>> shorten(["reader group 1", "reader group 2"], 10), shorten(["a rather long name"], 10)
    (['read…oup 1', 'read…oup 2'], ['a rather …'])
    """
    cut = [name if len(name) <= most else name[: most - 1] + "…" for name in names]
    if len(set(cut)) == len(set(names)):
        return cut
    end = most // 2
    return [name if len(name) <= most else f"{name[: most - 1 - end]}…{name[-end:]}" for name in names]
