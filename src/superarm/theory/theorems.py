"""Every theorem with the policies and instances that it is about, and the table of all of them for one policy."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from superarm.actions import Subsets
from superarm.contextual.linear import LinearPolicy
from superarm.contextual.rules import Ellipsoid
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.environments import Environment, FreeSamples
from superarm.indices import KL, Bernstein, Hoeffding, Index
from superarm.oracles import Default, Guarantee
from superarm.output import labels
from superarm.policies import DirectionalPolicy, GreedyThenCommit, IndexPolicy, Policy, TotalThompson, catalog
from superarm.rewards import has_proof
from superarm.simulation.instances import Instance
from superarm.simulation.regret import target
from superarm.theory import lower
from superarm.theory.bound import SIMULATE, Bound, Kind, rounds
from superarm.theory.gaps import Gaps, gaps
from superarm.theory.graves_lai import graves_lai
from superarm.theory.upper import bc_ucb, cascade, contextual, directional, kl_ucb, local, paper, thompson, total

MEANS = "the same means in every round, outcomes in [0, 1] that are independent over rounds, every arm in some batch"
COMPLETE = f"{MEANS}, complete feedback before the next round; any dependence within a round"
LATE = f"{MEANS}, complete feedback of whole rounds, at most `delay` rounds late, whatever the outcomes are"
LISTS = f"{MEANS}, arms that are independent within a round, feedback before the next round of what was read"
_ABOUT, EXACT = "it is about ", "exact oracles (alpha = beta = 1)"


@dataclass(frozen=True)
class Question:
    """What theorems are asked about: a policy on an instance, with feedback at most ``delay`` rounds late."""

    instance: Instance
    policy: Policy[Any]
    horizon: Floats
    delay: int = 0

    @cached_property
    def guarantee(self) -> Guarantee:
        """What the policy's own oracle guarantees, from which its regret and gaps are measured."""
        return self.policy.guarantee(self.instance.problem)

    @property
    def gaps(self) -> Gaps:
        """The gaps from that share of the optimum; the instance keeps them, for other policies on it."""
        kept, alpha = self.instance.__dict__.setdefault("_gaps", {}), self.guarantee.alpha
        if alpha not in kept:
            kept[alpha] = gaps(self.instance, alpha=alpha)
        found: Gaps = kept[alpha]
        return found

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
        policy, environment = self.policy, self.instance.environment
        if not isinstance(policy, DirectionalPolicy) or not policy.applies(self.instance.problem):
            return None
        if isinstance(environment, FreeSamples) and environment.n > 1:  # counts exceed the round: nothing is proved
            return None
        return policy.index if isinstance(policy.index, KL) else None

    @cached_property
    def unusual(self) -> str:
        """What no theorem but those of linear models allows, in words; empty if there is nothing."""
        environment = self.instance.environment
        drawn_by = environment.environment if isinstance(environment, FreeSamples) else environment
        if environment.totals:
            return "only totals are told here"
        if environment.n_contexts:
            return "outcomes depend on contexts here"
        if type(drawn_by).changes is not Environment.changes:
            return "the means change over time here"
        if environment.own_reward or not self.instance.problem.reward.additive:
            return "the reward is not a sum over items here"
        return "" if self.guarantee.alpha > 0.0 else "the policy's oracle guarantees nothing here"

    @property
    def eras(self) -> int:
        """How many means there are up to the longest horizon, if it is not too long to say."""
        return len(self.instance.environment.changes(int(min(self.horizon.max(), 1e6))))

    @property
    def partial(self) -> str:
        """That feedback is partial, in words; empty if it is not."""
        return "only a part of each batch is observed here" if self.instance.environment.partial else ""

    @property
    def claimed(self) -> str:
        """That the smoothness is what a reward of the user's own says of itself, in words."""
        reward = self.instance.problem.reward
        return "" if has_proof(reward) else f"smoothness as {type(reward).__name__} claims it"

    def violates(self, assumptions: str) -> str:
        """What contradicts the assumptions of a theorem, in words."""
        if assumptions is contextual.ASSUMPTIONS:
            return self.partial
        late = "feedback must arrive before the next round" if self.delay and assumptions is not LATE else ""
        if assumptions in (total.FROM_PRIOR, total.SUBMODULAR):
            return late or ("the means change over time here" if self.eras > 1 else "")
        return self.unusual or late or ("" if assumptions is LISTS else self.partial)


@dataclass(frozen=True)
class Theorem:
    """One theorem: its bound, the policies that it is about in words and as a test, and what else it assumes."""

    compute: Callable[[Question], Bound]
    about: str
    covers: Callable[[Question], bool]
    assumptions: str = COMPLETE


