"""numba's private interfaces: none is needed, none changes a decision, and no setting of numba changes."""

import json
import os
import subprocess
import sys
from textwrap import dedent

import llvmlite
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.codegen import CPUCodegen

from superarm import _numba_libraries as libraries
from superarm import _numba_private, _numba_shared
from superarm._jit import for_kernels, inlined, kernel, lean, separate, shared
from superarm.core.support import Dense, item

compiled = pytest.mark.compiled("it is about compiled code")

DECISIONS = """
    import json
    import numpy as np
    import superarm as sa
    from superarm import _numba_linking as linking
    from superarm import _numba_private as private
    from superarm.policies.fast.tiles import new_tiles, refine_bounds
    from superarm.policies.fast.fixed_point import write_numbers

    agent = sa.Agent(sa.Problem(20, 30, sa.Coverage(), sa.Subsets(3)), sa.bc_ucb(0.05), seed=3)
    p, rng, actions = np.random.default_rng(0).uniform(0.0, 0.3, (20, 30)), np.random.default_rng(1), []
    for _ in range(60):
        decision = agent.ask()
        actions.append(decision.action.tolist())
        agent.tell(decision, (rng.random((3, 30)) < p[decision.action]).astype(float))
    tiles = new_tiles(20, 30)
    for arm in range(20):
        tiles.row[:] = p[arm]
        write_numbers(tiles.z, arm, tiles.row, 0, 30)
    tiles.slope[:] = 1.0 - p[0]
    refine_bounds(tiles, np.float32(0.0))
    found = private.LEAN, private.VECTORISED, private.HAS_LANES, private.KernelCache, linking.LINKED
    on = [bool(feature) for feature in found]
    print(json.dumps([on, actions, [part.tolist() for part in (tiles.reach, tiles.top)]]))
"""

SETTINGS = """
    import gc, importlib, json, pkgutil, sys
    import matplotlib, numba, numpy

    def settings():
        return repr([
            {name: value for name, value in vars(numba.config).items() if name.isupper()},
            numpy.geterr(), numpy.get_printoptions(), dict(matplotlib.rcParams), matplotlib.get_backend(),
            gc.get_threshold(), sys.getswitchinterval(), sys.getrecursionlimit(),
        ])

    before = settings()
    import superarm
    modules = [module.name for module in pkgutil.walk_packages(superarm.__path__, "superarm.")]
    for name in modules:
        importlib.import_module(name)
    print(json.dumps([len(modules), settings() == before]))
"""


