"""The description of a problem, as its owner sends it, and the library's problem, context and policy made from it."""

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
from superarm.agent.names import Names
from superarm.agent.recommendation import recommend
from superarm.context import Context, Features, LinearModel, LogisticModel, Segments
from superarm.context.design import design_of
from superarm.context.models import MAX_KEPT
from superarm.core.errors import InvalidArgument
from superarm.core.problem import Problem
from superarm.core.support import Sparse
from superarm.policies import Policy
from superarm.rewards import Reward
from superarm.service.domain import components
from superarm.service.domain.components import AnyActionSpec, Name

MAX_COORDINATES, MAX_LEVELS, MAX_WORDS, MAX_PAIRS = 1024, 1024, 1000, 1_000_000
MAX_CONTEXT_NUMBERS = 20_000_000
"""The most numbers that a problem may keep of its contexts: 160 megabytes."""

FeatureName = Annotated[str, Meta(min_length=1, max_length=100)]
Text = Annotated[str, Meta(max_length=1000)]
Texts = Annotated[list[Text], Meta(max_length=MAX_WORDS)] | Annotated[dict[Text, float], Meta(max_length=MAX_WORDS)]
FeatureValue = int | float | Text | Texts | None
"""The value of a feature: a number, a text, or texts, with or without weights, for a hashed one; null if missing."""

Vector = Annotated[list[float], Meta(max_length=MAX_COORDINATES)]
GivenFeatures = Annotated[dict[FeatureName, FeatureValue], Meta(max_length=MAX_COORDINATES)] | Vector
"""Features of a user or an arm: values by name, or the numbers themselves where ``d`` is declared."""


class FeaturesSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which features there are, as ``superarm.Features`` declares them.

    Parameters
    ----------
    numeric
        Numeric features by name, with their ranges; one without a range is standardised.
    categorical
        Categorical features by name, with their values.
    hashed
        Features that are words, by name, with the number of coordinates that they are hashed to.
    missing
        The names of features that may be missing.
    d
        In place of all others: features are that many numbers in [-1, 1].
    """

    numeric: dict[FeatureName, tuple[float, float] | None] = field(default_factory=dict)
    categorical: dict[FeatureName, Annotated[list[Text], Meta(min_length=1, max_length=MAX_LEVELS)]] = field(
        default_factory=dict
    )
    hashed: dict[FeatureName, Annotated[int, Meta(ge=2, le=MAX_COORDINATES)]] = field(default_factory=dict)
    missing: list[FeatureName] = field(default_factory=list)
    d: Annotated[int, Meta(ge=0, le=MAX_COORDINATES)] = 0

    def build(self) -> Features:
        """The library's declaration."""
        return Features(self.numeric, self.categorical, self.hashed, self.missing, self.d)


