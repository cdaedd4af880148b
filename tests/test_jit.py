"""kernel, component, verb: resolution, coercion, construction."""

import inspect
import pickle
import sys
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

from superarm._jit import allocating, component, components, interpreted, kernel, lean, verb
from superarm.core.errors import InvalidArgument
from superarm.indices import KL, Bernstein
from superarm.rewards import Coverage, Terms, value
from superarm.rewards.base import item_gain
from superarm.core.support import Dense

pytestmark = pytest.mark.compiled("it is about compiled code")


class Animal:
    def legs(self, pairs: int) -> int: ...


class Maybe:
    def tails(self) -> int: ...


@kernel
def _one_tail(animal):
    return 1


legs = verb(Animal.legs)
tails = verb(Maybe.tails, default=_one_tail)


@component
class Bird(NamedTuple):
    extra: int = 0

    def legs(self, pairs: int) -> int:
        return 2 * pairs + self.extra

    def tails(self) -> int:
        return 3


@component
class Snake(NamedTuple):
    def legs(self, pairs: int) -> int:
        return 0


@component
class Stone(NamedTuple):
    pass


@kernel
def _walk(animal, pairs):
    return legs(animal, pairs) + 100 * tails(animal)


def test_verbs_resolve_by_type_and_fall_back_on_their_default():
    assert (legs(Bird(1), 3), legs(Snake(), 3)) == (7, 0)
    assert (tails(Bird()), tails(Snake())) == (3, 1)
    assert _walk(Bird(1), 3) == 307
    assert _walk(Snake(), 3) == 100


class Walker:
    def walk(self, way: Any) -> None: ...

    def roam(self, way: Any) -> None: ...


walk = verb(Walker.walk)
roam = verb(Walker.roam, allocates=True)


@component
class Ant(NamedTuple):
    reach: Any

    @lean
    def walk(self, way: Any) -> None:
        way[0] += self.reach[0]

    @lean
    def roam(self, way: Any) -> None:
        way[0] += self.reach[0]


@component
class Elephant(NamedTuple):
    reach: Any

    def walk(self, way: Any) -> None:
        steps = np.full(3, self.reach[0])  # makes an array, so it cannot be lean
        way[0] += steps.sum()

    def roam(self, way: Any) -> None:
        way[0] += np.full(3, self.reach[0]).sum()


@kernel
def _walk_often(walker, way):
    for _ in range(1_000):
        walk(walker, way)


@allocating
def _rest(walker, way):
    way[0] += np.full(2, walker.reach[0]).sum()


@lean
def _roam_often(walker, way):
    for _ in range(1_000):
        roam(walker, way)
        _rest(walker, way)


@pytest.mark.parametrize(("kind", "far"), [(Ant, 2_000.0), (Elephant, 6_000.0)])
def test_methods_may_be_lean_or_make_arrays(kind, far):
    reach, way = np.array([2.0]), np.zeros(1)
    held = sys.getrefcount(reach), sys.getrefcount(way)
    _walk_often(kind(reach), way)
    assert way[0] == far
    assert (sys.getrefcount(reach), sys.getrefcount(way)) == held


@pytest.mark.parametrize(("kind", "far"), [(Ant, 6_000.0), (Elephant, 10_000.0)])
def test_lean_kernels_may_call_what_makes_arrays(kind, far):
    reach, way = np.array([2.0]), np.zeros(1)
    held = sys.getrefcount(reach), sys.getrefcount(way)
    _roam_often(kind(reach), way)
    assert way[0] == far
    assert (sys.getrefcount(reach), sys.getrefcount(way)) == held


def test_a_missing_method_is_named():
    with pytest.raises(TypeError, match="Stone has no method 'legs'"):
        legs(Stone(), 1)


def test_a_missing_method_is_named_in_kernels_too():
    with pytest.raises(Exception, match="Stone has no method 'legs'"):
        _walk(Stone(), 1)