def run(program, **environment):
    command = [sys.executable, "-W", "error", "-c", dedent(program)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@compiled
def test_decisions_are_the_same_without_private_interfaces():
    """An agent's decisions and the bounds of a sieve use all of them; plain Python is the reference."""
    on, actions, bounds = run(DECISIONS, SUPERARM_PLAIN_NUMBA="1", NUMBA_DISABLE_JIT="0")
    assert not any(on)
    assert run(DECISIONS, NUMBA_DISABLE_JIT="1")[1:] == [actions, bounds]
    assert len({tuple(action) for action in actions[30:]}) > 5
    assert len(set(bounds[0])) > 5


def test_machine_code_with_and_without_them_is_kept_apart():
    program = """
        import json
        import superarm._numba_private
        from superarm._cache import fingerprint
        print(json.dumps(fingerprint()))
    """
    assert run(program, SUPERARM_PLAIN_NUMBA="1") != run(program, SUPERARM_PLAIN_NUMBA="0")


def test_the_installed_numba_has_all_of_them():
    """Otherwise the other tests of compiled code would test the fallbacks only."""
    program = """
        import json
        from superarm import _numba_linking as linking
        from superarm import _numba_private as private
        found = private.LEAN, private.VECTORISED, private.HAS_LANES, private.KernelCache, linking.LINKED
        print(json.dumps([bool(feature) for feature in found]))
    """
    assert run(program, SUPERARM_PLAIN_NUMBA="0", NUMBA_DISABLE_JIT="0") == [True, True, True, True, True]


@pytest.mark.parametrize("names", [("Missing",), ("FunctionCache._gone",)])
def test_what_is_missing_is_noticed(names):
    assert _numba_private.has_interfaces("numba.core.caching", "FunctionCache.load_overload")
    assert not _numba_private.has_interfaces("numba.core.caching", *names)
    assert not _numba_private.has_interfaces("numba.core.nowhere", "anything")


def test_importing_changes_no_setting():
    n_modules, unchanged = run(SETTINGS, NUMBA_DISABLE_JIT="0")
    assert n_modules > 100
    assert unchanged


def without_source():
    """A function that no cache on disk can hold, so that it is compiled every time."""
    names = {"__name__": "nowhere"}
    exec("def add(x, y):\n    return x + y", names)
    return names["add"]


@compiled
def test_the_vectoriser_is_on_for_our_kernels_only(monkeypatch):
    used, original = [], CPUCodegen._module_pass_manager

    def spy(self, **options):
        used.append(options.get("slp_vectorize", numba.config.SLP_VECTORIZE))
        return original(self, **options)

    monkeypatch.setattr(CPUCodegen, "_module_pass_manager", spy)
    numba.njit(without_source())(1.0, 2.0)
    assert not any(used)
    kernel(without_source())(1.0, 2.0)
    assert used[-1] == 1
    with pytest.raises(numba.core.errors.TypingError):
        kernel(without_source())(1.0, "two")
    assert numba.config.SLP_VECTORIZE == 0


@kernel
def _double(values, place):
    return 2.0 * values[place]


@kernel
def _quadruple(values, place):
    return _double(values, place) + _double(values, 0)


@for_kernels
def _room_for(n):
    return np.zeros(n), [n]


@kernel
def _sum_of_zeros(n):
    return _room_for(n)[0].sum()


@compiled
def test_what_only_kernels_call_has_no_machine_code_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nothing is compiled that was kept
    assert _quadruple(np.array([3.0, 4.0]), 1) == 14.0
    assert len(_quadruple.overloads) == 1
    assert not _double.overloads
    assert len(_double.inner.overloads) == 1  # one for the variable and for the constant 0
    assert _double(np.array([3.0, 4.0]), 0) == 6.0
    assert len(_double.overloads) == 1


@compiled
def test_functions_of_the_users_own_can_call_kernels():
    @numba.njit
    def twice(values):
        return _quadruple(values, 0) + item(Dense(2, 2), 0, 1)

    assert twice(np.array([3.0, 4.0])) == 13.0


@compiled
def test_what_allocates_is_compiled_for_kernels_only():
    assert _sum_of_zeros(3) == 0.0
    made, listed = _room_for(2)
    assert (made.tolist(), listed) == ([0.0, 0.0], [2])
    assert not _room_for.overloads


@separate
def _apart(x):
    return x + 1.0


@lean
def _together(x):
    return x + 2.0


@inlined
def _innermost(x):
    return _apart(x) + _together(x)


def _compile_inner(fn):
    """The code of a kernel for its callers, and whether LLVM has to copy it into them."""
    fn.inner.compile((numba.float64,))
    (result,) = fn.inner.overloads.values()
    result.library._ensure_finalized()
    return str(result.library._final_module), result.fndesc.inline


@compiled
def test_kernels_are_kept_apart_by_every_llvmlite_that_can_do_so():
    assert libraries.can_forbid_copies() == (tuple(map(int, llvmlite.__version__.split(".")[:2])) >= (0, 48))


@compiled
def test_only_what_is_marked_is_copied_into_its_callers_or_kept_apart():
    assert _compile_inner(_innermost)[1]  # first: numba would hand the mark on to the kernels that it calls
    assert [_compile_inner(fn)[1] for fn in (_apart, _together)] == [False, False]
    assert ["noinline" in _compile_inner(fn)[0] for fn in (_apart, _together)] == [libraries.can_forbid_copies(), False]


@compiled
def test_a_kernel_is_made_when_it_is_first_used():
    @kernel
    def triple(x):
        return 3.0 * x

    @for_kernels
    def listed(x):
        return [x]

    assert listed(2.0) == [2.0]
    assert not {"kernel"} & {*vars(triple), *vars(listed)}
    assert triple(2.0) == 6.0
    assert "kernel" in vars(triple)


@given(st.lists(st.sets(st.integers(0, 11)), min_size=12, max_size=12))
def test_every_caller_is_linked_before_what_it_calls(calls):
    """Kernel n may call kernels above n; the order in which they are listed is arbitrary."""
    every = [libraries.InnerLibrary.__new__(libraries.InnerLibrary) for _ in calls]
    for n, library in enumerate(every):
        library._reload_init, library._final_module = set(), n
        library._linking_libraries = [every[callee] for callee in calls[n] if callee > n]
    order = [part._get_module_for_linking() for part in libraries.list_parts([every[3], every[0]])]
    assert len(set(order)) == len(order)
    assert {0, 3} <= set(order)
    for n in order:
        for callee in (callee for callee in calls[n] if callee > n):
            assert order.index(n) < order.index(callee)


@shared
def _filled(n, value):
    return np.full(n, value)


@kernel
def _sum_filled(n, value):
    return _filled(n, value).sum() + _apart(value)


@kernel
def _largest_filled(n, value):
    return _filled(n, value).max() + _apart(value)


def _shared_by(fn):
    (result,) = fn.overloads.values()
    return result.library.shared


@compiled
def test_a_shared_kernel_has_machine_code_once_for_all_entries(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))  # nothing is compiled that was kept
    assert _sum_filled(3, 0.5) == 3.0
    before = dict(_numba_shared._loaded)
    assert _largest_filled(3, 0.5) == 2.0
    assert before == _numba_shared._loaded
    assert sorted(_shared_by(_sum_filled)) == sorted(_shared_by(_largest_filled))
    assert len(_shared_by(_sum_filled)) == 2