def _theorems(
    about: str,
    covers: Callable[[Question], bool],
    *computes: Any,
    assumptions: str = COMPLETE,
    more: Any = lambda c: (),
) -> dict[str, Theorem]:
    """Theorems about the same policies, by name; ``more`` are further arguments of their functions."""

    def bound(compute: Callable[..., Bound]) -> Callable[[Question], Bound]:
        return lambda c: compute(c.instance, c.horizon, c.gaps, *more(c))

    return {compute.__name__: Theorem(bound(compute), about, covers, assumptions) for compute in computes}


def _has(index: Index, lists: bool = False) -> Callable[[Question], bool]:
    """Whether the policy has this index, with its constants; with ``lists``, on an instance with partial feedback."""
    return lambda c: c.index == index and (c.instance.environment.partial or not lists)


def _plays_c2_ucb(case: Question) -> bool:
    policy = case.policy
    return (
        isinstance(policy, LinearPolicy) and policy.rule == Ellipsoid(1.0, policy.rule.ridge) and policy.discount == 1
    )


def _rate(compute: Callable[[Question], float], dependent: Callable[[Question], bool]) -> Theorem:
    """An asymptotic rate of consistent policies, with some problems of ``dependent`` entries among the others."""

    def found(case: Question) -> Bound:
        return Bound("", case.horizon, (0.0, 0.0, 0.0), kind="rate", rate=compute(case))

    return Theorem(found, f"consistent policies with {EXACT}", lambda c: _is_consistent(c, dependent(c)), COMPLETE)


def _is_exact(case: Question) -> bool:
    return case.guarantee == Guarantee(1.0, 1.0)


def _is_consistent(case: Question, dependent: bool) -> bool:
    known = case.policy.consistent
    return _is_exact(case) and bool(known is True or (known == "independent" and not dependent))


def _plays_cts(case: Question) -> bool:
    return isinstance(case.policy, IndexPolicy) and replace(case.policy, oracle=Default()) == catalog.cts()


def _gap_free(compute: Callable[..., Any]) -> Callable[[Question], Bound]:
    def found(case: Question) -> Bound:
        compute(case.instance, 1.0)  # refuses what it does not cover
        return Bound("", case.horizon, (0.0, 0.0, functools.partial(compute, case.instance)), kind="size")

    return found


def _growth(case: Question) -> Bound:
    if not _is_exact(case):
        raise InvalidArgument("policy", thompson.INEXACT, "give an exact oracle")
    return Bound("", case.horizon, (0.0, 0.0, 0.0), kind="growth", rate=thompson.growth_cts(case.instance, case.gaps))


def _c2_ucb(case: Question) -> Bound:
    rule = case.policy.rule  # type: ignore[attr-defined]
    return contextual.upper_bound_c2_ucb(case.instance.problem, case.horizon, rule.ridge)


_THREE_LOGS, _DEFAULT, _SAME_LAW = KL(3.0, 0.0), KL(1.0, 3.0), COMPLETE.replace("the same means", "the same law")
_DIRECTIONS = "directional_kl_ucb() on rewards with linear gains that greedy serves"
_RADIUS = "VAC²-UCB with the radius of the horizon in every round, which vac2_ucb() lacks"
_OF_PAPER = (paper.upper_bound, paper.upper_bound_gap_free, paper.upper_bound_sequences, paper.upper_bound_unsplit)
_OF_THREE_LOGS = (kl_ucb.upper_bound_kl, kl_ucb.upper_bound_kl_gap_free, local.upper_bound_local)
_OF_DEFAULT = (kl_ucb.upper_bound_kl_default, kl_ucb.upper_bound_kl_default_gap_free, local.upper_bound_local_default)
_SHARPENED = (bc_ucb.upper_bound_sharp, bc_ucb.upper_bound_sharp_gap_free)
_OF_DIRECTIONS = (directional.upper_bound_directional, directional.upper_bound_directional_greedy)

