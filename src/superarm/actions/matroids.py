"""Matroids: so many arms per group or family, forests and spanning trees, and arms that fit into slots."""

import itertools
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from superarm.actions.base import Actions, count_subsets, limit_count
from superarm.core.arrays import Bools, Ints, count
from superarm.core.errors import InvalidArgument


def _parse_limit(limit: Any, name: str, of: str, owner: str) -> int:
    if not isinstance(limit, int | np.integer) or isinstance(limit, bool) or limit < 1:
        raise InvalidArgument(name, f"{limit!r}{of}", "give whole numbers >= 1", owner)
    return int(limit)


class PartitionMatroid(Actions):
    """At most ``limits[g]`` arms of each group g, at least ``minimums[g]``, and ``k`` in all: so many per brand.

    A partition matroid, [Edmonds1971]_. With ``k`` and ``minimums`` it is the matroid of batches that can be completed:
    a batch keeps a place for every arm that a minimum still lacks, [ElHalabiEtAl2020]_. The place stays empty if no arm
    of the group is eligible.

    Parameters
    ----------
    groups
        The group of every arm, by number or by any label.
    limits
        The limits of groups 0, 1, …, or a mapping from labels to limits; with ``k``, groups may be left out.
    k
        The size of a batch; None if only the groups limit it.
    minimums
        A mapping from labels to how many arms of a group a batch has at least; needs ``k``.

    Examples
    --------
    >>> list(PartitionMatroid(["news", "news", "sport"], {"news": 1, "sport": 1}).batches(3))
    [(0, 2), (1, 2)]
    >>> list(PartitionMatroid(["own", "other", "other"], {}, k=2, minimums={"own": 1}).batches(3))
    [(0, 1), (0, 2)]
    """

    groups: Any
    limits: Any
    k: Any = None
    minimums: Any = None
    matroid = True

    def check(self) -> None:
        named = self.limits if isinstance(self.limits, Mapping) else dict(enumerate(self.limits))
        groups = tuple(g.item() if isinstance(g, np.generic) else g for g in self.groups)
        if not groups:
            raise InvalidArgument("groups", "empty", "give the group of every arm", "PartitionMatroid")
        if self.k is not None:
            self.convert("k", count(self.k, "k", 1, "PartitionMatroid"))
            named = dict(named) | {g: self.k for g in groups if g not in named}
        limits = {g: _parse_limit(n, "limits", f" for group {g!r}", "PartitionMatroid") for g, n in named.items()}
        for g in groups:
            if g not in limits:
                raise InvalidArgument("limits", f"none for group {g!r}", "give one per group", "PartitionMatroid")
        for g in limits:
            if g not in groups:
                raise InvalidArgument("groups", f"no arm is in group {g!r}", "drop its limit", "PartitionMatroid")
        self.convert("groups", groups)
        self.convert("limits", limits)
        self.convert("minimums", dict(self.minimums or {}) or None)
        self._check_minimums()

    def _check_minimums(self) -> None:
        for g, least in (self.minimums or {}).items():
            most = self.caps[list(self.limits).index(g)] if g in self.limits else 0
            if _parse_limit(least, "minimums", f" for group {g!r}", "PartitionMatroid") > most:
                wrong = f"{least} for group {g!r}, of which a batch has at most {most}"
                raise InvalidArgument("minimums", wrong, "ask for fewer", "PartitionMatroid")
        kept = self.least.sum()
        if self.minimums and (self.k is None or kept > self.k or (kept == self.k and not self.least.all())):
            wrong, remedy = f"they add up to {kept}", "give k, the size of a batch, with a place for every group"
            raise InvalidArgument("minimums", wrong, remedy, "PartitionMatroid")

    @cached_property
    def group(self) -> Ints:
        """The number of each arm's group, (n_arms,)."""
        number = {g: n for n, g in enumerate(self.limits)}
        return np.array([number[g] for g in self.groups], np.int64)

    @cached_property
    def caps(self) -> Ints:
        """How many arms of each group a batch has, at most: limits above the size of a group are that size."""
        return np.minimum(list(self.limits.values()), np.bincount(self.group))

    @cached_property
    def least(self) -> Ints:
        """How many arms of each group a batch has, at least."""
        return np.array([(self.minimums or {}).get(g, 0) for g in self.limits], np.int64)

    def capacity(self, n_arms: int) -> int:
        most = int(self.caps.sum())
        return most if self.k is None else min(self.k, most)

    def start(self, eligible: Bools) -> Any:
        """How many arms of each group have joined, (R, n_groups)."""
        return np.zeros((len(eligible), len(self.caps)), np.int64)

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        free = state < self.caps
        if self.k is not None:  # a place that is not kept for others, or one that is kept for this group
            kept = np.maximum(state, self.least).sum(1, keepdims=True)
            free &= (kept < self.k) | (state < self.least)
        return eligible & free[:, self.group]

    def join(self, state: Any, arm: Ints) -> Any:
        rows = np.flatnonzero(arm >= 0)
        state[rows, self.group[arm[rows]]] += 1
        return state

    def batches(self, n_arms: int) -> Iterator[tuple[int, ...]]:
        if self.k is not None:
            return super().batches(n_arms)
        arms = [np.flatnonzero(self.group == g).tolist() for g in range(len(self.caps))]
        parts = [itertools.combinations(a, int(k)) for a, k in zip(arms, self.caps, strict=True)]
        return (tuple(sorted(itertools.chain(*picked))) for picked in itertools.product(*parts))

    def n_batches(self, n_arms: int) -> float:
        if self.k is not None:
            return count_subsets(n_arms, self.capacity(n_arms))
        sizes = np.bincount(self.group)
        return limit_count(math.prod(math.comb(int(n), int(k)) for n, k in zip(sizes, self.caps, strict=True)))

    def validate(self, n_arms: int) -> None:
        if len(self.groups) != n_arms:
            wrong, remedy = f"{len(self.groups)} for {n_arms} arms", "name the group of every arm"
            raise InvalidArgument("groups", wrong, remedy, "PartitionMatroid")


