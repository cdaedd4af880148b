import pytest

from tests.modes.games import as_plain_python, list_part, play

NAMES = list_part("budgets")


@pytest.mark.compiled("it compares the passes")
@pytest.mark.parametrize("name", NAMES)
def test_compositions_agree(name):
    assert play(name) == as_plain_python(*NAMES)[name]
