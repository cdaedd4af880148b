"""The description of a problem, as its owner sends it, and the library's problem and policy made from it."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import replace

from superarm import policies
from superarm.actions import Actions, Explicit, Subsets
from superarm.agent.agent import start_from
from superarm.agent.learner import fit_policy
from superarm.agent.recommendation import Advice, recommend
from superarm.core.errors import InvalidArgument
from superarm.core.support import Sparse
from superarm.decisions.names import Names
from superarm.policies import Policy
from superarm.policies.pooled import read_earlier
from superarm.problem import Problem
from superarm.rewards import Reward
from superarm.service.domain import components
from superarm.service.domain.components import AnyActionSpec, Batches, Name
from superarm.service.domain.context_spec import ContextSpec, check_context, check_items_from, to_context
from superarm.thresholds import Thresholds

ProblemName = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f/]*$")]
"""The name of a problem, which is a part of the names of logs and of labels, has no slash."""
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Weight = Annotated[float, Meta(ge=0.0, le=1e12)]
Score = Annotated[float, Meta(ge=-1e12, le=1e12)]
Rounds = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Mode = Literal["online", "apprentice", "logging_only"]
Late = Literal["ignore", "learn"]
Slate = Annotated[list[Name], Meta(min_length=1, max_length=1_000)]
Pauses = Annotated[dict[Name, Annotated[datetime, Meta(tz=True)]], Meta(max_length=100_000)]
Word = Annotated[str, Meta(min_length=1, max_length=40, pattern=r"^[^\x00-\x1f\x7f/]+(/[^\x00-\x1f\x7f/]+)?$")]

MAX_ARMS, MAX_ITEMS, MAX_ENTRIES, MAX_K = 100_000, 10_000, 5_000_000, 1_000
MAX_TABLE = 2_000_000
MAX_TOTAL_ARMS = 500
"""With so many arms of which only totals are told, a fit takes a third of a second."""


SPENDING = ("ladder", "spend_set")
"""Policies that learn what arms cost from the second item."""


def check_new_names(names: Iterable[str], argument: str) -> None:
    """Refuse names that a URL path or a reader would lose: blank ones, ".", "..", and those with a final line break."""
    for name in names:
        if name in (".", "..") or not name.strip() or name.endswith("\n"):
            remedy = 'take a name that is not blank, "." or "..", and ends in no line break'
            raise InvalidArgument(argument, f"{name!r}", remedy)


class PolicySpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A policy of the catalogue by its name, with its parameters.

    Parameters
    ----------
    name
        The name of the policy; without it, a new problem takes what is recommended for its kind.
    parameters
        Its parameters by name; those that are left out have their defaults.
    window
        For environments that change: only so many of the last rounds are used.
    half_life
        For environments that change: the weight of a round halves every so many rounds.
    baseline
        Your ranking of arms, best first: ``pooled_thompson`` starts from the first ones, and expects less of the next.
    caution
        What learning may cost beside that ranking: ``careful`` for a short time, ``normal``, ``bold`` for a long one.
    """

    name: Annotated[str, Meta(max_length=100, examples=["kl_ucb"])] = ""
    parameters: dict[str, float] = field(default_factory=dict)
    window: Rounds | UnsetType = UNSET
    half_life: Rounds | UnsetType = UNSET
    baseline: Slate | UnsetType = UNSET
    caution: Literal["careful", "normal", "bold"] | UnsetType = UNSET


class RewardSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The reward (what a slate is worth) by its name, with its parameters.

    Parameters
    ----------
    name
        The name of the reward; a refusal lists them.
    parameters
        Its parameters by name; those that are left out have their defaults.
    """

    name: Annotated[str, Meta(min_length=1, max_length=100, examples=["coverage"])] = "coverage"
    parameters: dict[str, float] = field(default_factory=dict)


class ScoresSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The scale of scores, of which the best one of a slate counts. Scores beyond its ends count as these.

    Parameters
    ----------
    low
        The lowest score.
    high
        The highest score.
    bins
        Into how many bins of one width the scale is cut.
    edges
        The edges of the bins, increasing, in place of ``low``, ``high`` and ``bins``.
    utility
        What a best score at each edge is worth, if that is not the score.
    """

    low: Score | None = None
    high: Score | None = None
    bins: Annotated[int, Meta(ge=1, le=1_000)] = 20
    edges: Annotated[list[Score], Meta(min_length=2, max_length=1_001)] | None = None
    utility: Annotated[list[Score], Meta(min_length=2, max_length=1_001)] | None = None

    @property
    def thresholds(self) -> Thresholds:
        """The library's scale; ``InvalidArgument`` says what does not fit."""
        try:
            return Thresholds(self.low, self.high, self.bins, self.utility, self.edges)
        except InvalidArgument as error:
            raise InvalidArgument(f"scores.{error.argument}", error.wrong, error.remedy) from None

    @property
    def names(self) -> list[str]:
        """The names of the thresholds: the upper edge of each bin."""
        named = [f"{edge:.6g}" for edge in self.thresholds.edges[1:]]
        return named if len(set(named)) == len(named) else [f"bin {n + 1}" for n in range(len(named))]


