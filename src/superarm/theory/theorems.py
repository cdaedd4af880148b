"""Every theorem with the policies and instances that it is about, and the table of all of them for one policy."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from superarm.actions import Explicit, Subsets
from superarm.contextual.linear import LinearPolicy
from superarm.contextual.rules import Ellipsoid, VarianceWeighted
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.environments import Bernoulli, Comonotone, Environment, FreeSamples
from superarm.indices import KL, Bernstein, Hoeffding, Index
from superarm.oracles import Guarantee
from superarm.policies import DirectionalPolicy, IndexPolicy, Policy
from superarm.simulation import frames
from superarm.simulation.instances import Instance
from superarm.simulation.regret import target
from superarm.theory import lower
from superarm.theory.bound import Bound, Kind, Term, rounds
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.graves_lai import graves_lai
from superarm.theory.sequences import best_sequences
from superarm.theory.upper import bc_ucb, cascade, contextual, directional, kl_ucb, local, paper

MEANS = "the same means in every round, outcomes in [0, 1] that are independent over rounds, every arm in some batch"
COMPLETE = f"{MEANS}, complete feedback before the next round; any dependence within a round"
LATE = f"{MEANS}, complete feedback of whole rounds, at most `delay` rounds late, whatever the outcomes are"
SAME_LAW = COMPLETE.replace("the same means", "the same law")
LISTS = f"{MEANS}, arms that are independent within a round, feedback before the next round of what was read"
CONSISTENT = f"a consistent policy, {COMPLETE}"
_ABOUT = "it is about "


@dataclass(frozen=True)
class Case:
    """A policy on an instance, with feedback at most ``delay`` rounds late."""

    instance: Instance
    policy: Policy
    horizon: Floats
    delay: int = 0
    known: Gaps | None = None

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the policy's own oracle guarantees, from which its regret and gaps are measured."""
        return self.policy.guarantee(self.instance.problem)

    @cached_property
    def gaps(self) -> Gaps:
        """The gaps from that share of the optimum."""
        return gaps(self.instance, alpha=self.guarantee.alpha) if self.known is None else self.known

    @cached_property
    def index(self) -> Index | None:
        """The index of a policy that plays every arm once and then the oracle's batch; None for any other policy.

        On lists that are read from the top, a start that tries arms which were never observed must put them first; a
        policy without a start is covered there as well.
        """
        policy, problem = self.policy, self.instance.problem
        if isinstance(policy, DirectionalPolicy) and not policy.applies(problem):
            policy = policy.by_entry
        if not isinstance(policy, IndexPolicy):
            return None
        lists = self.instance.environment.partial
        ready = not policy.start or isinstance(problem.actions, Subsets) if lists else policy.start
        return policy.index if ready else None

    @cached_property
    def level(self) -> KL | None:
        """The index of a directional policy with one bound per arm, if its level is a logarithm; else None."""
        policy = self.policy
        if not isinstance(policy, DirectionalPolicy) or not policy.applies(self.instance.problem):
            return None
        return policy.index if isinstance(policy.index, KL) else None

    @cached_property
    def unusual(self) -> str:
        """What no theorem but those of linear models allows, in words; empty if there is nothing."""
        environment = self.instance.environment
        drawn_by = environment.environment if isinstance(environment, FreeSamples) else environment
        if environment.n_contexts:
            return "outcomes depend on contexts here"
        if type(drawn_by).changes is not Environment.changes:
            return "the means change over time here"
        if environment.own_reward or not self.instance.problem.reward.additive:
            return "the reward is not a sum over items here"
        return "" if self.guarantee.alpha > 0.0 else "the policy's oracle guarantees nothing here"

    @cached_property
    def incomplete(self) -> str:
        """What no theorem for complete feedback allows, in words."""
        return self.unusual or (
            "only a part of each batch is observed here" if self.instance.environment.partial else ""
        )


@dataclass(frozen=True)
class Theorem:
    """One theorem: ``excludes`` says why it is not about a case, or nothing; ``compute`` is its bound."""

    excludes: Callable[[Case], str]
    compute: Callable[[Case], Bound]
    assumptions: str


def _of_index(compute: Callable[..., Bound], index: Index, about: str, late: bool = False) -> Theorem:
    """A theorem about one index with its constants, for complete feedback."""

    def excludes(case: Case) -> str:
        if case.index != index:
            return f"{_ABOUT}{about}"
        early = "" if late or not case.delay else "feedback must arrive before the next round"
        return case.incomplete or early

    if late:
        return Theorem(excludes, lambda case: compute(case.instance, case.horizon, case.delay, case.gaps), LATE)
    return Theorem(excludes, lambda case: compute(case.instance, case.horizon, case.gaps), COMPLETE)


