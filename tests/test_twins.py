"""Every kernel has the bits of its NumPy twin, on random arrays of random dimensions and on hard values."""

import numpy as np
import pytest

from superarm.core import reference

HARD = np.array([0.0, 1.0, 0.5, 2.0**-24, 1.0 - 2.0**-24, 1e-300, 5e-324, 1.0 - 2.0**-53])


def chances(rng, shape):
    """Numbers in [0, 1], a fifth of them hard ones."""
    return np.where(rng.random(shape) < 0.2, rng.choice(HARD, shape), rng.random(shape))


def case(name, rng):
    """The arguments of an operation, and the places of those that it changes."""
    R, M, L, K = (int(n) for n in rng.integers(1, 6, 4))  # noqa: N806
    K = min(K, L)  # noqa: N806
    keys = rng.integers(0, 2**63, R).astype(np.uint64)
    action = np.array([rng.permutation(L)[:K] for _ in range(R)])
    action[rng.random((R, K)) < 0.2] = -1
    mean, deviation = chances(rng, (R, M, L)), 0.5 * rng.random((R, M, L))
    level = rng.choice([0.0, 1e-12, 1e-3, 0.3, 2.0, 800.0], (R, int(rng.choice([1, M])), L)) * rng.random()
    counts, eligible = rng.integers(0, 3, (R, L)).astype(float), rng.random((R, L)) < 0.8
    weights, t = rng.choice([0.0, 1.0, 0.3], M), int(rng.integers(1, 10**6))
    pinned = int(rng.integers(0, 2)) if eligible[:, 0].all() else 0
    out = np.full((R, K), -1)
    out[:, :pinned] = 0
    widths = rng.integers(0, 4, L)
    start = np.concatenate([[0], np.cumsum(widths)])
    items, entries = rng.integers(0, M, start[-1]), (R, int(start[-1]))
    wide = int(widths.max())
    partial = bool(rng.integers(0, 2))
    sums, sparse_sums = [np.zeros((R, L))], [np.zeros((R, L))]
    for kept, shape in ((sums, (R, M, L)), (sparse_sums, entries)):
        kept += [np.zeros(shape), np.zeros(shape), np.zeros(shape if partial else (0,) * len(shape))]
        kept += [np.zeros(shape), np.zeros(shape)]
    seen = rng.random((R, K, M)) < 0.7 if partial else np.empty((0, 0, 0), bool)
    seen_sparse = rng.random((R, K, wide)) < 0.7 if partial else np.empty((0, 0, 0), bool)
    sign = float(rng.choice([1.0, -1.0]))
    ends = np.sort(np.array([rng.permutation(6)[:2] for _ in range(L)]), axis=1)  # edges of a graph without cycles
    graph = (ends, np.argsort(ends[:, 0], kind="stable"), 6, 0, 5)
    square = rng.choice([0.0, 0.5, 0.3, rng.random()], (R, M, M + 2)), rng.integers(0, 3, (R, M, M + 2)).astype(float)
    spread, peak = rng.random((R, L)) * weights.sum(), chances(rng, (R, L)) * weights.sum()
    c = weights * rng.choice([1.0, 0.5, rng.random()], (R, M))
    ratio = np.divide(c, weights, out=np.zeros((R, M)), where=weights > 0.0)
    direction = (
        weights,
        c,
        ratio,
        np.argsort(ratio, 1, kind="stable"),
        counts,
        eligible,
        np.empty(R, int),
        np.empty(R),
    )
    covariance = 0.2 * rng.random((R, L, M * (M - 1) // 2 * int(rng.integers(0, 2)))) - 0.05
    limit = rng.choice([np.inf, 0.5], (R, L))
    moments = (mean, deviation, chances(rng, (R, M, L)), covariance, spread, peak)
    root = rng.normal(size=(R, L, L)) * rng.random((R, L, 1)) ** 3
    systems, factors = np.einsum("nij,nkj->nik", root, root), np.tril(root) + np.eye(L)
    phi = np.round(rng.uniform(-1, 1, (K, L)) * 1024) / 1024
    triangles, own = rng.integers(-9, 9, (R, L * (L + 1) // 2)) * 2.0**-36, rng.integers(0, R, K)
    levels, unit = rng.choice([0.0, 1e-3, 0.3, np.inf], (R, L)), float(rng.choice([1.0, 1024.0]))
    cases = {
        "assignment": ((*square, np.empty((R, M), np.int64)), 1),
        "heaviest_path": (
            (*graph, rng.choice([0.5, 0.3, 0.0], (R, L)), counts, eligible, np.full((R, min(5, L)), -1)),
            1,
        ),
        "factorise": ((systems,), 1),
        "solve_systems": ((factors, rng.normal(size=(R, L))), 1),
        "invert_systems": ((factors, np.empty((R, L, L))), 1),
        "quadratic_forms": ((systems, rng.normal(size=(int(rng.choice([1, R])), L)), np.empty(R)), 1),
        "add_terms": ((phi, rng.normal(size=K), own, 2.0**36, sign, triangles), 1),
        "directional_coverage": (
            (*moments, levels, weights, c[0], mean, counts, eligible, pinned, out.copy()),
            1,
        ),
        "directional_step": ((*moments, levels, limit, *direction), 2),
        "flip": ((keys, t, action, chances(rng, (int(rng.choice([1, R])), M, L)), np.empty((R, K, M))), 1),
        "flip_sparse": ((keys, t, action, start, chances(rng, entries[1]), np.empty((R, K, wide))), 1),
        "record": ((action, unit * chances(rng, (R, K, M)), seen, sign, unit, *sums), 6),
        "record_sparse": ((start, action, chances(rng, (R, K, wide)), seen_sparse, sign, unit, *sparse_sums), 6),
        "bernstein": ((mean, deviation, level, np.empty((R, M, L))), 1),
        "kl": ((mean, level, np.empty((R, M, L))), 1),
        "beta": ((keys, t, mean, np.floor(50 * rng.random((R, M, L))), np.empty((R, M, L))), 1),
        "beta_sparse": (
            (keys, t, start, chances(rng, entries), np.floor(9 * rng.random(entries)), np.empty(entries)),
            1,
        ),
        "gammas": (
            (rng.integers(0, 2**63, 9).astype(np.uint64), 10.0 ** rng.uniform(-3, 5, 9), np.empty(9)),
            1,
        ),
        "greedy_coverage": ((mean, weights, counts, eligible, pinned, out), 1),
        "top_k": ((rng.choice([-1.0, 0.0, 0.5], (R, L)), counts, eligible, pinned, out), 1),
        "coverage_value": ((chances(rng, (int(rng.choice([1, R])), M, L)), weights, action, np.empty(R)), 1),
        "sparse_sums": ((start, items, chances(rng, (R, M)), chances(rng, entries), np.empty((R, L))), 1),
    }
    return cases[name]


TWINS = (
    *("add_terms", "assignment", "bernstein", "beta", "beta_sparse", "coverage_value", "directional_coverage"),
    *("directional_step", "factorise", "flip", "flip_sparse", "gammas", "greedy_coverage", "heaviest_path"),
    *("invert_systems", "kl", "quadratic_forms", "record", "record_sparse", "solve_systems", "sparse_sums", "top_k"),
)


def test_every_twin_is_compared():
    from superarm.core import kernels  # numba takes a second to import

    assert sorted(TWINS) == [name for name in sorted(kernels.__all__) if hasattr(reference, name)]


@pytest.mark.parametrize("name", TWINS)
def test_a_kernel_has_the_bits_of_its_twin(name):
    from superarm.core import kernels

    rng = np.random.default_rng(len(name))
    for _ in range(150):
        arguments, changed = case(name, rng)
        plain = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
        getattr(kernels, name)(*arguments)
        getattr(reference, name)(*plain)
        for ours, theirs in zip(arguments[-changed:], plain[-changed:], strict=True):
            np.testing.assert_array_equal(ours, theirs)
