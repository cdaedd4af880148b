import pytest

from tests.modes.games import WITH_CONTEXTS, as_plain_python, compute


@pytest.mark.compiled("it compares the passes")
@pytest.mark.parametrize("name", WITH_CONTEXTS)
def test_functions_on_contexts_agree(name):
    assert compute(name) == as_plain_python(*WITH_CONTEXTS)[name]