def _of_lists(compute: Callable[..., Bound], index: Index, about: str) -> Theorem:
    def excludes(case: Case) -> str:
        if not case.instance.environment.partial:
            return f"{_ABOUT}lists of which only a part is read"
        return f"{_ABOUT}{about}" if case.index != index else case.unusual

    return Theorem(excludes, lambda case: compute(case.instance, case.horizon, case.gaps), LISTS)


def _of_directions(compute: Callable[..., Bound]) -> Theorem:
    def excludes(case: Case) -> str:
        if case.level is None:
            return f"{_ABOUT}directional_kl_ucb() on rewards with linear gains that greedy serves"
        return case.incomplete or ("feedback must arrive before the next round" if case.delay else "")

    return Theorem(excludes, lambda case: compute(case.instance, case.horizon, case.gaps, case.level), SAME_LAW)


def _of_linear_models(compute: Callable[..., Bound], rule: type, wrong: str) -> Theorem:
    def excludes(case: Case) -> str:
        policy = case.policy
        if not isinstance(policy, LinearPolicy) or not isinstance(policy.rule, rule):
            return f"{_ABOUT}linear models of contexts"
        if wrong or policy.rule.rho != 1.0 or policy.discount != 1.0:
            return wrong or f"{_ABOUT}c2_ucb(rho=1)"
        return "only a part of each batch is observed here" if case.instance.environment.partial else ""

    def bound(case: Case) -> Bound:
        rule = case.policy.rule  # type: ignore[attr-defined]
        return compute(case.instance.problem, case.horizon, rule.ridge)

    return Theorem(excludes, bound, contextual.ASSUMPTIONS)


def _below(compute: Callable[[Case], tuple[Kind, Term]]) -> Theorem:
    """A lower bound, with its kind."""

    def excludes(case: Case) -> str:
        exact = case.guarantee == Guarantee(1.0, 1.0)
        return case.incomplete or ("" if exact else f"{_ABOUT}exact oracles (alpha = beta = 1)")

    def bound(case: Case) -> Bound:
        kind, term = compute(case)
        return Bound("", case.horizon, (lambda t: 0.0, lambda t: 0.0, term), kind=kind)

    return Theorem(excludes, bound, CONSISTENT)


def _rate(compute: Callable[..., lower.LowerBound], environment: type) -> Callable[[Case], tuple[Kind, Term]]:
    """A rate of Lai and Robbins: of this instance if it is the one of the construction, else of its size and gap."""

    def found(case: Case) -> tuple[Kind, Term]:
        own = isinstance(case.instance.environment, environment) and _is_constructed(case.instance)
        exact = compute(case.instance, 1, case.gaps).exact
        return "lower" if own else "size", lambda t: exact * np.log(t)

    return found


def _is_constructed(instance: Instance) -> bool:
    """Whether arms, means and batches are those of ``instances.lower_bound``."""
    problem, p = instance.problem, instance.p
    n = problem.n_arms - problem.k + 1
    if not isinstance(problem.actions, Explicit) or problem.actions.n_batches(problem.n_arms) != n or p.ndim != 2:
        return False
    own = p[p.any(axis=1)]
    counts = np.unique(own[:, 0], return_counts=True)
    return bool((own == own[:, :1]).all() and counts[0][-1] == 0.5 and counts[1].tolist() == [n - 1, 1])


def _graves_lai(case: Case) -> tuple[Kind, Term]:
    rate = graves_lai(case.instance).low
    return "lower", lambda t: rate * np.log(t)


def _gap_free(case: Case) -> tuple[Kind, Term]:
    return "size", lambda t: lower.lower_bound_gap_free(case.instance, t)


def _best_sequences(instance: Instance, horizon: Any, known: Gaps) -> Bound:
    return paper.upper_bound_sequences(instance, horizon, best_sequences(instance.problem.k), known)


_BC_UCB, _KL_THEOREM, _KL_DEFAULT = Bernstein(3.0), KL(3.0, 0.0), KL(1.0, 3.0)
_RADIUS = "it has the radius of the horizon in every round; vac2_ucb() has that of the present round"

