"""Outcomes that depend on one another within a round: by construction, or as they were recorded."""

import itertools
import math
from functools import cached_property
from typing import Any

import numpy as np

from superarm.core import streams
from superarm.core.arrays import Floats, Ints, floats, probabilities
from superarm.core.errors import InvalidArgument
from superarm.environments.base import Answer, Environment
from superarm.environments.bernoulli import WithMeans
from superarm.problem import Problem

_ITEMS = streams.SHARED + 1
"""The first index, in a round, of the numbers that belong to items."""


def _item_numbers(problem: Problem, keys: Any, t: int) -> Floats:
    """One uniform number for each item of round ``t``, (R, n_items)."""
    return streams.uniform(keys, t, _ITEMS + np.arange(problem.n_items))[:, :, 0]


class Comonotone(WithMeans):
    """Binary outcomes that depend on one uniform number per arm and round: items fully dependent, arms independent.

    ``X[j, i] = U[j] < p[j, i]``. If the parameters of an arm are equal, its items are identical,
    ``X[j, i] = X[j]``: the construction of the lower bound in [MerlisMannor2019]_ (section Lower Bounds).

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    """

    p: Any
    mean_parameters = ("p",)

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        u = streams.uniform(keys, t, np.maximum(action, 0))
        return Answer((u < self.mean_rows(problem, action)).astype(float))


class CommonShock(WithMeans):
    """Binary outcomes with exact marginals ``p`` that, in a share of the rounds, all depend on one uniform number.

    With probability ``share`` a round is comonotone: ``X[j, i] = U < p[j, i]`` with one ``U`` for all arms and items;
    otherwise all entries are independent.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    share
        The probability of a comonotone round; 1 is full dependence.
    """

    p: Any
    share: float = 1.0
    mean_parameters = ("p",)

    def check(self) -> None:
        super().check()
        self.require("share", 0.0 <= self.share <= 1.0, "give a share in [0, 1]")

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        shock, common = streams.shared_uniform(keys, t, 2).T[:, :, None, None]
        own = streams.uniform(keys, t, np.maximum(action, 0), problem.support.widest)
        u = np.where(shock < self.share, common, own)
        return Answer((u < self.mean_rows(problem, action)).astype(float))


class Copula(WithMeans):
    r"""Binary outcomes with exact marginals ``p`` and a Gaussian dependence.

    .. math:: X_{ij} = 1\{\Phi(Z_{ij}) < p_{ij}\}, \qquad
              Z_{ij} = \sqrt{all}\,G + \sqrt{arms}\,G_i + \sqrt{items}\,G'_j + \sqrt{1 - all - arms - items}\,G''_{ij}

    with independent standard normals.

    Parameters
    ----------
    p
        The true parameters, (n_arms, n_items) or sparse.
    arms
        The correlation of the latent variables of one item between arms.
    items
        The correlation of the latent variables of one arm between items.
    all
        The correlation between all latent variables.
    """

    p: Any
    arms: float = 0.0
    items: float = 0.0
    all: float = 0.0
    mean_parameters = ("p",)

    def check(self) -> None:
        super().check()
        for name in ("arms", "items", "all"):
            self.require(name, 0.0 <= getattr(self, name) <= 1.0, "give a share in [0, 1]")
        if self.arms + self.items + self.all > 1.0:
            remedy = "give shares of variance that add up to at most 1"
            raise InvalidArgument("arms + items + all", "above 1", remedy, "Copula")

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        from scipy.special import ndtr

        def normal(u: Floats) -> Floats:
            return streams.normal(u)

        width = problem.support.widest
        own = normal(streams.uniform(keys, t, np.maximum(action, 0), width + 1))
        items = np.repeat(normal(_item_numbers(problem, keys, t))[:, None], action.shape[1], 1)
        z = math.sqrt(self.all) * normal(streams.shared_uniform(keys, t))[:, :, None]
        z = z + math.sqrt(self.arms) * problem.support.items_to_rows(items, action)
        z = z + math.sqrt(self.items) * own[:, :, :1]
        z = z + math.sqrt(max(0.0, 1.0 - self.arms - self.items - self.all)) * own[:, :, 1:]
        return Answer((ndtr(z) < self.mean_rows(problem, action)).astype(float))