class Words(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the owner of a problem calls its parts, in the singular; the console, warnings and exports use these words.

    A plural that does not end in s is given after a stroke: ``"person/people"``. ``unit`` is that of rewards.

    Parameters
    ----------
    arm
        One arm, such as product.
    item
        One item, such as segment.
    outcome
        What an arm does for an item, such as click.
    decision
        One decision, such as view.
    slate
        The arms that are shown together, such as page.
    unit
        The unit of rewards, such as €; empty for none.

    Examples
    --------
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

    Parameters
    ----------
    policy
        The policy that chooses slates.
    mode
        ``online``: the policy chooses. ``apprentice``: the answer is the caller's baseline, and the policy learns.
        ``logging_only``: the answer is the baseline, and nothing is learnt.
    explore
        The share of slots drawn at random, with logged propensities.
    window_s
        How many seconds feedback is awaited; null for no limit.
    at_window_end
        What entries without feedback count as when the window ends: a number, or ``ignore`` for not at all.
    provisional
        Whether entries count as ``at_window_end`` from the start, until feedback replaces it; if false, they are
        pending until the window ends.
    late
        What happens to feedback after the end of the window: ``ignore`` only logs it, ``learn`` counts it.
    max_pending
        How many decisions may await feedback; further ones are refused with 429.
    propensity_draws
        How many further slates are drawn with a decision to count how likely its arms were, where no formula is
        known.
    control
        The share of decisions that show the control slate, to compare the policy with it.
    control_slate
        What they show: the ``baseline``, which is that of the request, or else the first arms of ``policy.baseline``;
        a ``uniform`` slate; or a slate by the names of its arms. The next arms of ``policy.baseline`` stand in for
        those that are retired, paused or excluded.
    guardrail
        The share of the control slate's earnings that may be lost: the policy is shown only while it has surely
        earned the rest.
    max_per_second
        How many decisions each worker makes per second on average, and twice as many at once.
    words
        What people call arms, items and outcomes.
    paused_until
        Arms that no slate has before a date, such as products that are sold out: ISO 8601 with a time zone, by arm.
    serve
        ``decisions``: each one is asked for. ``table``: applications decide from published tables.
    table_rows
        How many slates a table has for each segment: a power of two.
    table_expires_s
        After how many seconds a table may be used no more; null for no limit.
    planned
        The planned end of the comparison with the control share: after so many decisions, or a date (ISO 8601 with a
        time zone). Then it speaks once, with a narrower interval. Null: look as often as you like.
    """

    policy: PolicySpec = PolicySpec()
    mode: Mode = "online"
    explore: Share = 0.0
    window_s: Annotated[float, Meta(gt=0.0, le=3.2e8)] | None = 86_400.0
    at_window_end: Share | Literal["ignore"] = "ignore"
    late: Late = "ignore"
    max_pending: Annotated[int, Meta(ge=1, le=10_000_000)] = 100_000
    propensity_draws: Annotated[int, Meta(ge=0, le=10_000)] = 0
    control: Share = 0.0
    control_slate: Literal["baseline", "uniform"] | Slate = "baseline"
    guardrail: Annotated[float, Meta(gt=0.0, lt=1.0)] | None = None
    max_per_second: Annotated[float, Meta(gt=0.0, le=1e6)] | UnsetType = UNSET
    words: Words | UnsetType = UNSET
    provisional: bool = True
    paused_until: Pauses | UnsetType = UNSET
    serve: Literal["decisions", "table"] = "decisions"
    table_rows: Literal[16, 32, 64, 128, 256, 512, 1024] = 256
    table_expires_s: Annotated[float, Meta(ge=1.0, le=3.2e8)] | None = None
    planned: Rounds | Annotated[datetime, Meta(tz=True)] | None = None

    @property
    def silence(self) -> float | None:
        """What entries count as until they are told; None if they are pending."""
        return None if self.at_window_end == "ignore" or not self.provisional else self.at_window_end

    @property
    def paused(self) -> bool:
        """Whether every decision shows the baseline or the control slate."""
        return self.mode != "online" or self.control == 1.0


class ProblemSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The description of a problem: arms, items, reward, which slates may be shown, and the settings.

    Parameters
    ----------
    arms
        The names of all arms: what slates are made of, products for instance.
    items
        The names of all items: what an arm may succeed with, segments of customers for instance. ``learn``: outcomes
        are about arms alone, and the groups of visitors that slates should serve are learnt from the decisions.
    weights
        How much each item counts in the reward; 1 each by default.
    reward
        What a slate is worth.
    k
        Slates have k arms, any of them: the short form of the action set ``subsets``.
    batches
        The slates that may be shown, each a list of arms: the short form of the action set ``explicit``.
    settings
        The settings, which can be changed later.
    seed
        A seed for everything random; a random one by default.
    actions
        Which slates may be shown, in place of ``k`` and ``batches``.
    support
        For every arm the items that it can touch; without it, every arm may touch every item.
    triggered
        Whether showing a slate may trigger other arms, so that feedback may be about arms outside of the slate.
    context
        What is known of users and arms, and the model that learns from it.
    scores
        The scale of scores, in place of ``items``: arms are told scores, and a slate is worth the best of them.
    """

    arms: Annotated[list[Name], Meta(min_length=1, max_length=MAX_ARMS)]
    items: Annotated[list[Name], Meta(min_length=1, max_length=MAX_ITEMS)] | Literal["learn"] = field(
        default_factory=lambda: ["value"]
    )
    weights: Annotated[list[Weight], Meta(max_length=MAX_ITEMS)] | None = None
    reward: RewardSpec = RewardSpec()
    k: Annotated[int, Meta(ge=1, le=MAX_K)] = 1
    batches: Batches | None = None
    settings: Settings = Settings()
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1)] | None = None
    actions: AnyActionSpec | None = None
    support: dict[Name, Annotated[list[str], Meta(max_length=MAX_ITEMS)]] | None = None
    triggered: bool = False
    context: ContextSpec | None = None
    scores: ScoresSpec | None = None

    @property
    def item_names(self) -> list[str]:
        """The names of all items; where these are learnt, outcomes have one name."""
        if self.scores is not None:
            return self.scores.names
        return ["value"] if self.items == "learn" else list(self.items)


BLOCKS = 16
"""A sliding window is kept in this many blocks, each with a tally, and moves by one block at a time."""


def to_problem(spec: ProblemSpec) -> Problem:
    """The library's problem; ``InvalidArgument`` says what does not fit.

    >>> to_problem(ProblemSpec(arms=["a", "b"], k=2)).k
    2
    """
    names = spec.item_names
    arms, items = Names(spec.arms, "arms"), Names(names, "items")
    check_size(len(spec.arms), len(names), spec.support)
    _check_learnt(spec)
    _check_scores(spec)
    support = None if spec.support is None else to_support(arms, items, spec.support)
    actions = _actions(spec, arms)
    reward = to_reward(spec.reward)
    check_totals(reward, len(spec.arms))
    context = None if spec.context is None else to_context(spec.context, spec.arms)
    given: Any = {"n_items": len(names), "weights": spec.weights, "support": support}
    given = given if spec.scores is None else {"items": spec.scores.thresholds}
    problem = Problem(len(spec.arms), reward=reward, actions=actions, context=context, **given)
    check_context(problem)
    check_items_from(spec.context, names, support is None and not spec.triggered)
    if spec.triggered and context is not None and context.pairs:
        wrong = "arms outside of the slate may be triggered, whose pairs are not stored"
        raise InvalidArgument("context.pairs", wrong, "leave out pairs, or triggered")
    return problem