class SegmentsParameters(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How users are divided.

    Parameters
    ----------
    by
        The categorical features that make the segments; all by default.
    pooling
        How many observations of all segments together count in each of them.
    """

    by: list[FeatureName] = field(default_factory=list)
    pooling: Annotated[float, Meta(ge=0.0, le=1e9)] = 0.0


class RegressionParameters(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The parameters of a linear model.

    Parameters
    ----------
    shared
        Which entries share parameters: none (false), those of an arm (``arms``), or all (true).
    intercept
        Whether a constant is added to the features.
    """

    shared: bool | Literal["arms"] = False
    intercept: bool = True


class LogisticParameters(RegressionParameters, frozen=True, omit_defaults=True):
    """The parameters of a logistic model.

    Parameters
    ----------
    shared
        Which entries share parameters: none (false), those of an arm (``arms``), or all (true).
    intercept
        Whether a constant is added to the features.
    prior_mean
        The mean that is expected before anything is observed.
    kept
        How many observations are kept for refits.
    """

    prior_mean: Annotated[float, Meta(gt=0.0, lt=1.0)] = 0.5
    kept: Annotated[int, Meta(ge=0, le=MAX_KEPT)] = 16384


class ModelSpec(Struct, frozen=True, forbid_unknown_fields=True, tag_field="name", omit_defaults=True):
    """A model by name, with its parameters."""

    def build(self) -> Any:
        """The library's model."""
        raise NotImplementedError


class SegmentsSpec(ModelSpec, frozen=True, tag="segments", omit_defaults=True):
    """One tally per segment of users."""

    parameters: SegmentsParameters = SegmentsParameters()

    def build(self) -> Any:
        return Segments(self.parameters.by, self.parameters.pooling)


class LinearSpec(ModelSpec, frozen=True, tag="linear", omit_defaults=True):
    """Parameters that are linear in the features, learnt by ridge regression."""

    parameters: RegressionParameters = RegressionParameters()

    def build(self) -> Any:
        return LinearModel(self.parameters.shared, self.parameters.intercept)


class LogisticSpec(ModelSpec, frozen=True, tag="logistic", omit_defaults=True):
    """Log-odds that are linear in the features."""

    parameters: LogisticParameters = LogisticParameters()

    def build(self) -> Any:
        own = self.parameters
        return LogisticModel(own.shared, own.intercept, own.prior_mean, own.kept)


AnyModelSpec = SegmentsSpec | LinearSpec | LogisticSpec


class ContextSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Features of users, arms and pairs, and the model that learns from them, as ``superarm.Context`` takes them.

    Parameters
    ----------
    features
        The features of users.
    model
        The model that learns from features.
    arms
        The features of every arm: values by name as ``arm_features`` declares them, or numbers in [-1, 1].
    arm_features
        Which features arms have.
    interactions
        Whether products of features of users and arms are used, too.
    pairs
        How many numbers each pair of a user and an arm has.
    stored
        What is kept of the context of a decision: as it was ``given``, or its ``encoded`` form alone.
    items_from
        A categorical feature whose value is the item that a decision is about, if it names no ``items``.
    """

    features: FeaturesSpec = FeaturesSpec()
    model: AnyModelSpec = SegmentsSpec()
    arms: dict[Name, GivenFeatures] | None = None
    arm_features: FeaturesSpec | None = None
    interactions: bool = True
    pairs: Annotated[int, Meta(ge=0, le=MAX_COORDINATES)] = 0
    stored: Literal["given", "encoded"] = "given"
    items_from: FeatureName | None = None


def to_context(spec: ContextSpec, arms: list[str]) -> Context:
    """The library's context of a problem with these arms; ``InvalidArgument`` says what does not fit.

    >>> to_context(ContextSpec(FeaturesSpec(categorical={"country": ["NO", "SE"]})), ["a"]).n_segments
    2
    """
    try:
        declared = None if spec.arm_features is None else spec.arm_features.build()
        rows = None if spec.arms is None else components.each_arm(spec.arms, arms, "arms")
        features = spec.features.build()
        context = Context(features, rows, spec.model.build(), spec.interactions, spec.pairs, declared)
    except InvalidArgument as error:
        raise InvalidArgument(f"context.{error.argument}", error.wrong, error.remedy) from None
    if spec.stored == "encoded" and features.standardised:
        wrong = f"{features.standardised[0]!r} is standardised by the values that were given"
        raise InvalidArgument("context.stored", wrong, "give the feature a range, or store contexts as given")
    return context


def check_context(problem: Problem) -> None:
    """Refuse a context that would need too much memory."""
    context = problem.context
    if context is None:
        return
    d = context.dimension(problem.n_items)
    if d:
        numbers = design_of(problem).n_groups(problem.support) * (d * (d + 1) // 2)
    else:
        numbers = 3 * context.n_segments * problem.n_entries
    if numbers > MAX_CONTEXT_NUMBERS:
        remedy = f"at most {MAX_CONTEXT_NUMBERS}: use fewer features or segments, or share parameters"
        raise InvalidArgument("context", f"it would keep {numbers} numbers", remedy)
    if context.pairs * problem.n_arms > MAX_PAIRS:
        raise InvalidArgument("context.pairs", f"{context.pairs} of {problem.n_arms} arms", f"at most {MAX_PAIRS}")


def check_items_from(spec: ContextSpec | None, items: list[str], has_all_items: bool) -> None:
    """Refuse a feature that cannot say what a decision is about; with ``has_all_items``, every arm has every item."""
    if spec is None or spec.items_from is None:
        return
    levels = spec.features.categorical.get(spec.items_from)
    if levels is None:
        known = ", ".join(spec.features.categorical) or "none"
        wrong = f"{spec.items_from!r} is no categorical feature"
        raise InvalidArgument("context.items_from", wrong, f"name one of them: {known}")
    unknown = next((level for level in levels if level not in items and level != "other"), None)
    if unknown is not None:
        wrong = f"the value {unknown!r} of {spec.items_from!r} is no item"
        raise InvalidArgument("context.items_from", wrong, 'let its values be items, or "other" for all of them')
    if not has_all_items:
        wrong = "the problem has a support, or triggered arms"
        raise InvalidArgument("context.items_from", wrong, "leave it out: such decisions are about all items")


ProblemName = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f/]*$")]
"""The name of a problem, which is a part of the names of logs and of labels, has no slash."""
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
Weight = Annotated[float, Meta(ge=0.0, le=1e12)]
Rounds = Annotated[int, Meta(ge=1, le=1_000_000_000)]
PolicyName = Annotated[str, Meta(max_length=100, examples=["kl_ucb"])]
Mode = Literal["online", "apprentice", "logging_only"]
Late = Literal["ignore", "learn"]
Window = Annotated[float, Meta(gt=0.0, le=3.2e8)]
MaxPending = Annotated[int, Meta(ge=1, le=10_000_000)]
Rate = Annotated[float, Meta(gt=0.0, le=1e6)]
Draws = Annotated[int, Meta(ge=0, le=10_000)]
ControlSlate = Literal["baseline", "uniform"] | Annotated[list[Name], Meta(min_length=1, max_length=1_000)]
Guardrail = Annotated[float, Meta(gt=0.0, lt=1.0)]
Pauses = Annotated[dict[Name, Annotated[datetime, Meta(tz=True)]], Meta(max_length=100_000)]
Word = Annotated[str, Meta(min_length=1, max_length=40, pattern=r"^[^\x00-\x1f\x7f/]+(/[^\x00-\x1f\x7f/]+)?$")]
RewardName = Annotated[str, Meta(min_length=1, max_length=100, examples=["coverage"])]

Ranking = Annotated[list[Name], Meta(min_length=1, max_length=1_000)]

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
        The arms that you show today, best first: ``pooled_thompson`` starts from this list.
    """

    name: PolicyName = ""
    parameters: dict[str, float] = field(default_factory=dict)
    window: Rounds | UnsetType = UNSET
    half_life: Rounds | UnsetType = UNSET
    baseline: Ranking | UnsetType = UNSET


class RewardSpec(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The reward (what a slate is worth) by its name, with its parameters.

    Parameters
    ----------
    name
        The name of the reward; a refusal lists them.
    parameters
        Its parameters by name; those that are left out have their defaults.
    """

    name: RewardName = "coverage"
    parameters: dict[str, float] = field(default_factory=dict)


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
        Whether they count as that number from the start, until feedback replaces it. True for problems that are created
        now; false for those of earlier versions, whose entries are pending until the window ends.
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
        What they show: the caller's ``baseline``, a ``uniform`` slate, or a slate by the names of its arms.
    guardrail
        The share of the control slate's earnings that may be lost: the policy is shown only while it has surely
        earned the rest.
    max_per_second
        How many decisions each worker makes per second on average, and twice as many at once.
    words
        What people call arms, items and outcomes.
    paused_until
        Arms that no slate has before a date, such as products that are sold out: ISO 8601 with a time zone, by arm.
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
    provisional: bool | UnsetType = UNSET
    paused_until: Pauses | UnsetType = UNSET

    @property
    def silence(self) -> float | None:
        """What entries count as until they are told; None if they are pending."""
        return None if self.at_window_end == "ignore" or self.provisional is not True else self.at_window_end


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
    """

    arms: Annotated[list[Name], Meta(min_length=1, max_length=MAX_ARMS)]
    items: Annotated[list[Name], Meta(min_length=1, max_length=MAX_ITEMS)] | Literal["learn"] = field(
        default_factory=lambda: ["value"]
    )
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

    @property
    def item_names(self) -> list[str]:
        """The names of all items; where these are learnt, outcomes have one name."""
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
    if spec.reward.name == "spread" and spec.arms != names:
        raise InvalidArgument("items", "differ from the arms", "with the reward spread both are the nodes")
    support = None if spec.support is None else to_support(arms, items, spec.support)
    actions = _actions(spec, arms)
    reward = to_reward(spec.reward)
    context = None if spec.context is None else to_context(spec.context, spec.arms)
    problem = Problem(len(spec.arms), len(names), reward, actions, spec.weights, support, context)
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


def _actions(spec: ProblemSpec, arms: Names) -> Actions:
    if spec.actions is not None:
        if spec.batches is not None or spec.k != 1:
            raise InvalidArgument("actions", "given beside k or batches", "give one of the three")
        return components.to_actions(spec.actions, arms)
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
    return components.build(make, spec.parameters, "reward.parameters")  # type: ignore[no-any-return]


def complete(spec: ProblemSpec, problem: Problem) -> ProblemSpec:
    """The description of a new problem with what its owner left out."""
    policy, provisional = spec.settings.policy, spec.settings.provisional
    if not policy.name:
        policy = replace(policy, name=recommend(problem).name)
    settings = replace(spec.settings, policy=policy, provisional=provisional is UNSET or provisional)
    saving = policy.name == "ladder" and problem.n_items == 2 and spec.weights is None
    return replace(spec, settings=settings, weights=[1.0, 0.0] if saving else spec.weights)


def to_policy(spec: PolicySpec, arms: Names | None = None) -> Policy:
    """The library's policy; ``arms`` are those of the problem, which ``baseline`` names.

    >>> to_policy(PolicySpec("bc_ucb", {"rho": 1.0})).index
    Bernstein(rho=1)
    """
    make = components.find_policy(spec.name).make
    policy: Policy = components.build(make, spec.parameters, "policy.parameters")
    if spec.baseline is not UNSET and arms is not None:
        try:
            policy = start_from(policy, arms.numbers(spec.baseline))
        except InvalidArgument as error:
            wrong = error.wrong if make is policies.pooled_thompson else f"{spec.name} cannot start from a list"
            remedy = "name arms of the problem, and pooled_thompson or no policy"
            raise InvalidArgument("policy.baseline", wrong, remedy) from None
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


def check_settings(settings: Settings, problem: Problem, arms: Names) -> None:
    """Refuse settings that do not fit the problem."""
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
