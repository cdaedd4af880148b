import pytest

from tests.mode_functions import FUNCTIONS
from tests.modes.games import as_plain_python, compute, is_compiled


@pytest.mark.compiled("it compares the passes")
def test_the_modes_are_two():
    assert is_compiled()
    assert not as_plain_python(*FUNCTIONS)["compiled"]


@pytest.mark.compiled("it compares the passes")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_agree(name):
    assert compute(name) == as_plain_python(*FUNCTIONS)[name]