THEOREMS: Mapping[str, Theorem] = {
    **_theorems("bc_ucb()", _has(Bernstein(3.0)), *_OF_PAPER, *_SHARPENED),
    **_theorems("kl_ucb(rho=3, c=0)", _has(_THREE_LOGS), *_OF_THREE_LOGS),
    **_theorems(
        "kl_ucb(rho=3, c=0)", _has(_THREE_LOGS), kl_ucb.upper_bound_kl_late, assumptions=LATE, more=lambda c: (c.delay,)
    ),
    **_theorems("kl_ucb()", _has(_DEFAULT), *_OF_DEFAULT),
    **_theorems("cucb()", _has(Hoeffding(3.0)), paper.upper_bound_wang_chen),
    **_theorems("bcucb_t() on cascades", _has(Bernstein(3.0), True), cascade.upper_bound_cascade, assumptions=LISTS),
    **_theorems(
        "cascade_kl_ucb() on cascades", _has(_DEFAULT, True), cascade.upper_bound_cascade_kl, assumptions=LISTS
    ),
    **_theorems(
        _DIRECTIONS, lambda c: c.level is not None, *_OF_DIRECTIONS, assumptions=_SAME_LAW, more=lambda c: (c.level,)
    ),
    "upper_bound_c2_ucb": Theorem(_c2_ucb, "c2_ucb(rho=1)", _plays_c2_ucb, contextual.ASSUMPTIONS),
    "upper_bound_vac2_ucb": Theorem(_c2_ucb, _RADIUS, lambda c: False, contextual.ASSUMPTIONS),
    "bayes_bound_total": Theorem(
        lambda c: total.bayes_bound_total(c.instance, c.horizon),
        "total_thompson(sharpness=1, later=1)",
        lambda c: c.policy == TotalThompson(1.0, 1.0),
        total.FROM_PRIOR,
    ),
    "upper_bound_greedy_commit": Theorem(
        lambda c: total.upper_bound_greedy_commit(c.instance, c.horizon),
        "greedy_then_commit(horizon)",
        lambda c: isinstance(c.policy, GreedyThenCommit),
        total.SUBMODULAR,
    ),
    "growth_cts": Theorem(_growth, "cts()", _plays_cts),
    **_theorems(EXACT, _is_exact, lower.lower_bound_near),
    "lower_bound": _rate(
        lambda c: lower.lower_bound(c.instance, c.gaps).exact, lambda c: c.instance.problem.n_items > 1
    ),
    "lower_bound_independent": _rate(
        lambda c: lower.lower_bound_independent(c.instance, c.gaps).exact, lambda c: False
    ),
    "lower_bound_smooth": _rate(lambda c: lower.lower_bound_smooth(c.instance, c.gaps), lambda c: True),
    "lower_bound_gap_free": Theorem(_gap_free(lower.lower_bound_gap_free), EXACT, _is_exact),
    "lower_bound_smooth_gap_free": Theorem(_gap_free(lower.lower_bound_smooth_gap_free), EXACT, _is_exact),
    "graves_lai": _rate(lambda c: graves_lai(c.instance).low, lambda c: not thompson.is_independent(c.instance)),
}
"""All theorems by name: from above, then from below."""


KINDS: Mapping[str, Kind] = {"upper": "upper", "bayes": "bayes"}
"""The kinds of the bounds from above, by the first word of their names."""


def evaluate(name: str, case: Question) -> Bound:
    """What one theorem says about a case, or why it does not apply."""
    theorem = THEOREMS[name]
    reason = case.violates(theorem.assumptions) if theorem.covers(case) else f"{_ABOUT}{theorem.about}"
    bound = Bound(name, case.horizon, None, kind=KINDS.get(name.partition("_")[0], "rate"), reason=reason)
    if not reason:
        try:
            case.policy.validate(case.instance.problem)
            bound = replace(theorem.compute(case), name=name)
        except InvalidArgument as error:
            bound = replace(bound, reason=error.wrong)
    alpha, beta = case.guarantee
    claimed = case.claimed if bound.kind == "upper" else ""
    assumptions = f"{theorem.assumptions}; {claimed}" if claimed else theorem.assumptions
    return replace(bound, alpha=alpha, beta=beta, assumptions=assumptions, claimed=claimed)