THEOREMS: Mapping[str, Theorem] = {
    "upper_bound": _of_index(paper.upper_bound, _BC_UCB, "bc_ucb()"),
    "upper_bound_gap_free": _of_index(paper.upper_bound_gap_free, _BC_UCB, "bc_ucb()"),
    "upper_bound_sequences": _of_index(_best_sequences, _BC_UCB, "bc_ucb()"),
    "upper_bound_unsplit": _of_index(paper.upper_bound_unsplit, _BC_UCB, "bc_ucb()"),
    "upper_bound_sharp": _of_index(bc_ucb.upper_bound_sharp, _BC_UCB, "bc_ucb()"),
    "upper_bound_sharp_gap_free": _of_index(bc_ucb.upper_bound_sharp_gap_free, _BC_UCB, "bc_ucb()"),
    "upper_bound_kl": _of_index(kl_ucb.upper_bound_kl, _KL_THEOREM, "kl_ucb(rho=3, c=0)"),
    "upper_bound_kl_gap_free": _of_index(kl_ucb.upper_bound_kl_gap_free, _KL_THEOREM, "kl_ucb(rho=3, c=0)"),
    "upper_bound_kl_late": _of_index(kl_ucb.upper_bound_kl_late, _KL_THEOREM, "kl_ucb(rho=3, c=0)", late=True),
    "upper_bound_local": _of_index(local.upper_bound_local, _KL_THEOREM, "kl_ucb(rho=3, c=0)"),
    "upper_bound_kl_default": _of_index(kl_ucb.upper_bound_kl_default, _KL_DEFAULT, "kl_ucb()"),
    "upper_bound_kl_default_gap_free": _of_index(kl_ucb.upper_bound_kl_default_gap_free, _KL_DEFAULT, "kl_ucb()"),
    "upper_bound_local_default": _of_index(local.upper_bound_local_default, _KL_DEFAULT, "kl_ucb()"),
    "upper_bound_wang_chen": _of_index(paper.upper_bound_wang_chen, Hoeffding(3.0), "cucb()"),
    "upper_bound_cascade": _of_lists(cascade.upper_bound_cascade, _BC_UCB, "bcucb_t() and bc_ucb()"),
    "upper_bound_cascade_kl": _of_lists(cascade.upper_bound_cascade_kl, _KL_DEFAULT, "cascade_kl_ucb() and kl_ucb()"),
    "upper_bound_directional": _of_directions(directional.upper_bound_directional),
    "upper_bound_directional_greedy": _of_directions(directional.upper_bound_directional_greedy),
    "upper_bound_c2_ucb": _of_linear_models(contextual.upper_bound_c2_ucb, Ellipsoid, ""),
    "upper_bound_vac2_ucb": _of_linear_models(contextual.upper_bound_vac2_ucb, VarianceWeighted, _RADIUS),
    "lower_bound": _below(_rate(lower.lower_bound, Comonotone)),
    "lower_bound_independent": _below(_rate(lower.lower_bound_independent, Bernoulli)),
    "lower_bound_gap_free": _below(_gap_free),
    "graves_lai": _below(_graves_lai),
}
"""All theorems by name: upper bounds, then lower bounds."""


def evaluate(name: str, case: Case) -> Bound:
    """What one theorem says about a case, or why it does not apply."""
    theorem = THEOREMS[name]
    kind: Kind = "upper" if name.startswith("upper") else "lower"
    reason = theorem.excludes(case)
    bound = Bound(name, case.horizon, None, kind=kind, reason=reason)
    if not reason:
        try:
            bound = replace(theorem.compute(case), name=name)
        except InvalidArgument as error:
            bound = replace(bound, reason=error.wrong)
    alpha, beta = case.guarantee
    return replace(bound, alpha=alpha, beta=beta, assumptions=theorem.assumptions)


def bounds(instance: Instance, policy: Policy, horizon: Any, delay: int = 0) -> "Bounds":
    r"""What every theorem of superarm says about the regret of ``policy`` on ``instance``.

    Upper bounds are of regret against :math:`\alpha\beta\,r_{\max}` with the guarantee of the policy's own oracle,
    lower bounds of that of any consistent policy with an exact oracle. The theorems are those of [MerlisMannor2019]_,
    [WangChen2017]_ and ``docs/theory``.

    Parameters
    ----------
    instance
        A problem with its environment.
    policy
        The policy; a theorem is about one index with its constants.
    horizon
        One or more horizons T.
    delay
        By how many rounds the feedback of a round is late, at most.

    Examples
    --------
    >>> from superarm.policies import kl_ucb
    >>> from superarm.simulation import instances
    >>> table = bounds(instances.lower_bound(6, 3), kl_ucb(), [10**4, 10**6])
    >>> [bound.name for bound in table.applying if bound.kind == "upper"]
    ['upper_bound_kl_default', 'upper_bound_kl_default_gap_free', 'upper_bound_local_default']
    >>> table["upper_bound_kl_default"].at(10**6)
    KL theorem (KL-UCB, log t + 3 log log t): regret against 0.5 per round is at most 5973 after 1e+06 rounds; below ...
    >>> table["upper_bound"]
    Theorem 1 (BC-UCB) does not apply: it is about bc_ucb().
    """
    return tabulate(Case(instance, policy, rounds(horizon), delay))


