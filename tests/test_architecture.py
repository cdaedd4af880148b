"""The architecture page tells of what exists, and a round, an ask and a tell go the way that it describes."""

import ast
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import superarm as sa
from superarm.core import streams
from superarm.simulation.engine import Run

PAGE = Path(__file__).parent.parent / "docs" / "background" / "architecture.md"
PACKAGE = Path(sa.__file__).parent
LINKS = sorted(set(re.findall(r"\[`([\w.]+)`\]\(((?:\.\./)+src/[^)]+)\)", PAGE.read_text())))
MAX_LINES, MAX_STEPS = 120, 8


def _defined(path):
    """The names that a module defines, and those of its classes as ``Class.name``."""
    names = set()
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, functions | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{method.name}" for method in node.body if isinstance(method, functions)}
    return names


@pytest.mark.parametrize(("name", "link"), LINKS, ids=lambda part: part.rsplit("/", 1)[-1])
def test_what_a_link_names_is_in_its_file(name, link):
    assert name in _defined((PAGE.parent / link).resolve())


def test_every_package_is_on_the_page():
    packages = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    named = set(re.findall(r"`(\w+)`", PAGE.read_text()))
    assert packages - {"__init__"} - named == set()
    assert len(LINKS) > 20


def _journeys():
    """The steps of each operation, by its title."""
    sections = PAGE.read_text().split("\n## ")
    steps = {section.split("\n")[0].strip("`"): re.split(r"\n\d\. ", section)[1:] for section in sections}
    return {title: found for title, found in steps.items() if found}


def test_the_page_is_short():
    assert len(PAGE.read_text().splitlines()) <= MAX_LINES
    assert list(_journeys()) == ["A simulated round", "ask", "tell", "An HTTP decision", "An experiment"]
    assert all(0 < len(steps) <= MAX_STEPS for steps in _journeys().values())


def _calls(function):
    """The functions of superarm that a call passes through, in the order of their first calls."""
    found = {}

    def note(frame, event, _):
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
            found.setdefault(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return list(found)


def _round():
    problem = sa.Problem(6, 3, sa.Coverage(), sa.Subsets(2))
    environment = sa.environments.Bernoulli(np.full((6, 3), 0.5))
    run = Run(problem, environment, sa.kl_ucb(), streams.run_keys(np.random.SeedSequence(0).spawn(2)), fuse=False)
    run.advance(5)
    return run.play_round


def _agent(operation):
    agent = sa.Agent(sa.Problem(6, 3, sa.Coverage(), sa.Subsets(2)), sa.kl_ucb(), seed=0)
    for _ in range(5):
        agent.tell(agent.ask(), np.zeros((2, 3)))
    if operation == "ask":
        return agent.ask
    decision = agent.ask()
    return lambda: agent.tell(decision, np.ones((2, 3)))


@pytest.mark.parametrize(
    ("title", "make"),
    [("A simulated round", _round), ("ask", lambda: _agent("ask")), ("tell", lambda: _agent("tell"))],
)
def test_an_operation_takes_the_steps_of_the_page(title, make):
    steps = " ".join(_journeys()[title])
    named = re.findall(r"\[`([\w.]+)`\]\((?:\.\./)+src", steps)
    calls = _calls(make())
    assert [name for name in named if name not in calls] == []
    assert sorted(set(named), key=calls.index) == list(dict.fromkeys(named))
