"""The architecture page tells of functions and classes that exist, in the files that it links to."""

import ast
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"
LINKS = sorted(set(re.findall(r"\[`([\w.]+)`\]\((\.\./src/[^)]+)\)", PAGE.read_text())))


def _defined(path):
    """The names that a module defines, and those of its classes as ``Class.name``."""
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef))
            names |= {f"{node.name}.{method.name}" for method in methods}
    return names


def test_the_page_has_links():
    assert len(LINKS) > 40


@pytest.mark.parametrize(("name", "link"), LINKS, ids=lambda part: part.rsplit("/", 1)[-1])
def test_what_a_link_names_is_in_its_file(name, link):
    path = (PAGE.parent / link).resolve()
    assert path.is_file(), link
    assert name in _defined(path), f"{link} does not define {name}"


@pytest.mark.parametrize("line", [line for line in PAGE.read_text().splitlines() if line.startswith("| `")])
def test_the_rooms_of_the_table_exist(line):
    source = PAGE.parent.parent / "src" / "superarm"
    for room in re.findall(r"`(\w+)`", line.split("|")[1]):
        assert (source / room).is_dir() or (source / f"{room}.py").is_file(), room


def test_every_room_is_on_the_page():
    source = PAGE.parent.parent / "src" / "superarm"
    rooms = {path.stem for path in source.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    named = set(re.findall(r"`(\w+)`", PAGE.read_text()))
    assert rooms - {"__init__", "__main__"} - named == set()