class Laminar(Actions):
    """At most a given number of arms of each family, where families are nested or disjoint: by shelf, aisle and shop.

    A laminar matroid, [Edmonds1971]_. Arms that belong to no family may always join.

    Parameters
    ----------
    families
        Pairs (arms, limit). Of two families, one contains the other or they have no arm in common.

    Examples
    --------
    >>> shelves = Laminar([([0, 1], 1), ([0, 1, 2, 3], 2)])
    >>> list(shelves.batches(4))
    [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    """

    families: Any
    matroid = True

    def check(self) -> None:
        listed = []
        for arms, limit in self.families:
            family = tuple(sorted({int(j) for j in arms}))
            if not family or family[0] < 0:
                raise InvalidArgument("families", f"family {list(family)}", "name arms, from 0 up", "Laminar")
            listed.append((family, _parse_limit(limit, "families", " as a limit", "Laminar")))
        if not listed:
            raise InvalidArgument("families", "empty", "give at least one pair (arms, limit)", "Laminar")
        listed.sort(key=lambda family: len(family[0]))
        for (small, _), (large, _) in itertools.combinations(listed, 2):
            if set(small) & set(large) and not set(small) <= set(large):
                wrong, remedy = "two overlap and neither contains the other", "nest or separate them"
                raise InvalidArgument("families", wrong, remedy, "Laminar")
        self.convert("families", tuple(listed))

    @cached_property
    def limits(self) -> Ints:
        """The limit of each family, small families first."""
        return np.array([limit for _, limit in self.families])

    @cached_property
    def member(self) -> Bools:
        """Which arms each family has, (n_families, 1 + the last arm of any family)."""
        table = np.zeros((len(self.families), 1 + max(arms[-1] for arms, _ in self.families)), bool)
        for row, (arms, _) in zip(table, self.families, strict=True):
            row[list(arms)] = True
        return table

    @cached_property
    def k(self) -> int:
        """The size of the largest batch of arms below the last one of any family."""
        left = np.ones(self.member.shape[1], np.int64)
        for row, limit in zip(self.member, self.limits, strict=True):
            inside = np.flatnonzero(row)
            most = min(left[inside].sum(), limit)
            left[inside] = 0
            left[inside[0]] = most
        return int(left.sum())

    def capacity(self, n_arms: int) -> int:
        return self.k + n_arms - self.member.shape[1]

    def start(self, eligible: Bools) -> Any:
        """How many arms of each family have joined, (R, n_families)."""
        return np.zeros((len(eligible), len(self.limits)), np.int64)

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        free = eligible.copy()
        free[:, : self.member.shape[1]] &= ~((state >= self.limits) @ self.member)
        return free

    def join(self, state: Any, arm: Ints) -> Any:
        inside = (arm >= 0) & (arm < self.member.shape[1])
        state[inside] += self.member[:, arm[inside]].T
        return state

    def n_batches(self, n_arms: int) -> float:
        return count_subsets(n_arms, self.capacity(n_arms))

    def validate(self, n_arms: int) -> None:
        last = self.member.shape[1] - 1
        if last >= n_arms:
            raise InvalidArgument("families", f"arm {last} of {n_arms}", f"arms are 0 to {n_arms - 1}", "Laminar")


