"""The same action sets, problems and views in both engines."""

import numpy as np

import superarm as old
from superarm.candidates import Candidates
from superarm import actions as sets
from superarm import rewards
from superarm.core.problem import Problem
from superarm.core.tally import View
from superarm.core.streams import new_stream


def modern(actions):
    """The action set of the array engine that has the batches of an old one."""
    name = type(actions).__name__
    if name == "Pinned":
        return sets.Pinned(modern(actions.actions), actions.arms)
    arguments = {
        "Subsets": lambda a: (a.k,),
        "Explicit": lambda a: (list(a.batches(0)),),
        "PartitionMatroid": lambda a: (a.group, a.limits),
        "Laminar": lambda a: ([(np.flatnonzero(row), int(n)) for row, n in zip(a.member, a.limits, strict=True)],),
        "GraphicMatroid": lambda a: (a.n_nodes, a.ends),
        "SpanningTrees": lambda a: (a.n_nodes, a.ends),
        "Matching": lambda a: (a.left, a.right, a.ends),
        "Paths": lambda a: (a.n_nodes, a.ends, a.source, a.target),
        "Knapsack": lambda a: (a.costs, a.money / (1.0 + 1e-9)),
        "Slots": lambda a: (a.allowed,),
    }
    return getattr(sets, name)(*arguments[name](actions))


def pair(actions, n, m, reward="Coverage", weights=None, support=None, parameters=()):
    """The same problem in the old and the new engine."""
    ours = getattr(rewards, reward)(*parameters)
    theirs = getattr(old, reward)(*parameters)
    return (
        old.Problem(n, m, theirs, actions, weights=weights, support=support),
        Problem(n, m, ours, modern(actions), weights=weights, support=support),
    )


def view_of(problem, counts, eligible, seed=0):
    """A view of R replications with these counts and eligible arms, both (R, n_arms)."""
    made = problem.view()
    rows = len(counts)
    keys = np.random.default_rng(seed).integers(0, 2**63, rows).astype(np.uint64)
    return View(made.t, made.tally, keys, counts, eligible, np.repeat(made.pinned, rows, 0))


def random_view(problem, rng, rows=1, share=(0.6, 0.8, 1.0), distinct=False):
    """A random view: few pulls, so that ties are common, unless they are to be distinct."""
    n = problem.n_arms
    counts = rng.integers(0, 3, (rows, n)) if not distinct else np.array([rng.permutation(n) for _ in range(rows)])
    return view_of(problem, counts.astype(float), rng.random((rows, n)) < rng.choice(share, (rows, 1)))


def candidates(view, r=0):
    """The old engine's form of one replication of a view."""
    return Candidates(view.counts[r], view.eligible[r])


def entries(problem, p):
    """Parameters (R, n_arms, n_items) as entries of the array engine."""
    return np.concatenate([problem.entries(row) for row in p])


def flat(problem, p):
    """The same for the old engine, one replication."""
    return problem.entries(p)


def arms(batch):
    """A row of a batch without its padding, as a list."""
    return batch[batch >= 0].tolist()


def stream(seed=0):
    return new_stream(np.random.SeedSequence(seed))
