"""Machine code on disk is used as long as its sources are the same, and not longer."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import superarm
from superarm import _cache

pytestmark = pytest.mark.compiled("it is about compiled code")

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
    from superarm.core.support import Dense

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

    def reset(self):
        """The user's own files as they are above; what was edited in the package stays edited."""
        (self.root / "mine.py").write_text(dedent(MINE))
        (self.root / "settings.py").write_text("POWER = 1.0")

    def edit(self, file, old, new):
        text = (self.root / file).read_text()
        assert text.count(old) == 1
        (self.root / file).write_text(text.replace(old, new))

    def run(self, program=None, **settings):
        program = program or "from mine import Mine\n" + dedent(PROBE)
        changes = {"PYTHONPATH": str(self.root), "NUMBA_CACHE_DIR": str(self.root / "cache"), "NUMBA_DISABLE_JIT": "0"}
        environment = {**os.environ, **changes, "PYTHONDONTWRITEBYTECODE": "1", **settings}
        command = [sys.executable, "-W", "error", "-"]
        done = subprocess.run(
            command, input=program, env=environment, cwd=self.root, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return Sandbox(tmp_path_factory.mktemp("sandbox"))


@pytest.fixture
def sandbox(shared):
    shared.reset()
    return shared


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


def apart(holding_kernels):
    """The files of the package that are in ``_APART``, with or without kernels, as paths in a sandbox."""
    package = Path(superarm.__file__).parent
    files = [path for path in package.rglob("*.py") if _cache._top(path) in _cache._APART]
    return [
        f"superarm/{p.relative_to(package)}" for p in files if ("superarm._jit" in p.read_text()) is holding_kernels
    ]


def test_edits_that_no_kernel_depends_on_recompile_nothing(sandbox):
    sandbox.run()
    edited = apart(holding_kernels=False)
    assert len(edited) > 100
    for file in edited:
        with (sandbox.root / file).open("a") as source:
            source.write("# edited\n")
    again = sandbox.run()
    assert again["misses"] == 0
    assert again["hits"] > 0


def test_kernels_apart_depend_on_the_kernels_beside_them(sandbox):
    """A kernel of the theory: on kernels of the theory and of the library, not on the theory's other files."""
    program = """
        import json
        from superarm._cache import directory_of
        from superarm.rewards.base import gain
        from superarm.theory.batch_table import batch_values

        print(json.dumps([directory_of(kernel.py_func).name for kernel in (batch_values, gain)]))
    """

    def after_editing(file):
        with (sandbox.root / file).open("a") as source:
            source.write("# edited again\n")
        return sandbox.run(dedent(program))

    theory, rewards = sandbox.run(dedent(program))
    assert theory != rewards
    for file in apart(holding_kernels=False):
        if file.startswith("superarm/theory/"):
            assert after_editing(file) == [theory, rewards]
            break
    kernels = [file for file in apart(holding_kernels=True) if file.startswith("superarm/theory/")]
    changed, same = after_editing(kernels[0])
    assert changed != theory
    assert same == rewards
    assert after_editing("superarm/rewards/base.py")[1] != rewards


def test_what_is_apart_holds_neither_components_nor_verbs():
    package = Path(superarm.__file__).parent
    for name in _cache._APART:
        assert (package / f"{name}.py").exists() or (package / name).is_dir(), f"{name}: there is no such module"
    for file in apart(holding_kernels=True):
        text = (package.parent / file).read_text()
        assert "\n@component" not in text, f"{file}: kernels elsewhere may call its component"
        assert " verb(" not in text, f"{file}: kernels elsewhere may call its verb"


def test_numbas_own_cache_is_never_stale_either(sandbox):
    """The fallback, with components that are defined after the library's kernels."""
    program = "import superarm.rewards\nfrom mine import Mine\n" + dedent(PROBE)

    def run():
        return sandbox.run(program, SUPERARM_PLAIN_NUMBA="1")

    first = run()
    second = run()
    assert first["misses"] > 0
    assert second == first | {"hits": second["hits"], "misses": 0}
    assert second["hits"] > 0
    sandbox.edit("settings.py", "1.0", "0.5")
    assert run()["found"] != first["found"]
    sandbox.edit("mine.py", "return weight - state", "return 2.0 * weight - state")
    last = run()
    assert last["found"] > first["found"] + 1.0
    assert run() == last | {"hits": second["hits"], "misses": 0}


def test_components_typed_at_the_prompt_are_never_stale(sandbox):
    """Without a file to watch, a second definition of the same name must not get the first one's machine code."""
    typed = dedent(MINE) + dedent(PROBE)
    gentle = sandbox.run(typed)["found"]
    harsh = sandbox.run(typed.replace("state * (1.0 - POWER * q)", "0.0 * state"))["found"]
    assert harsh == 11.0  # everything is covered at once
    assert gentle != harsh


def test_an_edit_after_the_import_leaves_no_stale_machine_code(sandbox):
    """What is compiled belongs to the source as it was imported, even if it is compiled after an edit."""
    program = """
        import json
        from pathlib import Path
        import numpy as np
        import mine
        from superarm.rewards import Terms, value
        from superarm.core.support import Dense

        source = Path(mine.__file__)
        source.write_text(source.read_text().replace("return weight - state", "return 5.0 * (weight - state)"))
        print(json.dumps(value(mine.Mine(), Terms(np.ones(2), Dense(1, 2)), np.ones(2), np.array([0]))))
    """
    assert sandbox.run(dedent(program)) == 2.0  # two items of weight 1
    assert sandbox.run(dedent(program)) == 10.0
    sandbox.edit("mine.py", "5.0 * (weight - state)", "weight - state")
    assert sandbox.run(dedent(program)) == 2.0


def test_loading_takes_nothing_of_the_compiler():
    program = """
        import json, sys
        import superarm as sa

        instance = sa.instances.random_coverage(6, 4, 2)
        results = sa.simulate(instance, {"BC-UCB": sa.bc_ucb()}, horizon=20, replications=1)
        heavy = ["numba.np.arraymath", "scipy.linalg", "scipy.sparse", "matplotlib", "tqdm"]
        print(json.dumps([results.regret["BC-UCB"].tolist(), [name for name in heavy if name in sys.modules]]))
    """

    def run():  # with the machine's own cache: another test may have compiled it already
        command = [sys.executable, "-W", "error", "-c", dedent(program)]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    compiled, _ = run()
    assert run() == [compiled, []]


def test_machine_code_finds_what_it_refers_to_when_loaded(sandbox):
    """Strings with their hash, linear algebra, containers, sorting and errors: each is more than arithmetic."""
    (sandbox.root / "wide.py").write_text(
        dedent("""
            import numpy as np
            import superarm as sa

            @sa.kernel
            def wide(x, word, rng):
                if len(word) == 0:
                    raise ValueError("no word")
                seen = {word: np.linalg.solve(x, np.dot(x, x[0]))[1]}
                drawn = np.sort(np.array([rng.random(), rng.standard_normal()]))
                return seen[word], drawn[0], np.float64(drawn @ drawn)
        """)
    )
    program = """
        import json
        import numpy as np
        from wide import wide

        def told(word):
            return wide(np.array([[2.0, 1.0], [1.0, 3.0]]), word, np.random.default_rng(1))

        try:
            told("")
        except ValueError as error:
            print(json.dumps([told("word"), str(error), sum(wide.stats.cache_hits.values())]))
    """
    first = sandbox.run(dedent(program))
    assert first[0][0] == 1.0  # x[0, 1]
    assert first[1:] == ["no word", 0]
    assert sandbox.run(dedent(program)) == [*first[:2], 1]


def test_what_warm_has_compiled_is_found_on_disk(tmp_path):
    """By an agent and a simulation of another size, in another process."""
    warm = """
        import superarm.warm
        from superarm.cli import main

        superarm.warm.SIZES = ((20, 10, 3),)
        main(["warm", "--policy", "uniform", "--reward", "Linear"], standalone_mode=False)
    """
    program = """
        import numpy as np
        import superarm as sa
        from superarm import _jit

        instance = sa.Instance(
            sa.Problem(7, 4, sa.Linear(), sa.Subsets(2)), sa.environments.Bernoulli(np.full((7, 4), 0.5))
        )
        agent = sa.Agent(instance.problem, sa.uniform(), seed=0)
        for _ in range(2):
            agent.tell(agent.ask(), np.ones((2, 4)))
        sa.simulate(instance, {"uniform": sa.uniform()}, horizon=20, replications=2, progress=False)
        print(sum(sum(k.stats.cache_misses.values()) for k in _jit._compiled))
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0"}
    for code in (warm, program):
        command = [sys.executable, "-c", dedent(code)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["0"]


def test_old_caches_are_discarded(tmp_path):
    ages = range(_cache._KEPT_DIRECTORIES + 2)
    for age in ages:
        (tmp_path / f"{age:016d}").mkdir()
        os.utime(tmp_path / f"{age:016d}", (age, age))
    (tmp_path / "something else").mkdir()
    _cache.make_room(tmp_path / f"{5:016d}")  # in use already: nothing to make room for
    assert len(list(tmp_path.iterdir())) == len(ages) + 1
    _cache.make_room(tmp_path / ("f" * 16))
    assert sorted(d.name for d in tmp_path.iterdir()) == [f"{age:016d}" for age in ages[3:]] + ["something else"]


def test_where_the_cache_lies(monkeypatch, tmp_path):
    monkeypatch.setattr(_cache._config, "CACHE_DIR", str(tmp_path))
    assert _cache.cache_directory() == tmp_path
    monkeypatch.setattr(_cache._config, "CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _cache.cache_directory() == tmp_path / "xdg" / "superarm"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert _cache.cache_directory() == Path.home() / ".cache" / "superarm"