class EdgeSet(Actions):
    """An action set whose arms are the edges of a graph: the base of forests, matchings and paths."""

    def parse_edges(self: Any, left: int, right: int) -> None:
        """Convert ``edges`` to an array (n_edges, 2); refuse ends outside of 0..left-1 and 0..right-1."""
        pairs, owner = list(self.edges), type(self).__name__
        ends = np.asarray(pairs)
        if not pairs:
            raise InvalidArgument("edges", "empty", "give at least one edge", owner)
        if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
            wrong, remedy = "not a list of pairs of whole numbers", "give (from, to) for every arm"
            raise InvalidArgument("edges", wrong, remedy, owner)
        for arm, (a, b) in enumerate(ends.tolist()):
            if not (0 <= a < left and 0 <= b < right):
                remedy = f"give nodes from (0, 0) to ({left - 1}, {right - 1})"
                raise InvalidArgument("edges", f"edge {arm} is ({a}, {b})", remedy, owner)
        self.convert("edges", ends.astype(np.int64))

    def validate(self: Any, n_arms: int) -> None:
        if len(self.edges) != n_arms:
            wrong = f"{len(self.edges)} edges for {n_arms} arms"
            raise InvalidArgument("edges", wrong, "give one edge per arm", type(self).__name__)


class GraphicMatroid(EdgeSet):
    """The forests of a graph: any edges that form no cycle. Arms are edges, in the order given.

    A matroid, whose greedy algorithm is that of [Kruskal1956]_. ``SpanningTrees`` plays complete trees only.

    Parameters
    ----------
    n_nodes
        How many nodes the graph has.
    edges
        One pair of nodes, 0 to n_nodes - 1, per arm; two edges may join the same nodes.

    Examples
    --------
    >>> list(GraphicMatroid(3, [(0, 1), (1, 2), (0, 2)]).batches(3))
    [(0, 1), (0, 2), (1, 2)]
    """

    n_nodes: int
    edges: Any
    matroid = True

    def check(self) -> None:
        owner = type(self).__name__
        self.convert("n_nodes", count(self.n_nodes, "n_nodes", 1, owner))
        self.parse_edges(self.n_nodes, self.n_nodes)
        loops = np.flatnonzero(self.edges[:, 0] == self.edges[:, 1])
        if loops.size:
            raise InvalidArgument("edges", f"edge {loops[0]} runs from a node to itself", "drop it", owner)

    @cached_property
    def k(self) -> int:
        """The size of the largest forests."""
        return self.n_nodes - self._count_components(np.ones(len(self.edges), bool))

    def _count_components(self, usable: Bools) -> int:
        """Count the connected components of the graph of ``usable`` edges."""
        state = GraphicMatroid.start(self, usable[None])
        for arm in np.flatnonzero(usable):
            state = self.join(state, np.array([arm]))
        return len(np.unique(state))

    def capacity(self, n_arms: int) -> int:
        return self.k

    def start(self, eligible: Bools) -> Any:
        """A number for the connected component of each node, (R, n_nodes)."""
        return np.repeat(np.arange(self.n_nodes)[None], len(eligible), 0)

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        return eligible & (state[:, self.edges[:, 0]] != state[:, self.edges[:, 1]])

    def join(self, state: Any, arm: Ints) -> Any:
        rows = np.flatnonzero(arm >= 0)
        a, b = state[rows, self.edges[arm[rows], 0]], state[rows, self.edges[arm[rows], 1]]
        state[rows] = np.where(state[rows] == a[:, None], b[:, None], state[rows])
        return state

    def n_batches(self, n_arms: int) -> float:
        return limit_count(math.comb(len(self.edges), self.k))


