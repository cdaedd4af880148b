"""Figures of the pages in ``learn``: their examples are run when the site is built.

An example whose last line is an expression with a comment, ``results.plot()  # Regret of three policies``, and whose
value is a figure, is followed by that figure; the comment is what it shows. What examples print is in the pages
themselves, and ``tests/test_docs.py`` compares it.
"""

import ast
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from sphinx.application import Sphinx

EXAMPLE = re.compile(r"```python\n(.*?)```\n", re.S)
FIGURES = "_figures"
"""The directory of the figures, in the directory of the site's sources."""


def run_examples(text: str, directory: Path, name: str) -> str:
    """The page with the figures that its examples draw; the n-th example writes ``name-n.png`` into ``directory``."""
    examples = EXAMPLE.findall(text)
    drawn = [n for n, example in enumerate(examples) if _caption(example)]
    if not drawn:
        return text
    script = "\n".join(_save_last(example, directory / f"{name}-{n}.png") for n, example in enumerate(examples))
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "page.py"
        file.write_text(script, encoding="utf-8")
        done = subprocess.run([sys.executable, file], check=False, cwd=place, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name}: an example fails\n{done.stderr}")
    numbers = iter(range(len(examples)))
    return EXAMPLE.sub(lambda found: found[0] + _show(found[1], f"{name}-{next(numbers)}.png"), text)


def _caption(example: str) -> str:
    """What the figure of an example shows; empty if it draws none."""
    found = re.fullmatch(r"[^#]*\.plot\([^#]*\)  # (.+)", example.rstrip().rpartition("\n")[2])
    return found[1] if found else ""


def _save_last(example: str, path: Path) -> str:
    """The example, which also writes the figure of its last line to a file."""
    if not _caption(example):
        return example
    tree = ast.parse(example)
    (last,) = [node for node in tree.body[-1:] if isinstance(node, ast.Expr)]
    saved = ast.parse(f"_.savefig({str(path)!r}, dpi=150)").body
    tree.body[-1:] = [ast.Assign([ast.Name("_", ast.Store())], last.value), *saved]
    return ast.unparse(ast.fix_missing_locations(tree))


def _show(example: str, file: str) -> str:
    caption = _caption(example)
    return f"\n![{caption}](/{FIGURES}/{file})\n" if caption else ""


def _draw(app: Sphinx, page: str, source: list[str]) -> None:
    if page.startswith("learn/"):
        directory = Path(app.srcdir) / FIGURES
        directory.mkdir(exist_ok=True)
        source[0] = run_examples(source[0], directory, page.replace("/", "-"))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _draw)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