def _check_learnt(spec: ProblemSpec) -> None:
    """Refuse what does not go with items that are learnt."""
    if spec.items == "learn":
        given = {"weights": spec.weights, "support": spec.support, "context": spec.context, "triggered": spec.triggered}
        wrong = next((name for name, value in given.items() if value), None)
        if wrong is not None or spec.reward != RewardSpec():
            raise InvalidArgument(wrong or "reward", "given beside items that are learnt", "leave it out")


def _check_scores(spec: ProblemSpec) -> None:
    """Refuse what does not go with scores."""
    if spec.scores is not None:
        given = {"items": spec.items != ["value"], "weights": spec.weights, "support": spec.support}
        wrong = next((name for name, value in (given | {"triggered": spec.triggered}).items() if value), None)
        if wrong is not None:
            raise InvalidArgument(wrong, "given beside scores", "leave it out")


def _actions(spec: ProblemSpec, arms: Names) -> Actions:
    if spec.actions is not None:
        if spec.batches is not None or spec.k != 1:
            raise InvalidArgument("actions", "given beside k or batches", "give one of the three")
        return components.to_actions(spec.actions, arms)
    return Subsets(spec.k) if spec.batches is None else Explicit([arms.numbers(batch) for batch in spec.batches])


def check_size(n_arms: int, n_items: int, support: dict[str, list[str]] | None) -> None:
    """Refuse a problem with too many entries."""
    entries = n_arms * n_items if support is None else sum(len(touched) for touched in support.values())
    if entries > MAX_ENTRIES:
        wrong = f"{n_arms} arms x {n_items} items" if support is None else f"{entries} entries"
        raise InvalidArgument("arms" if support is None else "support", wrong, f"at most {MAX_ENTRIES}")


def check_totals(reward: Reward, n_arms: int) -> None:
    """Refuse more arms than can be learnt from totals while others wait."""
    if reward.totals and n_arms > MAX_TOTAL_ARMS:
        wrong = f"{n_arms} arms, of which only totals are told"
        raise InvalidArgument("arms", wrong, f"give at most {MAX_TOTAL_ARMS}, or groups of arms")


def to_support(arms: Names, items: Names, support: dict[str, list[str]]) -> Sparse:
    """The items of every arm, by numbers.

    >>> arms, items = Names(["a", "b"], "arms"), Names(["x", "y", "z"], "items")
    >>> to_support(arms, items, {"a": ["z", "x"], "b": ["y"]}).items
    array([0, 2, 1])
    """
    components.check_arms(support, arms.all, "support")
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
    make = components.find(spec.name, components.REWARDS, "reward.name")
    return components.build(make, spec.parameters, "reward.parameters")


def advise(problem: Problem, policy: PolicySpec, learnt: bool) -> Advice:
    """The policy that is recommended; items that are ``learnt`` count as several, although there is one at first."""
    return recommend(problem, listed=learnt or policy.baseline is not UNSET)


def complete(spec: ProblemSpec, problem: Problem) -> ProblemSpec:
    """The description of a new problem with what its owner left out."""
    policy = spec.settings.policy
    if not policy.name:
        policy = replace(policy, name=advise(problem, policy, spec.items == "learn").name)
    if policy.name == "ladder" and spec.actions is None and spec.batches is None and spec.k == 1 < problem.n_arms:
        wrong = "1, so that a ladder would try one arm and stop"
        raise InvalidArgument("k", wrong, f"give {problem.n_arms}, to try all arms, or fewer")
    settings = replace(spec.settings, policy=policy)
    saving = policy.name in SPENDING and problem.n_items == 2 and spec.weights is None
    return replace(spec, settings=settings, weights=[1.0, 0.0] if saving else spec.weights)