class SpanningTrees(GraphicMatroid):
    """The spanning trees of a connected graph: n_nodes - 1 edges that connect all nodes. Arms are edges.

    They are the bases of the graphic matroid, so greedy is exact for modular rewards, [Kruskal1956]_. If the eligible
    edges do not connect the graph, no batch can be played.

    Parameters
    ----------
    n_nodes
        How many nodes the graph has.
    edges
        One pair of nodes, 0 to n_nodes - 1, per arm.

    Examples
    --------
    >>> list(SpanningTrees(3, [(0, 1), (1, 2), (0, 2)]).batches(3))
    [(0, 1), (0, 2), (1, 2)]
    """

    n_nodes: int
    edges: Any
    whole = True

    def check(self) -> None:
        super().check()
        if self.k < self.n_nodes - 1:
            remedy = "add edges, or take GraphicMatroid"
            raise InvalidArgument("edges", "the graph is not connected", remedy, "SpanningTrees")

    def start(self, eligible: Bools) -> Any:
        state = super().start(eligible)
        for r in np.flatnonzero(~eligible.all(1)):
            if self._count_components(eligible[r]) > 1:
                state[r] = 0  # no edge may join
        return state

    def n_batches(self, n_arms: int) -> float:
        """The number of spanning trees, by Kirchhoff's theorem."""
        laplacian = np.zeros((self.n_nodes, self.n_nodes))
        for a, b in self.edges:
            laplacian[[a, b], [a, b]] += 1.0
            laplacian[[a, b], [b, a]] -= 1.0
        logarithm: Any = np.linalg.slogdet(laplacian[1:, 1:])[1]
        return limit_count(round(float(np.exp(min(logarithm, 40.0)))))


