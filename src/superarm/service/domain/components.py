"""What a problem can name: policies, rewards and action sets of the library, and those that an operator adds.

A module that ``superarm serve --import`` names adds its own with ``add_policy``, ``add_reward`` and
``add_actions``. The library's action sets are written down by arm names.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from superarm import actions, contextual, policies
from superarm.actions import Actions
from superarm.core.errors import InvalidArgument
from superarm.decisions.names import Names
from superarm.rewards import ClippedLinear, Conjunctive, Coverage, Linear, Logistic, Total

Make = Callable[..., Any]
"""What makes a component of its parameters: a function or a class."""


def _catalogue() -> dict[str, Make]:
    """The policies by their names in the papers, as far as they have defaults; wrappers are settings of their own."""
    named = {name: getattr(home, name) for home in (policies.catalog, contextual.catalog) for name in home.__all__}
    empty = inspect.Parameter.empty
    given = {name: inspect.signature(make).parameters.values() for name, make in named.items()}
    return {name: make for name, make in named.items() if all(one.default is not empty for one in given[name])}


POLICIES: dict[str, Make] = _catalogue()

REWARDS: dict[str, Make] = {
    "coverage": Coverage,
    "linear": Linear,
    "logistic": Logistic,
    "clipped_linear": ClippedLinear,
    "conjunctive": Conjunctive,
    "total": Total,
}
ACTIONS: dict[str, Make] = {}


def add_policy(name: str, make: Make) -> None:
    """Let problems name a policy; ``make`` takes its parameters, which are numbers, and returns it."""
    _add(name, make, POLICIES)


def add_reward(name: str, make: Make) -> None:
    """Let problems name a reward; ``make`` takes its parameters, which are numbers, and returns it."""
    _add(name, make, REWARDS)


def add_actions(name: str, make: Make) -> None:
    """Let problems name an action set; ``make`` takes its parameters, which are numbers, and returns it."""
    _add(name, make, ACTIONS)


def _add(name: str, make: Make, known: dict[str, Make]) -> None:
    if name in known or not name.isidentifier():
        raise InvalidArgument("name", f"{name!r} is taken, or not an identifier", "choose another name")
    known[name] = make


def find(name: str, known: dict[str, Make], argument: str) -> Make:
    """The component of a name."""
    if name not in known:
        raise InvalidArgument(argument, f"unknown {name!r}", f"give one of {', '.join(known)}")
    return known[name]


def find_policy(name: str) -> Make:
    """The policy of a name."""
    return find(name, POLICIES, "policy.name")


def parameters_of(make: Make) -> dict[str, inspect.Parameter]:
    """The parameters of a component that can be given as numbers; components within it keep their defaults."""
    given = inspect.signature(make).parameters.items()
    return {name: one for name, one in given if one.default is inspect.Parameter.empty or _is_number(one.default)}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def build(make: Make, parameters: dict[str, float], argument: str) -> Any:
    """The component with these parameters."""
    known = parameters_of(make)
    for name in parameters:
        if name not in known:
            raise InvalidArgument(argument, f"unknown {name!r}", f"known: {', '.join(known) or 'none'}")
    whole = {name for name, one in known.items() if isinstance(one.default, int)}
    given = {name: int(x) if name in whole and x == int(x) else x for name, x in parameters.items()}
    try:
        return make(**given)
    except TypeError:
        raise InvalidArgument(argument, "incomplete", f"give {', '.join(known)}") from None


Name = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")]
Positive = Annotated[float, Meta(gt=0.0, le=1e12)]
Limit = Annotated[int, Meta(ge=1, le=1_000)]
Edge = tuple[Name, Name]
ArmNames = Annotated[list[Name], Meta(min_length=1, max_length=100_000)]
Batches = Annotated[list[list[str]], Meta(min_length=1, max_length=100_000)]
"""Names of arms, of which there may be a million: one that is no arm is refused, and matching each takes long."""

MAX_SLATE = 1_000
"""A slate has at most so many arms."""


class ActionSpec(Struct, frozen=True, forbid_unknown_fields=True, tag_field="name"):
    """An action set by name, with its parameters."""

    def build(self, arms: Names) -> Actions:
        """The library's action set."""
        raise NotImplementedError


class SubsetsParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """Slates have ``k`` arms.

    Parameters
    ----------
    k
        How many arms a slate has.
    """

    k: Limit


class SubsetsSpec(ActionSpec, frozen=True, tag="subsets"):
    """Any ``k`` arms; ``k`` of the problem is the short form."""

    parameters: SubsetsParameters

    def build(self, arms: Names) -> Actions:
        return actions.Subsets(self.parameters.k)


