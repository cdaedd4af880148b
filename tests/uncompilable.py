"""Components with one mistake each, for ``test_compile_errors``."""

import math
from typing import Any, NamedTuple

import numpy as np

import superarm as sa
from superarm.indices.base import level
from superarm.parameters import NoParameters


def plain_function(x: float) -> float:
    return x + 1.0


def index(name: str, level: Any) -> Any:
    """A component with the given ``level``."""

    def score(self, mean, deviation, level, stream):
        return min(1.0, mean + level)

    cls: Any = type(name, (NoParameters,), {"level": level, "score": score, "__module__": __name__})
    return sa.component(cls)


def f_string(self, pulls, t, share):
    text = f"{pulls:.3f}"
    return 1.0 / pulls + len(text)


def prints(self, pulls, t, share):
    print("pulls: %s" % pulls)  # noqa: UP031
    return 1.0 / pulls


def untyped_list(self, pulls, t, share):
    terms = []
    return len(terms) / pulls


def text(self, pulls, t, share):
    return "much" * pulls


def unsupported(self, pulls, t, share):
    return np.einsum("i,i->", np.ones(2), np.ones(2)) / pulls


def unsupported_module(self, pulls, t, share):
    return np.ma.sqrt(pulls)


def undecorated(self, pulls, t, share):
    return plain_function(pulls)


def wrong_shape(self, pulls, t, share):
    terms = np.ones(3)
    return terms[0, 0] / pulls


def unknown_field(self, pulls, t, share):
    return self.rho / pulls


def mixed(self, pulls, t, share):
    x = 1.0
    if t > 3:
        x = "no"
    return x


def assigned(self, pulls, t, share):
    self.rho = pulls  # the message about the line has no place
    return 1.0 / pulls


def imports(self, pulls, t, share):
    import itertools

    return itertools.count(pulls)


def random_numbers(self, pulls, t, share):
    return np.random.default_rng(0).random() / pulls


def called_by_keyword(self, pulls, t, share):
    return level(index=self, pulls=pulls, t=t, share=share)


def wrong_signature(self, pulls, t):
    return math.log(1.0 + t) / pulls


def no_number(self, pulls, t, share):
    return (pulls, t)


def nothing_at_first(self, pulls, t, share):
    if t > 3:
        return 1.0 / pulls
    return None


class Undeclared(NamedTuple):
    """Lacks ``@component``."""

    def level(self, pulls, t, share):
        return 1.0 / pulls

    def score(self, mean, deviation, level, stream):
        return min(1.0, mean + level)


@sa.component
class PairState(NamedTuple):
    """Its state is a tuple, and ``smoothness`` lacks ``@interpreted``."""

    submodular, modular = True, False

    def start(self, weight):
        return (0.0, 0.0)

    def join(self, state, q):
        return (max(state[0], q), state[1])

    def worth(self, weight, state):
        return weight * state[0]

    def derivative(self, weight, state, q):
        return weight

    def smoothness(self, k):
        return sa.Smoothness(1.0, 0.5, 0.5)


@sa.component
class ListOracle(NamedTuple):
    """Returns a list."""

    def maximize(self, problem, q, candidates, stream):
        return [0, 1, 2]

    @sa.interpreted
    def guarantee(self, problem):
        return sa.Guarantee(0.0, 1.0)

    @sa.interpreted
    def fit(self, problem):
        return self


@sa.component
class PythonAttribute(NamedTuple):
    """Asks the problem for what only Python can ask it for."""

    def maximize(self, problem, q, candidates, stream):
        return np.arange(problem.k)

    @sa.interpreted
    def guarantee(self, problem):
        return sa.Guarantee(0.0, 1.0)

    @sa.interpreted
    def fit(self, problem):
        return self
