"""Compiling says what it does after a while, and no two processes compile the same kernel at once."""

import contextlib
import fcntl
import gc
import threading
import time
from types import SimpleNamespace

import pytest

import superarm as sa
from superarm import _compiling
from superarm._compiling import announce_to, compiling, name_composition
from superarm.environments import Bernoulli
from superarm.indices import KL
from superarm.oracles import Greedy
from superarm.policies import IndexPolicy, Uniform
from superarm.core.support import Dense

SOON = 20.0
"""Seconds after which a test gives up waiting."""


class Said:
    """A listener that can be waited for."""

    def __init__(self):
        self.texts, self._heard = [], threading.Event()

    def __call__(self, text):
        self.texts.append(text)
        self._heard.set()

    def wait(self):
        assert self._heard.wait(SOON)


@pytest.fixture(autouse=True)
def no_composition(monkeypatch):
    monkeypatch.setattr(_compiling, "_composition", [])


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(_compiling, "_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(_compiling, "_said", set())


def test_a_composition_is_named_by_its_components():
    policy = [IndexPolicy, KL, Greedy]
    problem = [sa.Coverage, sa.Subsets, Dense]
    assert (
        name_composition("advance", [*problem, Bernoulli, *policy]) == "kernels for KL × Coverage × Subsets × Bernoulli"
    )
    assert name_composition("choose", [Uniform, *problem]) == "kernels for Uniform × Coverage × Subsets"
    assert name_composition("rebuild", [Dense]) == "the kernel rebuild"
    own = type("Mine", (), {"__module__": "mine"})
    assert name_composition("choose", [own, *problem]) == "kernels for Mine × Coverage × Subsets"


def test_kernels_of_a_part_are_named_by_the_composition_that_is_being_made_ready():
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2))
    _compiling.note_composition(sa.kl_ucb(), problem)
    assert name_composition("rebuild", []) == "kernels for KL × Coverage × Subsets"
    assert name_composition("value", [sa.Coverage]) == "kernels for KL × Coverage × Subsets"
    assert name_composition("choose", [KL, sa.Linear]) == "kernels for KL × Linear"


def test_an_agent_and_a_simulation_have_one_name_for_all_their_kernels():
    instance = sa.instances.random_coverage(4, 2, 2, seed=0)
    sa.Agent(instance.problem, sa.bc_ucb())
    assert name_composition("seek", []) == "kernels for Bernstein × Coverage × Subsets"
    policies = {"KL-UCB": sa.kl_ucb(), "CUCB": sa.cucb()}
    sa.simulate(instance, policies, horizon=1, replications=1, progress=False, target="oracle")
    assert name_composition("seek", []) == "kernels for Hoeffding × Coverage × Subsets × Bernoulli"


def test_what_takes_long_is_announced(at_once, tmp_path):
    said = Said()
    with announce_to(said), compiling("choose", [KL, sa.Coverage], tmp_path / "print", "choose(KL)"):
        said.wait()
    assert said.texts == [f"compiling kernels for KL × Coverage, once; kept in {tmp_path}"]


def test_what_a_script_defines_is_not_called_kept(at_once, tmp_path):
    own, said = type("Mine", (), {"__module__": "__main__"}), Said()
    with announce_to(said), compiling("choose", [own], tmp_path, ""):
        said.wait()
    assert said.texts == ["compiling kernels for Mine, in each process that runs this script"]


def test_one_line_on_stderr_for_each_composition(at_once, capsys, monkeypatch):
    said = Said()

    def spoken(text, print_once=_compiling._print_once):
        print_once(text)
        said(text)

    monkeypatch.setattr(_compiling, "_print_once", spoken)
    _compiling.note_composition(KL())
    for kernel, classes in (("seek", []), ("choose", [KL]), ("learn", [KL])):
        said = Said()
        with compiling(kernel, classes, None, ""):
            said.wait()
    line, end = capsys.readouterr().err.split("\n")
    assert line.startswith("superarm: compiling kernels for KL, ")
    assert end == ""