def to_policy(spec: PolicySpec, arms: Names | None = None) -> Policy[Any]:
    """The library's policy; ``arms`` are those of the problem, which ``baseline`` names.

    >>> to_policy(PolicySpec("bc_ucb", {"rho": 1.0})).index
    Bernstein(rho=1)
    """
    make = components.find_policy(spec.name)
    given: dict[str, Any] = dict(spec.parameters)
    caution: Any = spec.caution
    if make is policies.pooled_thompson:
        given = read_earlier(given)
        caution = given.pop("caution", caution)
    policy: Policy[Any] = components.build(make, given, "policy.parameters")
    if caution is not UNSET:
        if make is not policies.pooled_thompson:
            remedy = 'give "name": "pooled_thompson" beside it'
            raise InvalidArgument("policy.caution", f"{spec.name} starts from no list", remedy)
        policy = policies.pooled_thompson(**policy.parameters() | {"caution": caution})
    if spec.baseline is not UNSET and arms is not None:
        try:
            policy = start_from(policy, arms.numbers(spec.baseline))
        except InvalidArgument as error:
            if make is policies.pooled_thompson:
                raise InvalidArgument("policy.baseline", error.wrong, "name arms of the problem") from None
            remedy = 'give "name": "pooled_thompson" beside the list'
            raise InvalidArgument("policy.baseline", f"{spec.name} cannot start from a list", remedy) from None
    if spec.window is not UNSET and spec.half_life is not UNSET:
        raise InvalidArgument("policy.half_life", "given beside window", "give one of the two")
    if spec.window is not UNSET:
        return policies.sliding_window(policy, spec.window, min(BLOCKS, spec.window))
    return policy if spec.half_life is UNSET else policies.discounted(policy, spec.half_life)


def _check_control(settings: Settings, problem: Problem, arms: Names) -> None:
    """Refuse a control slate that cannot be shown, and a guardrail without anything to compare with."""
    if settings.guardrail is not None and settings.control == 0.0:
        raise InvalidArgument("settings.guardrail", "given without control", "give a share of control, such as 0.05")
    if settings.planned is not None and settings.serve == "table":
        raise InvalidArgument("settings.planned", "given beside tables", "ask for each decision, or leave it out")
    if settings.control_slate == "uniform" and not problem.actions.matroid:
        remedy = 'give the names of a slate, or "baseline"'
        raise InvalidArgument("settings.control_slate", "the action set is no matroid", remedy)
    if isinstance(settings.control_slate, list):
        try:
            slate = arms.numbers(settings.control_slate)
        except InvalidArgument as error:
            raise InvalidArgument("settings.control_slate", error.wrong, error.remedy) from None
        if len(set(slate.tolist())) < len(slate) or not problem.actions.includes(slate, problem.n_arms):
            raise InvalidArgument("settings.control_slate", "outside the action set", f"a slate of {problem.actions}")


def check_settings(settings: Settings, problem: Problem, arms: Names) -> None:
    """Refuse settings that do not fit the problem."""
    if problem.thresholds is not None and settings.at_window_end not in ("ignore", 0.0):
        remedy = 'give 0, which stands for the lowest score, or "ignore"'
        raise InvalidArgument("settings.at_window_end", f"{settings.at_window_end}", remedy)
    if settings.paused_until is not UNSET:
        components.check_arms(settings.paused_until, arms.all, "settings.paused_until")
    try:
        fit_policy(to_policy(settings.policy, arms), problem)
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
    _check_control(settings, problem, arms)
    segments = 1 if problem.context is None else problem.context.n_segments
    if settings.serve == "table" and settings.table_rows * segments * problem.k > MAX_TABLE:
        wrong = f"{settings.table_rows} rows of {problem.k} arms for each of {segments} segments"
        raise InvalidArgument(
            "settings.table_rows", wrong, f"a table holds at most {MAX_TABLE} arms in all: fewer rows"
        )
