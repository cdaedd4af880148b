"""Blocks never promise less than one of their arms adds, whatever was played and wherever arms stand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import superarm as sa
from superarm.policies.fast.arm_blocks import (
    LEADING_ITEMS,
    block_span,
    mark_lowered,
    mark_played,
    new_blocks,
    raise_limits,
    restore_all,
    sort_into_blocks,
    tighten_bounds,
)
from superarm.policies.fast.arm_blocks import restore_changed as back_to_the_start
from superarm.policies.fast.block_order import compare_groups, first_block, new_block_order, set_key
from superarm.policies.fast.popular_items import (
    _round_up,
    bound_gain,
    find_popular_items,
    set_parameters,
    update_slopes,
)
from superarm.rewards import gain, initial_states, join_arm

L, M = 150, 40


def problem_of(rng):
    items = np.minimum(rng.zipf(1.4, (L, 6)), M) - 1
    support = csr_array((np.ones(L * 6), (np.repeat(np.arange(L), 6), items.ravel())), shape=(L, M))
    return sa.Problem(L, M, sa.Coverage(), sa.Subsets(5), rng.uniform(0.5, 2.0, M), support)


def bounded(problem, q):
    rows, shared = new_blocks(L), find_popular_items(problem)
    for j in range(L):
        rows.bound[rows.at[j]] = set_parameters(problem, shared, q, j, rows.at[j])
    sort_into_blocks(rows, shared)
    return rows, shared


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_bounds_hold_for_every_batch(seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(rng)
    q = rng.uniform(0.0, 1.0, len(problem.support.items))
    rows, shared = bounded(problem, q)
    assert sorted(rows.arm) == list(range(L))
    assert (rows.arm[rows.at] == np.arange(L)).all()
    played = int(rng.integers(L))  # its parameters change after it was put in its place
    first, last = problem.support.span(played)
    q[first:last] = rng.uniform(0.0, 1.0, last - first)
    rows.bound[rows.at[played]] = set_parameters(problem, shared, q, played, rows.at[played])
    raise_limits(rows, shared, rows.at[played])
    pulls, eligible = rng.integers(1, 9, L).astype(float), rng.random(L) < 0.9
    restore_all(rows, eligible, pulls)
    at_first = [part.copy() for part in rows.order]
    states = initial_states(problem.reward, problem.terms)
    for j in rng.permutation(L)[:5]:
        join_arm(problem.reward, problem.terms, states, q, j)
        if 0 <= update_slopes(problem, shared, states, rows.at[j]) < LEADING_ITEMS:
            tighten_bounds(rows, shared)
        for block in range(len(rows.rest)):
            for p in range(*block_span(rows, block)):
                g = gain(problem.reward, problem.terms, states, q, rows.arm[p])
                assert g <= bound_gain(shared, p)
                assert g <= rows.bound[p]
                assert g <= rows.order.key[block] or not eligible[rows.arm[p]]
    mark_lowered(rows, 0)
    mark_played(rows, 70)
    back_to_the_start(rows, eligible, pulls)
    for part, before in zip(rows.order, at_first, strict=True):
        np.testing.assert_array_equal(part, before)


@pytest.mark.parametrize("n_blocks", [1, 63, 64, 200])
def test_blocks_come_by_key_then_rank_then_number(n_blocks):
    rng = np.random.default_rng(n_blocks)
    order = new_block_order(n_blocks)
    keys, ranks = rng.integers(-1, 4, n_blocks).astype(float), rng.integers(0, 5, n_blocks).astype(float)
    order.key[:n_blocks], order.rank[:n_blocks] = keys, ranks
    compare_groups(order)
    for block in np.lexsort((np.arange(n_blocks), ranks, -keys)):
        assert first_block(order) == block
        set_key(order, block, -np.inf, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_share_the_most_popular_items(seed):
    rng = np.random.default_rng(seed)
    problem = problem_of(rng)
    rows, shared = bounded(problem, rng.uniform(0.0, 1.0, len(problem.support.items)))
    keen = shared.items[:LEADING_ITEMS].tolist()
    kinds = []
    for j in rows.arm:
        first, last = problem.support.span(j)
        mine = set(problem.support.items[first:last])
        kinds.append(sum(1 << n for n, i in enumerate(keen) if i in mine))
    assert kinds == sorted(kinds)


@given(st.floats(0.0, 1e6))
def test_numbers_are_rounded_up_to_single_precision(x):
    assert float(_round_up(x)) >= x
    assert float(_round_up(x)) <= x * (1.0 + 3e-7) + 3e-44