def tabulate(case: Case) -> "Bounds":
    """What every theorem says about a case."""
    found = {name: evaluate(name, case) for name in THEOREMS}
    if any(bound.applies for bound in found.values()):
        against = target(case.instance, case.policy, "approximation").value
        found = {name: replace(bound, target=against) for name, bound in found.items()}
    return Bounds(repr(case.policy), case.horizon, found)


@dataclass(frozen=True, repr=False)
class Bounds:
    """What every theorem says about one policy on one instance: iterate over it, or index it by a theorem's name."""

    policy: str
    horizon: Floats
    rows: Mapping[str, Bound]

    def __iter__(self) -> Iterator[Bound]:
        return iter(self.rows.values())

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Bound:
        if name not in self.rows:
            raise KeyError(f"no theorem is called {name!r}; there are {', '.join(self.rows)}")
        return self.rows[name]

    @property
    def applying(self) -> list[Bound]:
        """The theorems that are about this policy on this instance."""
        return [bound for bound in self if bound.applies]

    def to_frame(self) -> dict[str, Any]:
        """A tidy table as a dict of columns: one row per theorem and horizon."""
        every = [(bound, t) for bound in self for t in np.ravel(self.horizon)]
        single = [bound.at(t) for bound, t in every]
        return {
            "theorem": [bound.name for bound, _ in every],
            "label": [bound.label for bound, _ in every],
            "kind": [bound.kind for bound, _ in every],
            "horizon": [t for _, t in every],
            "value": [float(bound) for bound in single],
            "trivial": [float(bound.trivial) for bound in single],
            "vacuous": [bool(bound.vacuous) for bound in single],
            "crossover": [bound.crossover for bound, _ in every],
            "target": [bound.target for bound, _ in every],
            "alpha": [bound.alpha for bound, _ in every],
            "beta": [bound.beta for bound, _ in every],
            "applies": [bound.applies for bound, _ in every],
            "reason": [bound.reason for bound, _ in every],
            "assumptions": [bound.assumptions for bound, _ in every],
        }

    def to_pandas(self) -> Any:
        """The table of ``to_frame`` as a pandas DataFrame."""
        return frames.to_pandas(self.to_frame())

    def __repr__(self) -> str:
        applying = self.applying
        if not applying:
            return "\n".join([f"No theorem is about {self.policy} here.", *explain_left_out(self)])
        one = applying[0]
        share = f"alpha {one.alpha:.4g}, beta {one.beta:.4g}"
        head = f"Regret of {self.policy} against {one.target:.4g} per round ({share})"
        times = [f"T = {t:g}" for t in np.ravel(self.horizon)]
        width = max(len(bound.label) for bound in applying)
        table = [f"{'':<5} {'':<{width}}  " + "  ".join(f"{time:>10}" for time in times)]
        for bound in applying:
            cells = "  ".join(f"{v:>10.4g}" for v in np.ravel(bound.value))
            use = f"  {bound.usefulness}" if bound.kind == "upper" else ""
            table.append(f"{bound.kind:<5} {bound.label:<{width}}  {cells}{use}")
        assumed = dict.fromkeys(bound.assumptions for bound in applying if bound.kind == "upper")
        return "\n".join([head, *table, *explain_left_out(self), *(f"Assumed: {text}." for text in assumed)])


def explain_left_out(rows: Iterable[Bound]) -> list[str]:
    """Why theorems do not apply: one sentence for those about something else, one for each other reason."""
    reasons = dict[str, list[str]]()
    for bound in rows:
        if not bound.applies:
            reasons.setdefault(bound.reason, []).append(bound.label)
    others = [reason.removeprefix(_ABOUT) for reason in reasons if reason.startswith(_ABOUT)]
    own = [f"Not {'; '.join(labels)}: {reason}." for reason, labels in reasons.items() if not reason.startswith(_ABOUT)]
    return [*own, f"Other theorems are about {'; '.join(others)}."] if others else own
