"""One name, one meaning."""

import ast
import re
from collections import Counter
from pathlib import Path

import superarm as sa

PACKAGE = Path(sa.__file__).parent
GLOSSARY = PACKAGE.parent.parent / "docs" / "reference" / "glossary.md"
MAX_TERMS = 60


def test_the_glossary_speaks_of_what_exists():
    """Every name in code font in the glossary is a name in the source, or a directory of it."""
    words = {word for path in PACKAGE.rglob("*.py") for word in re.findall(r"\w+", path.read_text())}
    for term in re.findall(r"`([^`]+)`", GLOSSARY.read_text()):
        known = (PACKAGE / term).is_dir() or all(word in words for word in re.findall(r"\w+", term))
        assert known, term


def test_the_glossary_is_short():
    terms = re.findall(r"^\| (?!term \|)\w.*\|$", GLOSSARY.read_text(), re.M)
    assert 25 < len(terms) <= MAX_TERMS


def test_no_class_name_is_defined_twice():
    """Private classes included."""
    names = Counter(
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, n in names.items() if n > 1] == []
