"""Regressions on features that depend on one another, or hardly vary: estimates and widths are exact."""

from fractions import Fraction

import numpy as np
import pytest

import superarm as sa
from superarm.policies.contextual.ridge import no_correction, refresh
from superarm.policies.contextual.scoring import score_entries

N_ARMS = 4


def solve_exactly(matrix, rhs):
    """The solution of a linear system in fractions, by elimination."""
    n = len(rhs)
    rows = [[Fraction(float(x)) for x in row] + [Fraction(float(b))] for row, b in zip(matrix, rhs, strict=True)]
    for c in range(n):
        for r in range(c + 1, n):
            factor = rows[r][c] / rows[c][c]
            rows[r] = [x - factor * y for x, y in zip(rows[r], rows[c], strict=True)]
    found = [Fraction(0)] * n
    for r in reversed(range(n)):
        found[r] = (rows[r][n] - sum(rows[r][c] * found[c] for c in range(r + 1, n))) / rows[r][r]
    return found


def visit(kind, rng):
    x = rng.uniform(-1, 1)
    if kind == "copies":
        return np.array([x, x, x, -x])
    if kind == "constant":
        return np.array([1.0, 1.0, -1.0, x])
    return np.array([1.0, 1.0 - 2.0**-10 * rng.integers(0, 2), x, 2.0**-10])  # almost copies, and almost 0


@pytest.mark.parametrize("kind", ["copies", "constant", "almost"])
@pytest.mark.parametrize("shared", ["arms", True])
def test_estimates_are_those_of_exact_arithmetic(kind, shared):
    arms = np.array([[1.0, 1.0]] * N_ARMS) if shared is True else None  # features of arms that say nothing
    context = sa.Context(sa.Features(d=4), arms=arms, model=sa.models.Linear(shared=shared))
    problem = sa.Problem(N_ARMS, 1, sa.Linear(), sa.Subsets(1), context=context)
    agent, rng = sa.Agent(problem, sa.vac2_ucb(0.001, gamma=1e-3), seed=0), np.random.default_rng(5)
    for _ in range(300):
        decision = agent.ask(context=visit(kind, rng))
        agent.tell(decision, [[float(rng.random() < 0.02)]])
    tally, learner = agent.learner.tally, agent.learner
    x = visit(kind, np.random.default_rng(6))
    encoded = learner.contexts.encode(problem, x, None)
    current = learner.contexts.current_round(learner, learner.playable(), encoded, 301)
    memory = learner.memory
    refresh(memory, tally, no_correction(tally), learner.fitted.ridge)
    score_entries(learner.fitted.design, problem.terms.support, current, memory, 1.0)
    u = np.append(1.0, np.floor(x * 1024 + 0.5) / 1024)
    phi = np.kron(np.ones(3), u) if shared is True else u
    d = len(phi)
    for arm in range(N_ARMS):
        group = 0 if shared is True else arm
        g = np.zeros((d, d))
        g[np.tril_indices(d)] = tally.precision[group]
        g = g + np.tril(g, -1).T + learner.fitted.ridge * np.eye(d)
        theta = solve_exactly(g, tally.response[group])
        want = float(sum(Fraction(float(a)) * b for a, b in zip(phi, theta, strict=True)))
        square = sum(Fraction(float(a)) * b for a, b in zip(phi, solve_exactly(g, phi), strict=True))
        assert np.linalg.cond(g) > 1e4
        assert (memory.q[arm] + memory.low[arm]) / 2 == pytest.approx(want, rel=1e-6, abs=1e-7)
        assert (memory.q[arm] - memory.low[arm]) / 2 == pytest.approx(float(square) ** 0.5, rel=1e-6)
