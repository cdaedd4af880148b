"""Pages are Markdown that also reads well in the repository: references and links are adapted for the site."""

import re
from pathlib import Path

from sphinx.application import Sphinx

DOCS = Path(__file__).parent.parent
KEYS = set(re.findall(r"^@\w+\{(\w+),", (DOCS / "references.bib").read_text(), re.M))
OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
INCLUDED = {inside.removesuffix(".md"): outside for outside, inside in OUTSIDE.items()}
"""Pages whose text is a file of the repository's root."""


def cite(text: str) -> str:
    """``[Key2019]`` as a citation, if the key is in the bibliography; code blocks stay."""
    parts = re.split(r"(```.*?```|`[^`\n]*`)", text, flags=re.S)
    for n in range(0, len(parts), 2):
        parts[n] = re.sub(
            r"\[([A-Z]\w+?\d{4}[a-z]?)\](?![(_\w])",
            lambda found: f"{{cite:t}}`{found[1]}`" if found[1] in KEYS else found[0],
            parts[n],
        )
    return "".join(parts)


def redirect(text: str, page: str) -> str:
    """Links to files of the repository that are pages of the site, and to the bibliography."""
    up = "../" * page.count("/")
    for outside, inside in OUTSIDE.items():
        text = re.sub(rf"\]\((?:\.\./)+{re.escape(outside)}", f"]({up}{inside}", text)
    if page in INCLUDED:  # files of the repository's root
        text = text.replace("](docs/", "](")
        for outside, inside in OUTSIDE.items():
            text = text.replace(f"]({outside}", f"]({inside}")
    return re.sub(r"\]\((?:\.\./)*references\.bib\)", f"]({up}theory/README.md#literature)", text)


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith("reference/api/"):
        return
    if page in INCLUDED:
        source[0] = (DOCS.parent / INCLUDED[page]).read_text()
    source[0] = redirect(cite(source[0]), page)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
