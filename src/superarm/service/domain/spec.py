"""The description of a problem, as its owner sends it, and the library's problem and policy made from it."""

from collections.abc import Iterable
from typing import Annotated, Literal

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType, field

from superarm import policies
from superarm.actions import Actions, Explicit, Subsets
from superarm.agent.learner import fit_policy
from superarm.agent.names import Names
from superarm.core.errors import InvalidArgument
from superarm.core.problem import Problem
from superarm.core.support import Sparse
from superarm.policies import Policy
from superarm.rewards import Reward
from superarm.service.domain import action_sets
from superarm.service.domain.action_sets import AnyActionSpec, to_actions
from superarm.service.domain.components import REWARDS, build, find, find_policy
from superarm.service.domain.context_spec import ContextSpec, check_context, check_items_from, to_context

Name = action_sets.Name
ProblemName = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f/]*$")]
"""The name of a problem, which is a part of the names of logs and of labels, has no slash."""
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Weight = Annotated[float, Meta(ge=0.0, le=1e12)]
Rounds = Annotated[int, Meta(ge=1, le=1_000_000_000)]
PolicyName = Annotated[str, Meta(min_length=1, max_length=100, examples=["kl_ucb"])]
Mode = Literal["online", "apprentice", "logging_only"]
Late = Literal["ignore", "learn"]
Window = Annotated[float, Meta(gt=0.0, le=3.2e8)]
MaxPending = Annotated[int, Meta(ge=1, le=10_000_000)]
Rate = Annotated[float, Meta(gt=0.0, le=1e6)]
Draws = Annotated[int, Meta(ge=0, le=10_000)]
ControlSlate = Literal["baseline", "uniform"] | Annotated[list[Name], Meta(min_length=1, max_length=1_000)]
Guardrail = Annotated[float, Meta(gt=0.0, lt=1.0)]
Word = Annotated[str, Meta(min_length=1, max_length=40, pattern=r"^[^\x00-\x1f\x7f/]+(/[^\x00-\x1f\x7f/]+)?$")]
RewardName = Annotated[str, Meta(min_length=1, max_length=100, examples=["coverage"])]

MAX_ARMS, MAX_ITEMS, MAX_ENTRIES, MAX_K = 100_000, 10_000, 5_000_000, 1_000


def check_new_names(names: Iterable[str], argument: str) -> None:
    """Refuse names that a URL path or a reader would lose: blank ones, ".", "..", and those with a final line break.

    Logs of earlier versions hold such names, so ``Name``, by which logs are read, allows them.
    """
    for name in names:
        if name in (".", "..") or not name.strip() or name.endswith("\n"):
            raise InvalidArgument(
                argument, f"{name!r}", 'take a name that is not blank, "." or "..", and ends in no line break'
            )


class PolicySpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy of the catalogue by its name, with its parameters.

    For environments that change: with ``window`` it uses the last ``window`` rounds only; with ``half_life`` the weight
    of a round halves every ``half_life`` rounds.
    """

    name: PolicyName = "kl_ucb"
    parameters: dict[str, float] = field(default_factory=dict)
    window: Rounds | UnsetType = UNSET
    half_life: Rounds | UnsetType = UNSET


class RewardSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The reward (what a slate is worth) by its name, with its parameters."""

    name: RewardName = "coverage"
    parameters: dict[str, float] = field(default_factory=dict)


