"""Recorded people: one of each group per round, with their real dependence between arms."""

import numpy as np
import pytest

import superarm as sa
from superarm.core.streams import new_stream
from superarm.core.support import Dense


def test_cohorts_draw_one_person_of_each_group_for_all_arms():
    rng = np.random.default_rng(0)
    table = (rng.random((7, 3)) < 0.5).astype(float)
    table[:, 2] = 1.0 - table[:, 0]  # nobody does the same with arms 0 and 2
    world = sa.environments.Cohorts(table, [0, 3, 7])
    assert world.means(1) == pytest.approx(np.array([table[:3].mean(axis=0), table[3:].mean(axis=0)]).T)
    stream, seen = new_stream(np.random.SeedSequence(0)), np.ones(6, bool)
    drawn = np.empty((3000, 6))
    for t in range(3000):
        world.draw(Dense(3, 2), np.array([0, 1, 2]), t + 1, stream, drawn[t], seen)
    rounds = drawn.reshape(3000, 3, 2)
    assert (rounds[:, 2] == 1.0 - rounds[:, 0]).all()
    for i, people in enumerate((table[:3], table[3:])):
        assert {tuple(row) for row in rounds[:, :, i]} == {tuple(row) for row in people}
    # 3000 draws of 6 means: a deviation of 5 standard errors has probability below 4e-6
    assert (np.abs(rounds.mean(axis=0) - world.means(1)) < 5.0 * 0.5 / np.sqrt(3000)).all()
    both = (rounds[:, 0, 0] * rounds[:, 0, 1]).mean()  # persons of different groups are independent
    assert both == pytest.approx(world.means(1)[0].prod(), abs=5.0 * 0.5 / np.sqrt(3000))


@pytest.mark.parametrize("first", [[0, 3], [1, 3, 7], [0, 3, 3, 7], [0]])
def test_cohorts_refuse_groups_that_do_not_divide_the_people(first):
    with pytest.raises(sa.InvalidArgument, match="starts of groups"):
        sa.environments.Cohorts(np.zeros((7, 3)), first)