ENTRIES = """
    import json
    from numba.core import event
    from mine import first, second
    from superarm import _numba_shared as shared

    class Count(event.Listener):
        n = 0
        def on_start(self, started): Count.n += 1
        def on_end(self, ended): pass

    event.register("numba:compile", Count())
    print(json.dumps([first(3, 0.5), second(3, 0.5), Count.n > 0, sorted(shared._loaded)]))
"""
MINE = """
import numpy as np
from superarm._jit import kernel, shared

@shared
def inner(n, value):
    if n < 0:
        raise ValueError("n is negative")
    return np.full(n, value)

@shared
def outer(n, value):
    return inner(n, value) + 1.0

@kernel
def first(n, value):
    return outer(n, value).sum()

@kernel
def second(n, value):
    return outer(n, value).max() + inner(n, value).min()
"""


@compiled
def test_entries_are_kept_with_the_shared_kernels_that_they_call(tmp_path):
    """Two entries share two kernels, of which one calls the other; a second process loads both, each once."""
    (tmp_path / "mine.py").write_text(MINE)
    places = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "NUMBA_DISABLE_JIT": "0"}
    made, loaded = run(ENTRIES, **places), run(ENTRIES, **places)
    assert made[:3] == [4.5, 2.0, True]
    assert loaded == [4.5, 2.0, False, made[3]]
    assert len(made[3]) == 2


@compiled
def test_symbols_do_not_spell_out_the_types_of_arguments():
    for fn in (_double, _quadruple):
        fn.inner.compile((numba.float64[::1], numba.int64))
        fn.inner.compile((numba.float32[::1], numba.int64))
    found = [result.fndesc.mangled_name for fn in (_double, _quadruple) for result in fn.inner.overloads.values()]
    assert len(set(found)) == len(found) >= 4
    assert max(map(len, found)) < 100
