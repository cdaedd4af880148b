"""The examples in docs/theory give what they say."""

import doctest
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[2] / "docs" / "theory"


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.name)
def test_examples(page):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert failed == 0
