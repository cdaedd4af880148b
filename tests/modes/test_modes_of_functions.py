import pytest

from tests.modes.games import WITHOUT_CONTEXTS, as_plain_python, compute, is_compiled


@pytest.mark.compiled("it compares the passes")
def test_the_modes_are_two():
    assert is_compiled()
    assert not as_plain_python(*WITHOUT_CONTEXTS)["compiled"]


@pytest.mark.compiled("it compares the passes")
@pytest.mark.parametrize("name", WITHOUT_CONTEXTS)
def test_functions_agree(name):
    assert compute(name) == as_plain_python(*WITHOUT_CONTEXTS)[name]