def bounds(instance: Instance, policy: Policy[Any], horizon: Any, delay: int = 0) -> "Bounds":
    r"""What every theorem of superarm says about the regret of ``policy`` on ``instance``.

    Upper bounds are of regret against :math:`\alpha\beta\,r_{\max}` with the guarantee of the policy's own oracle,
    lower bounds of that of any policy with an exact oracle. Rates say how regret of consistent policies grows in the
    end, and bound nothing at a horizon. The theorems are those of [MerlisMannor2019]_, [WangChen2017]_ and
    ``docs/theory``.

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
    given: Any = instance
    if not isinstance(given, Instance):
        remedy = "give one Instance; of a family, each of list(family)"
        raise InvalidArgument("instance", f"{type(given).__name__} is not an instance", remedy)
    instance.problem.require_shares(SIMULATE)
    case = Question(instance, policy, rounds(horizon), delay)
    return replace(tabulate(case), least=find_least(case))


PROVED = (
    *(catalog.bc_ucb(), catalog.kl_ucb(), catalog.kl_ucb(3.0, 0.0), catalog.cucb(), catalog.bcucb_t()),
    *(catalog.cascade_kl_ucb(), catalog.directional_kl_ucb()),
)
"""The policies that upper bounds are about, as far as superarm has them and they learn without features."""


def find_least(case: Question) -> str:
    """The policy with the least upper bound at the largest horizon, in a sentence; empty if none has a bound.

    Only policies whose oracle guarantees as much are compared: regret of others is against another target. A bound
    that says nothing, as every batch earns at least this target, is left out.
    """
    found, problem, last = [], case.instance.problem, np.array(np.max(case.horizon))
    for policy in PROVED:
        other = replace(case, policy=policy, horizon=last)
        try:
            policy.validate(problem)
            values = [evaluate(name, other) for name in THEOREMS if name.startswith("upper")]
        except InvalidArgument:
            continue
        if other.guarantee == case.guarantee:
            telling = (bound for bound in values if bound.applies and (bound.largest != 0.0 or bound.alpha == 1.0))
            found += [(float(bound.value), repr(policy)) for bound in telling]
    known = [pair for pair in found if np.isfinite(pair[0])]
    if not known:
        return ""
    value, name = min(known, key=lambda pair: pair[0])  # of equal ones the first
    against = target(case.instance, case.policy, "approximation").value
    what = f"The least upper bound known here of regret against {against:.4g} per round"
    return f"{what} is {value:.4g} after {last:g} rounds, for {name}."


def tabulate(case: Question) -> "Bounds":
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
    least: str = ""
    """Which policy has the least upper bound on this instance, in a sentence."""

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

    def to_frame(self) -> dict[str, list[Any]]:
        """A tidy table as a dict of columns: one row per theorem and horizon."""
        whose = ("name", "label", "kind", "rate", "crossover", "target", "alpha", "beta")
        fixed = (*whose, "applies", "reason", "assumptions")
        times = np.ravel(self.horizon).tolist()
        columns: dict[str, list[Any]] = {key: [getattr(b, key) for b in self for _ in times] for key in fixed}
        moving = {key: [getattr(b, key) for b in self] for key in ("horizon", "value", "trivial", "vacuous")}
        return columns | {key: np.concatenate([np.ravel(x) for x in parts]).tolist() for key, parts in moving.items()}

    def to_pandas(self) -> Any:
        """The table of ``to_frame`` as a pandas DataFrame."""
        return labels.to_pandas(self.to_frame())

    def __repr__(self) -> str:
        applying, least = self.applying, [self.least] if self.least else []
        if not applying:
            return "\n".join([f"No theorem is about {self.policy} here.", *explain_left_out(self), *least])
        one = applying[0]
        share = f"alpha {one.alpha:.4g}, beta {one.beta:.4g}"
        head = f"Regret of {self.policy} against {one.target:.4g} per round ({share})"
        times = [f"T = {t:g}" for t in np.ravel(self.horizon)]
        width = max(len(bound.label) for bound in applying)
        table = [f"{'':<6} {'':<{width}}  " + "  ".join(f"{time:>10}" for time in times)]
        for bound in applying:
            values = "  ".join(f"{v:>10.4g}" for v in np.ravel(bound.value))
            cells = bound.limit if bound.kind in ("rate", "growth") else values
            use = f"  {bound.usefulness}" if bound.is_upper else ""
            table.append(f"{bound.kind:<6} {bound.label:<{width}}  {cells}{use}")
        assumed = dict.fromkeys(bound.assumptions for bound in applying if bound.is_upper)
        told = (f"Assumed: {text}." for text in assumed)
        return "\n".join([head, *table, *least, *explain_left_out(self), *told])


def explain_left_out(rows: Iterable[Bound]) -> list[str]:
    """Why theorems do not apply: one sentence for those about something else, one for each other reason."""
    reasons = dict[str, list[str]]()
    for bound in rows:
        if not bound.applies:
            reasons.setdefault(bound.reason, []).append(bound.label)
    others = [reason.removeprefix(_ABOUT) for reason in reasons if reason.startswith(_ABOUT)]
    own = [f"Not {'; '.join(labels)}: {reason}." for reason, labels in reasons.items() if not reason.startswith(_ABOUT)]
    return [*own, f"Other theorems are about {'; '.join(others)}."] if others else own
