"""Every bound, gap and slope of the array engine is that of the old one, on random instances."""

import numpy as np
import pytest

import superarm as old
from tests.next import names as sa

REWARDS = [("Coverage", ()), ("Linear", ()), ("Logistic", (0.7,)), ("ClippedLinear", (2.0, 0.1))]


def pair(seed, reward="Coverage", parameters=(), actions="subsets"):
    """The same random instance in both engines."""
    rng = np.random.default_rng(seed)
    p, weights = rng.uniform(0.0, 0.6, (6, 3)), rng.uniform(0.5, 2.0, 3)
    batches = [[0, 1, 2], [3, 4], [5], [1, 4, 5]]
    made = []
    for names in (old, sa):
        own = names.Subsets(3) if actions == "subsets" else names.Explicit(batches)
        problem = names.Problem(6, 3, getattr(names, reward)(*parameters), own, weights=weights)
        made.append(names.Instance(problem, names.environments.Bernoulli(p)))
    return made


@pytest.mark.parametrize("actions", ["subsets", "listed"])
@pytest.mark.parametrize(("reward", "parameters"), REWARDS)
def test_gaps_slopes_and_bounds(reward, parameters, actions):
    before, now = pair(1, reward, parameters, actions)
    was, found = (names.theory.gaps(one, alpha=0.999) for names, one in ((old, before), (sa, now)))
    assert (found.method, found.nodes) == (was.method, was.nodes)
    for name in ("minimum", "maximum", "found"):
        np.testing.assert_allclose(getattr(found, name), getattr(was, name), rtol=1e-9)
    same, slopes = (names.theory.local_slopes(one, g) for names, one, g in ((old, before, was), (sa, now, found)))
    np.testing.assert_allclose(slopes, same, rtol=1e-9)
    t = [1, 100, 10**6]
    for name in ("upper_bound", "upper_bound_gap_free", "upper_bound_sharp", "upper_bound_kl", "upper_bound_kl_default",
                 "upper_bound_wang_chen", "upper_bound_unsplit", "upper_bound_sequences", "lower_bound",
                 "printed_theorem", "printed_corollary", "trivial"):  # fmt: skip
        one, other = (getattr(n.theory, name)(i, t, known=g) for n, i, g in ((old, before, was), (sa, now, found)))
        np.testing.assert_allclose(np.asarray(other), np.asarray(one), rtol=1e-9)


@pytest.mark.parametrize("reward", ["Coverage", "Linear"])
def test_graves_lai_and_the_local_bound(reward):
    before, now = pair(2, reward)
    assert sa.theory.graves_lai(now) == pytest.approx(tuple(old.theory.graves_lai(before)), rel=1e-6)
    was, found = (names.theory.upper_bound_local(one, 10**5) for names, one in ((old, before), (sa, now)))
    assert float(found) == pytest.approx(float(was), rel=1e-9)


def test_the_proof_along_the_same_run():
    was, found = (n.theory.follow(n.instances.lower_bound(6, 3, n_items=2), 40, seed=5) for n in (old, sa))
    for name in ("t", "gap", "radius", "level", "few", "fewest", "threshold", "width", "allowed"):
        np.testing.assert_allclose(getattr(found, name), getattr(was, name), rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("k", [1, 3])
def test_smoothness(k):
    def product(x):
        return float(np.prod(x))

    was, found = (theory.smoothness(product, k, claim=(1.0, 0.5)) for theory in (old.theory, sa.theory))
    assert (found.status, found.found_g) == (was.status, pytest.approx(was.found_g, abs=1e-9))


@pytest.mark.parametrize("name", ["upper_bound_c2_ucb", "upper_bound_vac2_ucb"])
def test_bounds_on_linear_models(name):
    from superarm.context import Context, Features, LinearModel

    z, t = np.random.default_rng(0).uniform(0.0, 0.4, (8, 5)), [1e3, 1e6]
    made = [
        names.Problem(8, 2, names.Coverage(), names.Subsets(3), context=context)
        for names, context in (
            (old, Context(Features(d=2), z, LinearModel(shared=True))),
            (sa, sa.Context(sa.Features(d=2), z, sa.models.Linear(shared=True))),
        )
    ]
    was, found = (getattr(names.theory, name)(one, t) for names, one in zip((old, sa), made, strict=True))
    np.testing.assert_allclose(found.value, was.value, rtol=1e-9)