def largest_matching(adjacent: Bools) -> int:
    """The size of the largest matching of rows and columns that are ``adjacent``."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    return int((maximum_bipartite_matching(csr_array(adjacent.astype(np.int8))) >= 0).sum())


class Slots(Actions):
    """Batches whose arms fit into distinct slots, where every slot allows certain arms only.

    A batch may be played if each of its arms can be given a slot of its own: a transversal matroid,
    [EdmondsFulkerson1965]_. ``assignment`` gives the slot of each arm of a batch.

    Parameters
    ----------
    allowed
        Which arms each slot allows: (n_slots, n_arms), boolean, or a list with the arms of each slot.

    Examples
    --------
    >>> page = Slots([[0, 1], [1, 2]])
    >>> list(page.batches(3))
    [(0, 1), (0, 2), (1, 2)]
    >>> page.assignment([1, 0])
    array([1, 0])
    """

    allowed: Any
    matroid = True

    def check(self) -> None:
        self.convert("allowed", _parse_allowed(self.allowed))
        for slot in np.flatnonzero(~self.allowed.any(axis=1)):
            raise InvalidArgument("allowed", f"slot {slot} allows no arm", "drop it, or allow an arm", "Slots")

    @cached_property
    def k(self) -> int:
        """The size of the largest batch."""
        return largest_matching(self.allowed)

    def capacity(self, n_arms: int) -> int:
        return self.k

    def start(self, eligible: Bools) -> Any:
        """The arm in each slot, (R, n_slots), or -1."""
        return np.full((len(eligible), len(self.allowed)), -1)

    def joinable(self, state: Any, eligible: Bools) -> Bools:
        # A slot is open if it is free, or if its arm can move to an open slot.
        occupied, n_open = state >= 0, -1
        slot_opens = ~occupied
        while slot_opens.sum() > n_open:
            n_open = slot_opens.sum()
            fits = slot_opens @ self.allowed
            slot_opens |= occupied & np.take_along_axis(fits, np.maximum(state, 0), 1)
        return eligible & fits

    def join(self, state: Any, arm: Ints) -> Any:
        for r, j in enumerate(arm.tolist()):
            if j >= 0:
                self._assign(state[r], j)
        return state

    def _assign(self, holder: Ints, arm: int) -> bool:
        """Give ``arm`` a slot, moving other arms if necessary: breadth-first augmentation, [EdmondsFulkerson1965]_."""
        queue, slot_of, source = [arm], [-1], dict[int, int]()  # arms that need a slot, and which of them reached it
        for at, waiting in enumerate(queue):
            for slot in np.flatnonzero(self.allowed[:, waiting]).tolist():
                if slot in source:
                    continue
                source[slot] = at
                if holder[slot] >= 0:
                    queue.append(int(holder[slot]))
                    slot_of.append(slot)
                    continue
                while slot >= 0:
                    holder[slot], slot = queue[source[slot]], slot_of[source[slot]]  # noqa: PLW2901
                return True
        return False

    def assignment(self, action: Any) -> Ints:
        """The slot of each arm of ``action``; arms that come first in ``action`` get the first slots possible."""
        holder = np.full(len(self.allowed), -1)
        for j in action:
            if not self._assign(holder, int(j)):
                raise InvalidArgument("action", f"no slot is left for arm {j}", "give a batch that may be played")
        slots = {int(j): slot for slot, j in enumerate(holder)}
        return np.array([slots[int(j)] for j in action], np.int64)

    def n_batches(self, n_arms: int) -> float:
        return limit_count(math.prod(1 + int(n) for n in self.allowed.sum(axis=1)))

    def validate(self, n_arms: int) -> None:
        width = self.allowed.shape[1]
        if width > n_arms:
            raise InvalidArgument("allowed", f"arm {width - 1} of {n_arms}", f"arms are 0 to {n_arms - 1}", "Slots")
        idle = np.flatnonzero(~self.allowed.any(axis=0))
        if idle.size or width < n_arms:
            arm = idle[0] if idle.size else width
            raise InvalidArgument("allowed", f"no slot allows arm {arm}", "allow every arm in some slot", "Slots")


def _parse_allowed(allowed: Any) -> Bools:
    if isinstance(allowed, np.ndarray) and allowed.dtype == np.bool_ and allowed.ndim == 2:
        return allowed.copy()
    rows = [sorted({int(j) for j in row}) for row in allowed]
    if not rows or not any(rows) or min(min(row, default=0) for row in rows) < 0:
        raise InvalidArgument("allowed", "empty, or names an arm below 0", "list the arms of every slot", "Slots")
    table = np.zeros((len(rows), 1 + max(max(row, default=0) for row in rows)), bool)
    for slot, row in enumerate(rows):
        table[slot, row] = True
    return table
