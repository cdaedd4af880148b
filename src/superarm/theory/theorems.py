"""Which upper bounds hold for which policy on which instance, and what they assume."""

from collections.abc import Callable, Mapping
from typing import Any

from superarm.actions import Subsets
from superarm.core.errors import InvalidArgument
from superarm.core.problem import Problem
from superarm.environments import Environment, FreeSamples
from superarm.indices import KL, Bernstein, Hoeffding, Index
from superarm.oracles import Guarantee
from superarm.policies import IndexPolicy, Policy
from superarm.simulation.instances import Instance
from superarm.theory.bound import LABELS, Bound
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.upper import bc_ucb, cascade, kl_ucb, local, paper

ASSUMPTIONS = (
    "Upper bounds assume the same means in every round, outcomes that are independent over rounds, every arm in some "
    "batch, and complete feedback before the next round; those of cascades assume arms that are independent within a "
    "round, and need only what was read. Late feedback is covered by theory.upper_bound_kl_late alone."
)
"""What the theorems assume, in a sentence for reports."""

_BC_UCB, _KL_THEOREM, _KL_DEFAULT, _CUCB = Bernstein(3.0), KL(3.0, 0.0), KL(1.0, 3.0), Hoeffding(3.0)

_REPORTED: tuple[tuple[Callable[..., Bound], Index], ...] = (
    (paper.upper_bound, _BC_UCB),
    (paper.upper_bound_gap_free, _BC_UCB),
    (bc_ucb.upper_bound_sharp, _BC_UCB),
    (bc_ucb.upper_bound_sharp_gap_free, _BC_UCB),
    (kl_ucb.upper_bound_kl, _KL_THEOREM),
    (kl_ucb.upper_bound_kl_gap_free, _KL_THEOREM),
    (local.upper_bound_local, _KL_THEOREM),
    (kl_ucb.upper_bound_kl_default, _KL_DEFAULT),
    (kl_ucb.upper_bound_kl_default_gap_free, _KL_DEFAULT),
    (local.upper_bound_local_default, _KL_DEFAULT),
    (cascade.upper_bound_cascade, _BC_UCB),
    (cascade.upper_bound_cascade_kl, _KL_DEFAULT),
    (paper.upper_bound_wang_chen, _CUCB),
)
"""The upper bounds that reports show where they apply, each with the index that it is about, with its constants."""

_BOUNDS = {bound.__name__: bound for bound, _ in _REPORTED}

COVERED: Mapping[str, Index] = {bound.__name__: index for bound, index in _REPORTED}
"""The index that each of the reported theorems is about, by the name of the theorem."""

CASCADES = ("upper_bound_cascade", "upper_bound_cascade_kl")
"""The theorems for lists of which only a part is read."""


def theorems_for(policy: Policy, instance: Instance) -> tuple[str, ...]:
    """The names of the bounds of ``superarm.theory`` that hold for ``policy`` on ``instance``.

    A theorem is for one index with its constants, for the paper's start (every arm once), and for an oracle with a
    guarantee. The theorems are those of [MerlisMannor2019]_, [WangChen2017]_ and ``docs/theory``.

    >>> from superarm.simulation import instances
    >>> instance = instances.lower_bound(6, 3)
    >>> theorems_for(IndexPolicy(Hoeffding()), instance), theorems_for(IndexPolicy(Hoeffding(2.0)), instance)
    (('upper_bound_wang_chen',), ())
    >>> theorems_for(IndexPolicy(Bernstein(), start=False), instances.cascade())
    ('upper_bound_cascade',)
    """
    index = _index_of(policy, instance)
    if index is None or guarantee_of(policy, instance.problem).alpha == 0.0:
        return ()
    found = theorems_on(instance)
    return tuple(name for name in found if COVERED[name] == index)


def theorems_on(instance: Instance) -> tuple[str, ...]:
    """The names of the reported bounds whose theorem is about such an instance, whatever the policy."""
    environment = instance.environment
    drawn_by = environment.environment if isinstance(environment, FreeSamples) else environment
    if environment.own_reward or environment.n_contexts or type(drawn_by).changes is not Environment.changes:
        return ()
    return tuple(name for name in COVERED if (name in CASCADES) == environment.partial)


def _index_of(policy: Policy, instance: Instance) -> Index | None:
    """The index of a policy that plays as the theorems assume; None for any other policy.

    In cascades, a start that tries arms which were never observed must put them at the top of a list; a policy without
    a start is covered as well.
    """
    if not isinstance(policy, IndexPolicy):
        return None
    if instance.environment.partial:
        return policy.index if not policy.start or isinstance(instance.problem.actions, Subsets) else None
    return policy.index if policy.start else None


def guarantee_of(policy: Policy, problem: Problem) -> Guarantee:
    """What the policy's own oracle guarantees on ``problem``, from which its regret and gaps are measured."""
    return policy.guarantee(problem)


def gaps_of(policy: Policy, instance: Instance) -> Gaps:
    """The gaps of ``instance`` from the share of the optimum that the policy's own oracle guarantees."""
    return gaps(instance, alpha=guarantee_of(policy, instance.problem).alpha)


def evaluate(name: str, instance: Instance, horizon: Any, known: Gaps) -> Bound | None:
    """The bound ``theory.<name>``; None if it does not apply to this instance."""
    try:
        return _BOUNDS[name](instance, horizon, known=known)
    except InvalidArgument:
        return None


def describe_theorems(label: str, policy: Policy, instance: Instance) -> str:
    """One line that says which theorems cover the policy, and with which guarantee of its oracle."""
    alpha, beta = guarantee_of(policy, instance.problem)
    names = theorems_for(policy, instance)
    if not names:
        uncovered = "no theorem of this report covers this policy here"
        return f"{label}: {'its oracle guarantees nothing here' if alpha == 0.0 else uncovered}"
    listed = ", ".join(LABELS[name].partition(" (")[0] for name in names)
    return f"{label}: {listed}; regret and gaps are measured from alpha beta r_max, alpha {alpha:.4g}, beta {beta:.4g}"
