"""kernel, component, verb: resolution, coercion, and a disk cache that is used when it may be and only then."""

import inspect
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Any, NamedTuple

import numpy as np
import pytest

import superarm
from superarm import _jit
from superarm._jit import component, components, interpreted, kernel, verb
from superarm.errors import InvalidArgument
from superarm.indices import KL, Bernstein
from superarm.rewards import Coverage, Terms, value
from superarm.rewards.base import lift
from superarm.support import Dense

compiled_only = pytest.mark.skipif(bool(_jit._config.DISABLE_JIT), reason="nothing is compiled")


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


def test_a_missing_method_is_named():
    with pytest.raises(TypeError, match="Stone has no method 'legs'"):
        legs(Stone(), 1)


@compiled_only
def test_a_missing_method_is_named_in_kernels_too():
    with pytest.raises(Exception, match="Stone has no method 'legs'"):
        _walk(Stone(), 1)


@component
class Halving(NamedTuple):
    """A reward without ``lift``: each joining arm with q > 0 halves what is left."""

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
    assert lift(Halving(), 8.0, 4.0, 0.3) == 2.0
    assert lift(Coverage(), 8.0, 4.0, 0.25) == 1.0


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


@compiled_only
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


@compiled_only
def test_equal_types_compile_once():
    @kernel
    def rate(index, x):
        return index.rho * x

    rate(Bernstein(3), 1.0)
    rate(Bernstein(2.5), 1.0)
    assert len(rate.signatures) == 1


# ---- the cache on disk

MINE = """
    from typing import NamedTuple
    import superarm as sa
    from settings import POWER

    @sa.component
    class Mine(NamedTuple):
        def start(self, weight: float) -> float:
            return weight

        def join(self, state: float, q: float) -> float:
            return state * (1.0 - POWER * q)

        def worth(self, weight: float, state: float) -> float:
            return weight - state
"""
PROBE = """
    import json
    import numpy as np
    from superarm import _jit
    from superarm.rewards import Terms, value
    from superarm.support import Dense

    terms = Terms(np.array([1.0, 10.0]), Dense(2, 2))
    found = value(Mine(), terms, np.array([0.5, 0.1, 0.5, 0.2]), np.array([0, 1]))
    hits = sum(sum(k.stats.cache_hits.values()) for k in _jit._compiled)
    misses = sum(sum(k.stats.cache_misses.values()) for k in _jit._compiled)
    print(json.dumps({"found": round(found, 9), "hits": hits, "misses": misses}))
"""


class Sandbox:
    """A copy of the package's sources, a component of the user's own, and a cache, in a directory of their own."""

    def __init__(self, root):
        self.root = root
        shutil.copytree(Path(superarm.__file__).parent, root / "superarm", ignore=shutil.ignore_patterns("__pycache__"))
        (root / "mine.py").write_text(dedent(MINE))
        (root / "settings.py").write_text("POWER = 1.0")

    def edit(self, file, old, new):
        text = (self.root / file).read_text()
        assert text.count(old) == 1
        (self.root / file).write_text(text.replace(old, new))

    def run(self, program=None):
        program = program or "from mine import Mine\n" + dedent(PROBE)
        changes = {"PYTHONPATH": str(self.root), "NUMBA_CACHE_DIR": str(self.root / "cache"), "NUMBA_DISABLE_JIT": "0"}
        environment = {**os.environ, **changes, "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-W", "error", "-"]
        done = subprocess.run(
            command, input=program, env=environment, cwd=self.root, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    return Sandbox(tmp_path_factory.mktemp("sandbox"))


def test_the_cache_is_used_until_a_source_changes(sandbox):
    # Item 0: 1 - 0.5 * 0.5 = 0.75; item 1: 10 (1 - 0.9 * 0.8) = 2.8.
    first = sandbox.run()
    assert first["found"] == 3.55
    assert first["misses"] > 0

    second = sandbox.run()
    assert second["found"] == 3.55
    assert second["hits"] > 0
    assert second["misses"] == 0

    # A constant that machine code holds frozen, from a file without any kernel.
    sandbox.edit("settings.py", "1.0", "0.5")
    constant = sandbox.run()  # 1 - 0.75^2 + 10 (1 - 0.95 * 0.9) = 0.4375 + 1.45
    assert constant["found"] == 1.8875

    sandbox.edit("mine.py", "POWER * q", "q * q")
    mine = sandbox.run()  # 1 - 0.75^2 + 10 (1 - 0.99 * 0.96) = 0.4375 + 0.496
    assert mine["found"] == 0.9335
    assert mine["misses"] > 0

    # Far from the file that holds the compiled loop: the items of every arm change places.
    sandbox.edit("superarm/support.py", "        return offset\n", "        return 1 - offset\n")
    package = sandbox.run()  # weights swap: 10 * 0.4375 + 0.0496
    assert package["found"] == 4.4246
    assert package["misses"] > 0
    again = sandbox.run()
    assert (again["found"], again["misses"]) == (4.4246, 0)


def test_components_typed_at_the_prompt_are_never_stale(sandbox):
    """Without a file to watch, a second definition of the same name must not get the first one's machine code."""
    typed = dedent(MINE) + dedent(PROBE)
    gentle = sandbox.run(typed)["found"]
    harsh = sandbox.run(typed.replace("state * (1.0 - POWER * q)", "0.0 * state"))["found"]
    assert harsh == 11.0  # everything is covered at once
    assert gentle != harsh


def test_old_caches_are_discarded(tmp_path):
    ages = range(_jit._KEPT + 2)
    for age in ages:
        (tmp_path / f"{age:016d}").mkdir()
        os.utime(tmp_path / f"{age:016d}", (age, age))
    (tmp_path / "something else").mkdir()
    _jit._discard_old(tmp_path, f"{5:016d}")  # in use already: nothing to make room for
    assert len(list(tmp_path.iterdir())) == len(ages) + 1
    _jit._discard_old(tmp_path, "f" * 16)
    assert sorted(d.name for d in tmp_path.iterdir()) == [f"{age:016d}" for age in ages[3:]] + ["something else"]


def test_where_the_cache_lies(monkeypatch, tmp_path):
    monkeypatch.setattr(_jit._config, "CACHE_DIR", str(tmp_path))
    assert _jit.cache_directory() == tmp_path
    monkeypatch.setattr(_jit._config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _jit.cache_directory() == tmp_path / "xdg" / "superarm"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert _jit.cache_directory() == Path.home() / ".cache" / "superarm"