def test_garbage_waits_while_something_compiles():
    with contextlib.suppress(ValueError), compiling("choose", [KL], None, ""):
        with compiling("learn", [KL], None, ""):
            pass
        assert not gc.isenabled()
        raise ValueError("does not compile")
    assert gc.isenabled()
    gc.disable()
    try:
        with compiling("choose", [KL], None, ""):
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_what_is_quick_is_not_announced(tmp_path):
    said = Said()
    with announce_to(said), compiling("choose", [KL], tmp_path, ""):
        pass
    assert not said.texts


def lock_of(place):
    (path,) = place.glob("*.lock")
    return path


def enter(place, inside):
    """A thread that compiles one kernel with machine code below ``place``."""

    def compile_one():
        with compiling("choose", [KL], place, "choose(KL)"):
            inside.set()

    thread = threading.Thread(target=compile_one, daemon=True)
    thread.start()
    return thread


def test_a_second_process_waits_until_the_first_has_compiled(tmp_path, monkeypatch):
    with compiling("choose", [KL], tmp_path, "choose(KL)"):
        pass
    inside, waits, said, due = threading.Event(), threading.Event(), Said(), []

    def sleep(seconds):
        waits.set()
        time.sleep(seconds)

    monkeypatch.setattr(_compiling, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    timer = SimpleNamespace(start=lambda: None, cancel=lambda: None)
    announcing = SimpleNamespace(Event=threading.Event, Timer=lambda seconds, say: due.append(say) or timer)
    monkeypatch.setattr(_compiling, "threading", announcing)
    with announce_to(said), lock_of(tmp_path).open("w") as other:  # as another process that has the file open
        fcntl.flock(other, fcntl.LOCK_EX)
        thread = enter(tmp_path, inside)
        assert waits.wait(SOON)
        due[0]()
        assert said.texts == ["waiting for another process that compiles kernels for KL"]
        assert not inside.is_set()
        fcntl.flock(other, fcntl.LOCK_UN)
        assert inside.wait(SOON)
        thread.join(SOON)


def test_waiting_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(_compiling, "_MAX_WAIT_SECONDS", 0.0)
    with compiling("choose", [KL], tmp_path, "choose(KL)"):
        pass
    inside = threading.Event()
    with lock_of(tmp_path).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        enter(tmp_path, inside).join(SOON)
        assert inside.is_set()


def test_other_kernels_do_not_wait(tmp_path):
    with compiling("choose", [KL], tmp_path, "choose(KL)"), compiling("learn", [KL], tmp_path, "learn(KL)"):
        assert len(list(tmp_path.glob("*.lock"))) == 2


def test_without_a_directory_nothing_is_locked(tmp_path):
    with compiling("choose", [KL], tmp_path / "missing", "choose(KL)"):
        assert not list(tmp_path.iterdir())


def test_the_progress_bar_is_told(monkeypatch, at_once):
    from superarm.simulation import progress

    said = Said()
    monkeypatch.setattr(progress.sys, "stderr", SimpleNamespace(isatty=lambda: True, write=said, flush=lambda: None))
    monkeypatch.setattr(progress._Bar, "say", lambda bar, text: said(text))
    with progress.progress_bar(1, wanted=True), compiling("choose", [KL], None, ""):
        said.wait()
    assert any(text.startswith("compiling kernels for KL") for text in said.texts)


def test_the_service_says_that_it_is_starting_and_why(caplog):
    from superarm.service.runtime.condition import Condition

    condition = Condition()
    with caplog.at_level("INFO", "superarm.condition"):
        condition.note_compiling("compiling kernels for KL")
        assert (condition.status, condition.reason) == ("starting", "compiling kernels for KL")
        condition.enter("running")
        condition.note_compiling("compiling kernels for CTS")
    assert (condition.status, condition.reason) == ("ok", "")
    assert [record.message for record in caplog.records][-1] == "compiling kernels for CTS"
