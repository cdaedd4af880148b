"""Which slates may be shown, as the owner of a problem writes it down: the action sets of the library, by arm names."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from superarm.actions import (
    Actions,
    Explicit,
    GraphicMatroid,
    Knapsack,
    Laminar,
    Matching,
    PartitionMatroid,
    Paths,
    Slots,
    SpanningTrees,
    Subsets,
)
from superarm.agent.names import Names
from superarm.core.errors import InvalidArgument

Name = Annotated[str, Meta(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]*$")]
Positive = Annotated[float, Meta(gt=0.0, le=1e12)]
Limit = Annotated[int, Meta(ge=1, le=1_000)]
Edge = tuple[Name, Name]
ArmNames = Annotated[list[Name], Meta(min_length=1, max_length=100_000)]

MAX_SLATE = 1_000
"""A slate has at most so many arms."""


class ActionSpec(Struct, frozen=True, forbid_unknown_fields=True, tag_field="name"):
    """An action set by name, with its parameters."""

    def build(self, arms: Names) -> Actions:
        """The library's action set."""
        raise NotImplementedError


class SubsetsParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """Slates have ``k`` arms."""

    k: Limit


class SubsetsSpec(ActionSpec, frozen=True, tag="subsets"):
    """Any ``k`` arms; ``k`` of the problem is the short form."""

    parameters: SubsetsParameters

    def build(self, arms: Names) -> Actions:
        return Subsets(self.parameters.k)


class ExplicitParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The slates, each a list of arms."""

    batches: Annotated[list[ArmNames], Meta(min_length=1, max_length=100_000)]


class ExplicitSpec(ActionSpec, frozen=True, tag="explicit"):
    """The slates of a list, and no others; ``batches`` of the problem is the short form."""

    parameters: ExplicitParameters

    def build(self, arms: Names) -> Actions:
        return Explicit([arms.numbers(batch) for batch in self.parameters.batches])


class PartitionParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The group of every arm, and how many arms of each group a slate may have."""

    groups: dict[Name, Name]
    limits: dict[Name, Limit]


class PartitionSpec(ActionSpec, frozen=True, tag="partition"):
    """At most so many arms of each group."""

    parameters: PartitionParameters

    def build(self, arms: Names) -> Actions:
        limits: Mapping[Any, int] = self.parameters.limits
        return PartitionMatroid(_each(self.parameters.groups, arms, "groups"), limits)


class Family(Struct, frozen=True, forbid_unknown_fields=True):
    """Arms of which a slate may have at most ``limit``."""

    arms: ArmNames
    limit: Limit


class LaminarParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """Families that are nested or disjoint."""

    families: Annotated[list[Family], Meta(min_length=1, max_length=10_000)]


class LaminarSpec(ActionSpec, frozen=True, tag="laminar"):
    """At most so many arms of each family, where families are nested or disjoint."""

    parameters: LaminarParameters

    def build(self, arms: Names) -> Actions:
        return Laminar([(arms.numbers(family.arms).tolist(), family.limit) for family in self.parameters.families])


class SlotsParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """For every slot the arms that it may hold."""

    slots: Annotated[dict[Name, ArmNames], Meta(min_length=1, max_length=1_000)]


class SlotsSpec(ActionSpec, frozen=True, tag="slots"):
    """Arms in distinct slots, where every slot says which arms it may hold."""

    parameters: SlotsParameters

    def build(self, arms: Names) -> Actions:
        return Slots([arms.numbers(allowed).tolist() for allowed in self.parameters.slots.values()])


class KnapsackParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """What every arm costs, and what a slate may cost."""

    costs: dict[Name, Positive]
    budget: Positive


class KnapsackSpec(ActionSpec, frozen=True, tag="knapsack"):
    """Arms whose costs add up to at most a budget."""

    parameters: KnapsackParameters

    def build(self, arms: Names) -> Actions:
        return Knapsack(_each(self.parameters.costs, arms, "costs"), self.parameters.budget)


class EdgesParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The two nodes that every arm, an edge, connects."""

    edges: dict[Name, Edge]


class ForestsSpec(ActionSpec, frozen=True, tag="forests"):
    """Edges that create no cycle."""

    parameters: EdgesParameters

    def build(self, arms: Names) -> Actions:
        nodes, ends = _graph(_each(self.parameters.edges, arms, "edges"))
        return GraphicMatroid(len(nodes), ends)


class SpanningTreesSpec(ActionSpec, frozen=True, tag="spanning_trees"):
    """The spanning trees of a connected graph."""

    parameters: EdgesParameters

    def build(self, arms: Names) -> Actions:
        nodes, ends = _graph(_each(self.parameters.edges, arms, "edges"))
        return SpanningTrees(len(nodes), ends)


class MatchingSpec(ActionSpec, frozen=True, tag="matching"):
    """Pairs (left, right), each node in at most one of them; the two sides have names of their own."""

    parameters: EdgesParameters

    def build(self, arms: Names) -> Actions:
        pairs = _each(self.parameters.edges, arms, "edges")
        left, right = ({name: n for n, name in enumerate(dict.fromkeys(p[side] for p in pairs))} for side in (0, 1))
        return Matching(len(left), len(right), [(left[a], right[b]) for a, b in pairs])


class PathsParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The nodes that every arm, a directed edge, leads from and to, and the ends of all paths."""

    edges: dict[Name, Edge]
    source: Name
    target: Name


class PathsSpec(ActionSpec, frozen=True, tag="paths"):
    """The paths from a source to a target in a directed graph without cycles."""

    parameters: PathsParameters

    def build(self, arms: Names) -> Actions:
        nodes, ends = _graph(_each(self.parameters.edges, arms, "edges"))
        for name in (self.parameters.source, self.parameters.target):
            if name not in nodes:
                raise InvalidArgument("actions.parameters", f"no edge touches node {name!r}", "name a node of an edge")
        return Paths(len(nodes), ends, nodes[self.parameters.source], nodes[self.parameters.target])


AnyActionSpec = (
    SubsetsSpec
    | ExplicitSpec
    | PartitionSpec
    | LaminarSpec
    | SlotsSpec
    | KnapsackSpec
    | ForestsSpec
    | SpanningTreesSpec
    | MatchingSpec
    | PathsSpec
)


def to_actions(spec: ActionSpec, arms: Names) -> Actions:
    """The library's action set; ``InvalidArgument`` names the part of the spec that is wrong.

    >>> spec = KnapsackSpec(KnapsackParameters({"a": 1.0, "b": 2.0}, 2.0))
    >>> to_actions(spec, Names(["a", "b"], "arms")).costs
    array([1., 2.])
    """
    try:
        actions = spec.build(arms)
        actions.validate(len(arms.all))
    except InvalidArgument as error:
        where = error.argument if error.argument.startswith("actions.") else f"actions.parameters.{error.argument}"
        raise InvalidArgument(where, error.wrong, error.remedy) from None
    if actions.capacity(len(arms.all)) > MAX_SLATE:
        raise InvalidArgument("actions", "a slate can have more than 1,000 arms", f"allow at most {MAX_SLATE}")
    return actions


def _each(values: dict[str, Any], arms: Names, what: str) -> list[Any]:
    """The values in the order of the arms, one for each of them."""
    unknown = next((name for name in values if arms.number(name) is None), None)
    if unknown is not None:
        raise InvalidArgument(what, f"unknown arm {unknown!r}", "name arms of the problem")
    missing = next((name for name in arms.all if name not in values), None)
    if missing is not None:
        raise InvalidArgument(what, f"nothing for arm {missing!r}", "give one for every arm")
    return [values[name] for name in arms.all]


def _graph(edges: Iterable[tuple[str, str]]) -> tuple[dict[str, int], list[tuple[int, int]]]:
    """The numbers of the nodes, in the order of the edges that name them, and the edges by number."""
    nodes: dict[str, int] = {}
    return nodes, [(nodes.setdefault(a, len(nodes)), nodes.setdefault(b, len(nodes))) for a, b in edges]