@component
class Halving(NamedTuple):
    """A reward without ``item_gain``: each joining arm with q > 0 halves what is left."""

    def start(self, weight: float) -> float:
        return weight

    def join(self, state: float, q: float) -> float:
        return 0.5 * state if q > 0.0 else state

    def worth(self, weight: float, state: float) -> float:
        return weight - state


def test_a_reward_of_ones_own_without_lift():
    terms = Terms(np.array([8.0, 4.0]), Dense(2, 2))
    q = np.array([1.0, 0.0, 1.0, 1.0])
    # Item 0 is halved twice: 8 - 2 = 6; item 1 once: 4 - 2 = 2.
    assert value(Halving(), terms, q, np.array([0, 1])) == 8.0
    assert item_gain(Halving(), 8.0, 4.0, 0.3) == 2.0
    assert item_gain(Coverage(), 8.0, 4.0, 0.25) == 1.0


# ---- construction


def _doubled(given, name):
    if given == 0:
        raise InvalidArgument(name, "0 cannot be doubled", "give another number")
    return 2 * given


@component
class Parts(NamedTuple):
    size: int
    share: float = 1
    twice: Annotated[Any, _doubled] = 5
    free: Any = None

    def _check(self) -> None:
        if self.share > self.size:
            raise InvalidArgument("share", "above size", "give less", "Parts")


def test_fields_are_coerced_by_their_annotation():
    made = Parts(np.int64(3), "0.5", 2, [1])
    assert made == (3, 0.5, 4, [1])
    assert (type(made.size), type(made.share)) == (int, float)
    assert Parts(2) == (2, 1.0, 10, None)
    assert Parts(share=1, size=2) == Parts(2, 1.0)
    assert type(Parts(True).size) is int


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((1.5,), "size: 1.5 is not an integer; give an int"),
        (("2",), "size: '2' is not an integer"),
        ((2, "x"), "share: 'x' is not a number; give a float"),
        ((2, None), "share: None is not a number"),
        ((2, 10**400), "share: 1000"),
        ((2, 3.0), "Parts.share: above size; give less"),
        ((2, 1.0, 0), "twice: 0 cannot be doubled; give another number"),
    ],
)
def test_construction_explains(args, said):
    with pytest.raises(InvalidArgument) as told:
        Parts(*args)
    assert str(told.value).startswith(said)


def test_replacing_unpickling_and_making_validate():
    for attempt in (lambda: KL()._replace(rho=-1.0), lambda: KL._make([-1.0, 0.0]), lambda: Bernstein(rho=-1)):
        with pytest.raises(InvalidArgument, match=r"rho: -1\.0 is not positive"):
            attempt()
    assert type(Bernstein()._replace(rho=2).rho) is float
    assert pickle.loads(pickle.dumps(KL(2.0, 1.0))) == KL(2.0, 1.0)


def test_wrong_arguments_are_python_s_own_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'rhoo'"):
        Bernstein(rhoo=1.0)
    with pytest.raises(TypeError, match="missing a required argument: 'size'"):
        Parts()
    assert "rho" in inspect.signature(Bernstein.__new__).parameters


def test_components_are_registered_by_module_and_name():
    assert components["superarm.indices.bernstein:Bernstein"] is Bernstein
    assert components[f"{__name__}:Parts"] is Parts


def test_public_methods_are_compiled_and_others_are_not():
    @component
    class Mixed(NamedTuple):
        def fast(self) -> int:
            return 1

        @interpreted
        def slow(self) -> int:
            return 2

        def _hidden(self) -> int:
            return 3

    assert hasattr(Mixed.fast, "signatures")
    assert not hasattr(Mixed.slow, "signatures")
    assert not hasattr(Mixed._hidden, "signatures")
    assert (Mixed().fast(), Mixed().slow(), Mixed()._hidden()) == (1, 2, 3)


def test_equal_types_compile_once():
    @kernel
    def rate(index, x):
        return index.rho * x

    rate(Bernstein(3), 1.0)
    rate(Bernstein(2.5), 1.0)
    assert len(rate.signatures) == 1
