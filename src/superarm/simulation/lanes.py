"""Lanes: instances of one shape side by side, as replications of one, which advance together."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import numpy as np

from superarm.core.arrays import Floats, Ints
from superarm.core.support import Dense
from superarm.environments.base import Answer, Environment
from superarm.problem import Problem
from superarm.simulation.instances import Instance


def are_alike(instances: Sequence[Instance]) -> bool:
    """Whether instances can be lanes: they have the same problem without a context, and environments of one kind."""
    first = instances[0]
    return first.problem.context is None and all(
        one is first or (type(one.environment) is type(first.environment) and one.problem == first.problem)
        for one in instances
    )


def side_by_side(instances: Sequence[Instance], sizes: Sequence[int]) -> Instance:
    """An instance whose replications are those of instances that are alike, ``sizes`` of each.

    Replications have the numbers that they have alone, to the last bit.
    """
    if len(instances) == 1:
        return instances[0]
    problem, environments = instances[0].problem, [one.environment for one in instances]
    first = environments[0]
    by_means, by_arm = (vars(type(first)).get(name, ()) for name in ("mean_parameters", "arm_parameters"))
    moved = {name: getattr(first, name) for name in (*by_means, *by_arm)}
    same = moved and all(type(one)(**(one.parameters() | moved)) == first for one in environments[1:])
    if not same or not isinstance(problem.support, Dense):
        return Instance(problem, Lanes(tuple(environments), tuple(sizes)))
    joined = {name: np.concatenate([getattr(one, name) for one in environments]) for name in by_arm}
    stacked = type(first)(**(first.parameters() | joined)) if joined else copy(first)
    above = np.repeat(np.arange(len(sizes)) * problem.n_arms, sizes)[:, None]
    object.__setattr__(stacked, "means", _stack_means(environments, sizes))
    object.__setattr__(stacked, "rows_of", lambda action: action + above)
    return Instance(problem, stacked)


def _stack_means(environments: Sequence[Environment], sizes: Sequence[int]) -> Callable[[Problem, int], Floats]:
    """The means of all environments as those of one, a row for each replication; joined anew only when they change."""
    held: list[Any] = [-1, None, None]

    def means(problem: Problem, t: int) -> Floats:
        if t != held[0]:
            parts = [one.means(problem, t) for one in environments]
            if held[1] is None or any(a is not b for a, b in zip(parts, held[1], strict=True)):
                held[1:] = parts, np.repeat(np.concatenate(parts), sizes, axis=0)
            held[0] = t
        return held[2]

    return means


class Lanes(Environment):
    """Environments of one kind side by side: the first ``sizes[0]`` replications are of the first one, and so on."""

    environments: tuple[Environment, ...]
    sizes: tuple[int, ...]
    partial = property(lambda self: self.environments[0].partial)  # type: ignore[assignment]
    free_samples = property(lambda self: self.environments[0].free_samples)
    totals = property(lambda self: self.environments[0].totals)  # type: ignore[assignment]
    own_reward = property(lambda self: self.environments[0].own_reward)  # type: ignore[assignment]

    def _rows(self) -> Iterator[tuple[Environment, slice]]:
        """Each environment with its replications."""
        ends = itertools.accumulate((0, *self.sizes))
        return zip(self.environments, itertools.starmap(slice, itertools.pairwise(ends)), strict=True)

    def draw(self, problem: Problem, action: Ints, t: int, keys: Any) -> Answer:
        answers = [one.draw(problem, action[rows], t, keys[rows]) for one, rows in self._rows()]
        parts: Any = zip(*answers, strict=True)
        joined: list[Any] = [None if part[0] is None else np.concatenate(part) for part in parts]
        return Answer(*joined)

    def means(self, problem: Problem, t: int) -> Floats:
        kept = self.__dict__.setdefault("_entries", {})
        if "joined" not in kept:
            kept["joined"] = _stack_means(self.environments, self.sizes)
        return kept["joined"](problem, t)

    def worth(self, problem: Problem, action: Ints, t: int, keys: Any) -> Floats:
        own = type(self.environments[0])
        if (own.expected, own.worth) == (Environment.expected, Environment.worth):
            return problem.values(self.means(problem, t), action)
        return np.concatenate([one.worth(problem, action[rows], t, keys[rows]) for one, rows in self._rows()])
