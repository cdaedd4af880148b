import pytest

from tests.modes.games import GAMES, ROUNDS, K, as_plain_python, simulate


@pytest.mark.compiled("it compares the passes")
@pytest.mark.parametrize("name", GAMES)
def test_simulations_agree(name):
    mine = simulate(name)
    assert mine == as_plain_python(*GAMES)[name]
    assert sum(mine["pulls"]) == K * ROUNDS
    assert all(pulls >= 1 for pulls in mine["pulls"])