class Words(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the owner of a problem calls its parts, in the singular; the console, warnings and exports use these words.

    A plural that does not end in s is given after a stroke: ``"person/people"``. ``unit`` is that of rewards.

    >>> Words(arm="product", item="category", decision="person/people").many("item")
    'categories'
    """

    arm: Word = "arm"
    item: Word = "item"
    outcome: Word = "outcome"
    decision: Word = "decision"
    slate: Word = "slate"
    unit: Annotated[str, Meta(max_length=20, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""

    def one(self, part: str) -> str:
        """The word for one of them."""
        return str(getattr(self, part)).partition("/")[0]

    def many(self, part: str) -> str:
        """The word for several of them."""
        word, _, plural = getattr(self, part).partition("/")
        if plural:
            return str(plural)
        if word.endswith("y") and word[-2:-1] not in "aeiou":
            return f"{word[:-1]}ies"
        return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings, which can be changed while the counters are kept; each change is a new version in the log.

    ``at_window_end`` says what happens to entries without feedback: with a number they count as that value, with
    ``"ignore"`` not at all. ``late`` says what happens to feedback after the end of the window. ``explore`` is the
    share of slots drawn at random, with logged propensities. Where no formula is known, as for Thompson sampling,
    ``propensity_draws`` further slates are drawn with a decision, to count how likely each of its arms was.

    ``control`` is the share of decisions that get ``control_slate``: the caller's baseline, a slate drawn uniformly, or
    one by the names of its arms. With ``guardrail``, a share, the policy is shown only while what it has surely earned
    is at least 1 - guardrail of what the control slate would have.

    ``max_pending`` limits how many decisions may await feedback, ``max_per_second`` how many each worker makes per
    second on average, and twice as many at once; further ones are refused with 429. ``words`` are what people call
    arms, items and outcomes.
    """

    policy: PolicySpec = PolicySpec()
    mode: Mode = "online"
    explore: Share = 0.0
    window_s: Window | None = 86_400.0
    at_window_end: Share | Literal["ignore"] = "ignore"
    late: Late = "ignore"
    max_pending: MaxPending = 100_000
    propensity_draws: Draws = 0
    control: Share = 0.0
    control_slate: ControlSlate = "baseline"
    guardrail: Guardrail | None = None
    max_per_second: Rate | UnsetType = UNSET
    words: Words | UnsetType = UNSET


class ProblemSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The description of a problem: arms, items, reward, which slates may be shown, and the settings.

    ``k`` (any k arms) and ``batches`` (a list) are the short forms of two ``actions``. ``support`` names, for every
    arm, the items that it can touch; without it every arm may touch every item. ``triggered`` says that showing a slate
    may trigger other arms, so that feedback may be about arms outside of the slate. ``context`` declares what is known
    of users and arms, and the model that learns from it.
    """

    arms: Annotated[list[Name], Meta(min_length=1, max_length=MAX_ARMS)]
    items: Annotated[list[Name], Meta(min_length=1, max_length=MAX_ITEMS)] = field(default_factory=lambda: ["value"])
    weights: Annotated[list[Weight], Meta(max_length=MAX_ITEMS)] | None = None
    reward: RewardSpec = RewardSpec()
    k: Annotated[int, Meta(ge=1, le=MAX_K)] = 1
    batches: Annotated[list[list[Name]], Meta(min_length=1, max_length=100_000)] | None = None
    settings: Settings = Settings()
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    actions: AnyActionSpec | None = None
    support: dict[Name, Annotated[list[Name], Meta(max_length=MAX_ITEMS)]] | None = None
    triggered: bool = False
    context: ContextSpec | None = None


BLOCKS = 16
"""A sliding window is kept in this many blocks, each with a tally, and moves by one block at a time."""


def to_problem(spec: ProblemSpec) -> Problem:
    """The library's problem; ``InvalidArgument`` says what does not fit.

    >>> to_problem(ProblemSpec(arms=["a", "b"], k=2)).k
    2
    """
    arms, items = Names(spec.arms, "arms"), Names(spec.items, "items")
    check_size(len(spec.arms), len(spec.items), spec.support)
    if spec.reward.name == "spread" and spec.arms != spec.items:
        raise InvalidArgument("items", "differ from the arms", "with the reward spread both are the nodes")
    support = None if spec.support is None else to_support(arms, items, spec.support)
    actions = _actions(spec, arms)
    reward = to_reward(spec.reward)
    context = None if spec.context is None else to_context(spec.context, spec.arms)
    problem = Problem(len(spec.arms), len(spec.items), reward, actions, spec.weights, support, context)
    check_context(problem)
    check_items_from(spec.context, spec.items, support is None and not spec.triggered)
    if spec.triggered and context is not None and context.pairs:
        wrong = "arms outside of the slate may be triggered, whose pairs are not stored"
        raise InvalidArgument("context.pairs", wrong, "leave out pairs, or triggered")
    return problem


def _actions(spec: ProblemSpec, arms: Names) -> Actions:
    if spec.actions is not None:
        if spec.batches is not None or spec.k != 1:
            raise InvalidArgument("actions", "given beside k or batches", "give one of the three")
        return to_actions(spec.actions, arms)
    return Subsets(spec.k) if spec.batches is None else Explicit([arms.numbers(batch) for batch in spec.batches])


def check_size(n_arms: int, n_items: int, support: dict[str, list[str]] | None) -> None:
    """Refuse a problem with too many entries."""
    if support is None and n_arms * n_items > MAX_ENTRIES:
        raise InvalidArgument("arms", f"{n_arms} arms x {n_items} items", f"at most {MAX_ENTRIES}")
    entries = 0 if support is None else sum(len(touched) for touched in support.values())
    if entries > MAX_ENTRIES:
        raise InvalidArgument("support", f"{entries} entries", f"at most {MAX_ENTRIES}")


def to_support(arms: Names, items: Names, support: dict[str, list[str]]) -> Sparse:
    """The items of every arm, by numbers.

    >>> arms, items = Names(["a", "b"], "arms"), Names(["x", "y", "z"], "items")
    >>> to_support(arms, items, {"a": ["z", "x"], "b": ["y"]}).items
    array([0, 2, 1])
    """
    unknown = next((arm for arm in support if arms.number(arm) is None), None)
    if unknown is not None:
        raise InvalidArgument("support", f"unknown arm {unknown!r}", "name arms of the problem")
    rows = []
    for arm in arms.all:
        try:
            rows.append(np.sort(items.numbers(support.get(arm, []))))
        except InvalidArgument as error:
            raise InvalidArgument("support", f"arm {arm!r}: {error.wrong}", error.remedy) from None
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return Sparse(len(items.all), len(rows), start, np.concatenate(rows).astype(np.int64))


def to_reward(spec: RewardSpec) -> Reward:
    """The library's reward."""
    make = find(spec.name, REWARDS, "reward.name")
    return build(make, spec.parameters, "reward.parameters")  # type: ignore[no-any-return]


def to_policy(spec: PolicySpec) -> Policy:
    """The library's policy.

    >>> to_policy(PolicySpec("bc_ucb", {"rho": 1.0})).index
    Bernstein(rho=1)
    """
    make = find_policy(spec.name).make
    policy: Policy = build(make, spec.parameters, "policy.parameters")
    if spec.window is not UNSET and spec.half_life is not UNSET:
        raise InvalidArgument("policy.half_life", "given beside window", "give one of the two")
    if spec.window is not UNSET:
        return policies.sliding_window(policy, spec.window, min(BLOCKS, spec.window))
    return policy if spec.half_life is UNSET else policies.discounted(policy, spec.half_life)


def check_control(settings: Settings, problem: Problem, arms: Names) -> None:
    """Refuse a control slate that cannot be shown, and a guardrail without anything to compare with."""
    if settings.guardrail is not None and settings.control == 0.0:
        raise InvalidArgument("settings.guardrail", "given without control", "give a share of control, such as 0.05")
    if settings.control_slate == "uniform" and not problem.actions.matroid:
        raise InvalidArgument(
            "settings.control_slate", "the action set is no matroid", 'give the names of a slate, or "baseline"'
        )
    if isinstance(settings.control_slate, list):
        try:
            slate = arms.numbers(settings.control_slate)
        except InvalidArgument as error:
            raise InvalidArgument("settings.control_slate", error.wrong, error.remedy) from None
        if len(set(slate.tolist())) < len(slate) or not problem.actions.includes(slate, problem.n_arms):
            raise InvalidArgument("settings.control_slate", "outside the action set", f"a slate of {problem.actions}")


def check_settings(settings: Settings, problem: Problem) -> None:
    """Refuse settings that do not fit the problem."""
    try:
        fit_policy(to_policy(settings.policy), problem)
    except InvalidArgument as error:
        if problem.context is not None or "needs a context" not in error.wrong:
            raise
        remedy = "declare a context when the problem is created, or choose another policy"
        raise InvalidArgument("settings.policy", f"{settings.policy.name} needs a context", remedy) from None
    forgets = settings.policy.window is not UNSET or settings.policy.half_life is not UNSET
    if forgets and problem.n_entries * BLOCKS > 4 * MAX_ENTRIES:
        most = 4 * MAX_ENTRIES // BLOCKS
        raise InvalidArgument("settings.policy", f"it would remember {problem.n_entries} entries", f"at most {most}")
    if settings.explore > 0.0 and not problem.actions.matroid:
        raise InvalidArgument("settings.explore", "the action set is not a matroid", "take a matroid: k, slots, …")