class OwnParameters(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An action set that the operator added, and its numbers.

    Parameters
    ----------
    kind
        The name under which it was added.
    numbers
        Its parameters by name; those that are left out have their defaults.
    """

    kind: Name
    numbers: dict[str, float] = field(default_factory=dict)


class OwnSpec(ActionSpec, frozen=True, tag="own"):
    """An action set that a module of the operator added (``serve --import``)."""

    parameters: OwnParameters

    def build(self, arms: Names) -> Actions:
        make = find(self.parameters.kind, ACTIONS, "actions.parameters.kind")
        return build(make, self.parameters.numbers, "actions.parameters.numbers")


class ExplicitParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The slates, each a list of arms.

    Parameters
    ----------
    batches
        The slates, each a list of arms.
    """

    batches: Batches


class ExplicitSpec(ActionSpec, frozen=True, tag="explicit"):
    """The slates of a list, and no others; ``batches`` of the problem is the short form."""

    parameters: ExplicitParameters

    def build(self, arms: Names) -> Actions:
        return actions.Explicit([arms.numbers(batch) for batch in self.parameters.batches])


class PartitionParameters(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The group of every arm, and how many arms of each group a slate may have.

    Parameters
    ----------
    groups
        The group of every arm.
    limits
        How many arms of each group a slate may have; beside ``k``, groups may be left out.
    k
        How many arms a slate has; without it, only the groups limit it.
    minimums
        How many arms of a group a slate has at least; needs ``k``.
    """

    groups: dict[Name, Name]
    limits: dict[Name, Limit] = field(default_factory=dict)
    k: Limit | None = None
    minimums: dict[Name, Limit] = field(default_factory=dict)


class PartitionSpec(ActionSpec, frozen=True, tag="partition"):
    """At most, and at least, so many arms of each group."""

    parameters: PartitionParameters

    def build(self, arms: Names) -> Actions:
        own = self.parameters
        return actions.PartitionMatroid(each_arm(own.groups, arms.all, "groups"), own.limits, own.k, own.minimums)


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """Arms of which a slate may have at most ``limit``.

    Parameters
    ----------
    arms
        The arms of the family.
    limit
        How many of them a slate may have.
    """

    arms: ArmNames
    limit: Limit


class LaminarParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """Families that are nested or disjoint.

    Parameters
    ----------
    families
        The families, which are nested or disjoint.
    """

    families: Annotated[list[Family], Meta(min_length=1, max_length=10_000)]


class LaminarSpec(ActionSpec, frozen=True, tag="laminar"):
    """At most so many arms of each family, where families are nested or disjoint."""

    parameters: LaminarParameters

    def build(self, arms: Names) -> Actions:
        families = self.parameters.families
        return actions.Laminar([(arms.numbers(family.arms).tolist(), family.limit) for family in families])


class SlotsParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """For every slot the arms that it may hold.

    Parameters
    ----------
    slots
        For every slot, by its name, the arms that it may hold.
    """

    slots: Annotated[dict[Name, ArmNames], Meta(min_length=1, max_length=1_000)]


class SlotsSpec(ActionSpec, frozen=True, tag="slots"):
    """Arms in distinct slots, where every slot says which arms it may hold."""

    parameters: SlotsParameters

    def build(self, arms: Names) -> Actions:
        return actions.Slots([arms.numbers(allowed).tolist() for allowed in self.parameters.slots.values()])


class KnapsackParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """What every arm costs, and what a slate may cost.

    Parameters
    ----------
    costs
        What every arm costs.
    budget
        What a slate may cost.
    """

    costs: dict[Name, Positive]
    budget: Positive


class KnapsackSpec(ActionSpec, frozen=True, tag="knapsack"):
    """Arms whose costs add up to at most a budget."""

    parameters: KnapsackParameters

    def build(self, arms: Names) -> Actions:
        return actions.Knapsack(each_arm(self.parameters.costs, arms.all, "costs"), self.parameters.budget)


class CopiesParameters(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How many calls of each arm a slate may have, and what they may cost.

    Parameters
    ----------
    copies
        How many copies there are of each arm; those of ``a`` are the arms ``a#1``, ``a#2`` and so on.
    budget
        What the copies of a slate may cost together: without ``prices``, how many there may be.
    prices
        What a copy of each arm costs.
    """

    copies: Annotated[dict[Name, Limit], Meta(min_length=1, max_length=1_000)]
    budget: Positive
    prices: dict[Name, Positive] | None = None


class CopiesSpec(ActionSpec, frozen=True, tag="copies"):
    """Several calls of one arm in a slate: copies share what is learnt."""

    parameters: CopiesParameters

    def build(self, arms: Names) -> Actions:
        found = actions.Copies(self.parameters.copies, self.parameters.budget, self.parameters.prices)
        if tuple(arms.all) != found.names:
            listed = ", ".join(found.names[:10])
            raise InvalidArgument("arms", "not the copies in their order", f"give {listed}")
        return found


class EdgesParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The two nodes that every arm, an edge, connects.

    Parameters
    ----------
    edges
        For every arm, an edge, the two nodes that it connects.
    """

    edges: dict[Name, Edge]


class ForestsSpec(ActionSpec, frozen=True, tag="forests"):
    """Edges that create no cycle."""

    parameters: EdgesParameters

    def build(self, arms: Names) -> Actions:
        nodes, ends = _graph(self.parameters.edges, arms)
        return actions.GraphicMatroid(len(nodes), ends)


class SpanningTreesSpec(ActionSpec, frozen=True, tag="spanning_trees"):
    """The spanning trees of a connected graph."""

    parameters: EdgesParameters

    def build(self, arms: Names) -> Actions:
        nodes, ends = _graph(self.parameters.edges, arms)
        return actions.SpanningTrees(len(nodes), ends)


class MatchingSpec(ActionSpec, frozen=True, tag="matching"):
    """Pairs (left, right), each node in at most one of them; the two sides have names of their own."""

    parameters: EdgesParameters

    def build(self, arms: Names) -> Actions:
        pairs = each_arm(self.parameters.edges, arms.all, "edges")
        left, right = ({name: n for n, name in enumerate(dict.fromkeys(p[side] for p in pairs))} for side in (0, 1))
        return actions.Matching(len(left), len(right), [(left[a], right[b]) for a, b in pairs])


class PathsParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The nodes that every arm, a directed edge, leads from and to, and the ends of all paths.

    Parameters
    ----------
    edges
        For every arm, a directed edge, the nodes that it leads from and to.
    source
        Where paths begin.
    target
        Where paths end.
    """

    edges: dict[Name, Edge]
    source: Name
    target: Name


class PathsSpec(ActionSpec, frozen=True, tag="paths"):
    """The paths from a source to a target in a directed graph without cycles."""

    parameters: PathsParameters

    def build(self, arms: Names) -> Actions:
        nodes, ends = _graph(self.parameters.edges, arms)
        for name in (self.parameters.source, self.parameters.target):
            if name not in nodes:
                raise InvalidArgument("actions.parameters", f"no edge touches node {name!r}", "name a node of an edge")
        return actions.Paths(len(nodes), ends, nodes[self.parameters.source], nodes[self.parameters.target])


AnyRule = SubsetsSpec | PartitionSpec | LaminarSpec | SlotsSpec
AnyGraph = ForestsSpec | SpanningTreesSpec | MatchingSpec | PathsSpec


class IntersectionParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The rules.

    Parameters
    ----------
    rules
        Action sets ``subsets``, ``partition``, ``laminar`` and ``slots``: a slate is allowed by all of them.
    """

    rules: Annotated[list[AnyRule], Meta(min_length=2, max_length=20)]


class IntersectionSpec(ActionSpec, frozen=True, tag="intersection"):
    """Slates that several rules allow at once: by brand, by category, and in number."""

    parameters: IntersectionParameters

    def build(self, arms: Names) -> Actions:
        return actions.Intersection([rule.build(arms) for rule in self.parameters.rules])


AnyActionSpec = AnyRule | AnyGraph | ExplicitSpec | KnapsackSpec | CopiesSpec | IntersectionSpec | OwnSpec


def to_actions(spec: ActionSpec, arms: Names) -> Actions:
    """The library's action set; ``InvalidArgument`` names the part of the spec that is wrong.

    >>> spec = KnapsackSpec(KnapsackParameters({"a": 1.0, "b": 2.0}, 2.0))
    >>> to_actions(spec, Names(["a", "b"], "arms")).costs
    array([1., 2.])
    """
    try:
        built = spec.build(arms)
        built.validate(len(arms.all))
    except InvalidArgument as error:
        where = error.argument if error.argument.startswith("actions.") else f"actions.parameters.{error.argument}"
        raise InvalidArgument(where, error.wrong, error.remedy) from None
    if built.capacity(len(arms.all)) > MAX_SLATE:
        raise InvalidArgument("actions", "a slate can have more than 1,000 arms", f"allow at most {MAX_SLATE}")
    return built


def each_arm(values: Mapping[str, Any], arms: Sequence[str], what: str) -> list[Any]:
    """The values in the order of the arms, one for each of them."""
    check_arms(values, arms, what)
    missing = next((name for name in arms if name not in values), None)
    if missing is not None:
        raise InvalidArgument(what, f"nothing for arm {missing!r}", "give one for every arm")
    return [values[name] for name in arms]


def check_arms(values: Iterable[str], arms: Sequence[str], what: str) -> None:
    """Refuse names that are no arms."""
    known = set(arms)
    unknown = next((name for name in values if name not in known), None)
    if unknown is not None:
        raise InvalidArgument(what, f"unknown arm {unknown!r}", "name arms of the problem")


def _graph(edges: Mapping[str, Edge], arms: Names) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """The numbers of the nodes, in the order of the edges that name them, and the edges by number."""
    nodes: dict[str, int] = {}
    ends = each_arm(edges, arms.all, "edges")
    return nodes, [(nodes.setdefault(a, len(nodes)), nodes.setdefault(b, len(nodes))) for a, b in ends]
