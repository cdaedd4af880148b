"""Every action set, random ones, against the list of all its batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superarm.actions import admits, ceiling, cover, heaviest, joins, sample
from superarm.actions.traits import tractable
from superarm.core.streams import new_stream
from superarm.testing import check_plain
from tests.action_sets import ALL, playable, random_ranks, random_set

SEEDS = st.integers(0, 2**32 - 1)
FEW = settings(max_examples=12)


@pytest.mark.parametrize("kind", ALL)
@given(seed=SEEDS)
@FEW
def test_batches_are_the_largest_of_what_may_be_played(kind, seed):
    actions, n = random_set(kind, np.random.default_rng(seed))
    actions.validate(n)
    check_plain(actions)
    allowed = [frozenset(batch) for batch in playable(actions, n)]
    listed = [frozenset(batch) for batch in actions.batches(n)]
    assert {batch for batch in allowed if not any(batch < other for other in allowed)} <= set(listed) <= set(allowed)
    assert len(listed) <= actions.n_batches(n)
    largest = max(map(len, allowed))
    assert actions.capacity(n) == largest or (kind.startswith("pinned") and actions.capacity(n) > largest)


@pytest.mark.parametrize("kind", ALL)
@given(seed=SEEDS)
@FEW
def test_an_arm_may_join_if_and_only_if_some_batch_holds_them_all(kind, seed):
    rng = np.random.default_rng(seed)
    actions, n = random_set(kind, rng)
    candidates = random_ranks(n, rng)
    everything = [set(batch) for batch in playable(actions, n)]
    eligible = [set(batch) for batch in playable(actions, n, candidates.eligible)]
    chosen, size = np.full(n, -1), 0
    for arm in rng.permutation(n):
        batch = {*chosen[:size].tolist(), int(arm)}
        assert admits(actions, chosen, size, int(arm)) == any(batch <= other for other in everything)
        if candidates.eligible[list(batch)].all():
            assert joins(actions, candidates, chosen, size, int(arm)) == any(batch <= other for other in eligible)
        if any(batch <= other for other in everything):
            chosen[size] = arm
            size += 1


@pytest.mark.parametrize("kind", ALL)
@given(seed=SEEDS)
@FEW
def test_the_heaviest_batch_and_its_ceiling(kind, seed):
    rng = np.random.default_rng(seed)
    actions, n = random_set(kind, rng)
    candidates, weights = random_ranks(n, rng), rng.choice([rng.random(n), rng.integers(0, 3, n).astype(float)])
    allowed = playable(actions, n, candidates.eligible)
    found, above = heaviest(actions, weights, candidates), ceiling(actions, weights, candidates)
    if not allowed:
        assert len(found) == 0
        return
    most = max(weights[list(batch)].sum() for batch in allowed)
    assert tuple(sorted(found.tolist())) in allowed
    assert above >= most - 1e-9
    if tractable(actions):
        assert weights[found].sum() == pytest.approx(most, abs=1e-9)
        assert kind.startswith("pinned") or above == pytest.approx(most, abs=1e-9)
    elif not kind.startswith("pinned"):
        assert weights[found].sum() >= most / 2 - 1e-9


@pytest.mark.parametrize("kind", ALL)
@given(seed=SEEDS)
@FEW
def test_covers_and_samples_may_be_played_and_covers_hold_new_arms(kind, seed):
    rng = np.random.default_rng(seed)
    actions, n = random_set(kind, rng)
    candidates = random_ranks(n, rng)
    allowed = playable(actions, n, candidates.eligible)
    first, again = (sample(actions, candidates, new_stream(np.random.SeedSequence(seed))) for _ in range(2))
    covering = cover(actions, candidates)
    assert np.array_equal(first, again)
    if not allowed:
        assert len(first) == len(covering) == 0
        return
    new = candidates.counts == 0.0
    assert tuple(sorted(first.tolist())) in allowed
    assert tuple(sorted(covering.tolist())) in allowed
    most = max(new[list(batch)].sum() for batch in allowed)
    assert new[covering].any() == (most > 0)
    assert not tractable(actions) or new[covering].sum() == most


@pytest.mark.parametrize("kind", ALL)
def test_every_batch_is_sampled_sooner_or_later(kind):
    actions, n = random_set(kind, np.random.default_rng(3))
    candidates = random_ranks(n, np.random.default_rng(0))._replace(eligible=np.ones(n, bool))
    stream = new_stream(np.random.SeedSequence(0))
    missing = set(map(tuple, map(sorted, actions.batches(n))))
    for _ in range(3000):
        missing.discard(tuple(sorted(sample(actions, candidates, stream).tolist())))
        if not missing:
            break
    assert not missing