class Blocks(Environment):
    r"""Outcomes with a pattern of dependence of its own for each arm, which is independent of all other arms.

    .. math:: X_{ij} = base_{ij} + (1 - base_{ij})\,1\{U_{ij} < chance_{ij}\}, \qquad
              E X_{ij} = base_{ij} + (1 - base_{ij})\,chance_{ij}

    Entries of an arm in one block share one uniform number per round; entries of block 0 have their own. Block -b uses
    one minus the number of block b, so that the two move against each other. In a round that is a shock for the arm,
    all its entries share one number.

    Parameters
    ----------
    chance
        The probability of the high outcome 1, (n_arms, n_items).
    block
        The number of the block of each entry, same shape: 0, or from -n_items to n_items.
    shock
        For each arm, the probability that a round is a shock, (n_arms,); 0 by default.
    base
        The low outcome, in the shape of ``chance``; 0 by default.

    Examples
    --------
    >>> Blocks([[0.5, 0.5], [0.2, 0.2]], [[1, 1], [0, 0]], base=[[0.0, 0.0], [0.5, 0.5]]).p
    array([[0.5, 0.5],
           [0.6, 0.6]])
    """

    chance: Any
    block: Any
    shock: Any = None
    base: Any = None
    arm_parameters = ("chance", "block", "shock", "base")

    def check(self) -> None:
        high = probabilities(self.chance, "chance")
        low = np.zeros_like(high) if self.base is None else probabilities(self.base, "base")
        shocks = np.zeros(len(high)) if self.shock is None else floats(self.shock, "shock", low=0.0, high=1.0)
        blocks = np.ascontiguousarray(np.asarray(self.block), np.int64)
        for name, shape in (("block", blocks.shape), ("base", low.shape)):
            if shape != high.shape or len(shape) != 2:
                raise InvalidArgument(name, f"shape {shape}", f"give shape {high.shape}, that of chance", "Blocks")
        if shocks.shape != (len(high),):
            raise InvalidArgument("shock", f"shape {shocks.shape}", "give one number per arm", "Blocks")
        if np.abs(blocks).max() > high.shape[1]:
            raise InvalidArgument("block", "a number is too large", "number blocks from 1 to n_items", "Blocks")
        for name, value in (("chance", high), ("block", blocks), ("shock", shocks), ("base", low)):
            self.convert(name, value)

    @property
    def p(self) -> Floats:
        """The true parameters, (n_arms, n_items)."""
        return self.base + (1.0 - self.base) * self.chance

    @cached_property
    def _order(self) -> Ints:
        """Which of the numbers of an arm an entry of block 0 takes: they follow each other in the order of items."""
        return np.cumsum(self.block == 0, axis=1) - 1

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        n, at = problem.n_items, self.rows_of(action)
        block = self.block[at]  # (R, K, n_items)
        numbers = streams.uniform(keys, t, np.maximum(action, 0), 2 * n + 2)
        shock, shared, own = (
            numbers[:, :, :1] < self.shock[at][:, :, None],
            numbers[:, :, 1 : n + 2],
            numbers[:, :, n + 2 :],
        )
        u = np.where(
            block == 0,
            np.take_along_axis(own, self._order[at] * (block == 0), 2),
            np.take_along_axis(shared, np.abs(block), 2),
        )
        u = np.where(shock, shared[:, :, :1], np.where(block < 0, 1.0 - u, u))
        low = self.base[at]
        return Answer(low + (1.0 - low) * (u < self.chance[at]))

    def means(self, problem: Problem, t: int) -> Floats:
        return self.entries(problem, self.p)

    def validate(self, problem: Problem) -> None:
        self.means(problem, 1)


class Cohorts(Environment):
    """Outcomes of recorded people: every round draws one person of each group, whose outcomes all arms share.

    What one person did with several arms keeps its real dependence; the persons of different groups are drawn
    independently. The true means are the averages over the groups.

    Parameters
    ----------
    table
        What each person did with each arm, in [0, 1], (n_people, n_arms); the people of a group are adjacent.
    first
        The first person of each group (item), and the number of people: n_items + 1 numbers in ascending order.
    """

    table: Any
    first: Any

    def check(self) -> None:
        table, start = floats(self.table, "table", low=0.0, high=1.0), np.asarray(self.first, np.int64)
        ordered = start.ndim == 1 and len(start) > 1 and bool((np.diff(start) > 0).all())
        if table.ndim != 2 or not ordered or start[0] != 0 or start[-1] != len(table):
            wrong, remedy = f"{start.tolist()} for {table.shape}", "give 0, the starts of groups, n_people"
            raise InvalidArgument("first", wrong, remedy, "Cohorts")
        self.convert("table", table)
        self.convert("first", start)

    @cached_property
    def average(self) -> Floats:
        """The true parameters, (n_arms, n_items)."""
        means = [self.table[a:b].mean(axis=0) for a, b in itertools.pairwise(self.first)]
        return np.ascontiguousarray(np.array(means).T)

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        sizes = np.diff(self.first)
        person = np.minimum(sizes - 1, (_item_numbers(problem, keys, t) * sizes).astype(np.int64))
        outcome = self.table[(self.first[:-1] + person)[:, None, :], action[:, :, None]]
        return Answer(problem.support.items_to_rows(outcome, action))

    def means(self, problem: Problem, t: int) -> Floats:
        return self.entries(problem, self.average)

    def validate(self, problem: Problem) -> None:
        self.means(problem, 1)


class Replay(Environment):
    """Outcomes from a recorded table: those of round ``t`` are ``table[(t - 1) % n_rounds]``.

    The true means are the averages over the table.

    Parameters
    ----------
    table
        Outcomes in [0, 1], (n_rounds, n_arms, n_items), or (n_rounds, n_entries) for a sparse problem.
    """

    table: Any

    def check(self) -> None:
        table = floats(self.table, "table", low=0.0, high=1.0)
        if table.ndim not in (2, 3) or len(table) == 0:
            remedy = "give (n_rounds, n_arms, n_items) with at least one round"
            raise InvalidArgument("table", f"shape {table.shape}", remedy, "Replay")
        self.convert("table", table)

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        recorded = problem.support.to_entries(self.table[(t - 1) % len(self.table)])
        return Answer(problem.support.rows(recorded, action))

    def means(self, problem: Problem, t: int) -> Floats:
        return self.entries(problem, np.ascontiguousarray(self.table.mean(axis=0)))

    def validate(self, problem: Problem) -> None:
        self.means(problem, 1)
