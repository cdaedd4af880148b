"""What 0.1.0 offered under a name that has changed works for one more release, with a warning."""

import importlib
import inspect
import json
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import superarm as sa
from superarm._renamed import OLD_MODULES
from superarm.candidates import Candidates
from superarm.environments import Bernoulli, FreeSamples, respond
from superarm.policies import Round
from superarm.core.streams import RunStreams, new_stream

SIGNATURES = json.loads((Path(__file__).parent / "fixtures/public_signatures_0_1_0.json").read_text())
"""The public callables and attributes at 946dbf8, ``package:name.attribute``, with their parameters."""

BY_POSITION = {"noise", "ranks", "moment", "memo", "game", "told"}
"""Parameters of kernels and of the methods of components that kernels call: verbs pass them on by position."""

NOT_CALLED = {"superarm.experiments:Study worlds", "superarm.experiments:Executor.perform watch"}
"""Keywords without a caller: studies are read by ``Study.load``, and a Protocol's method is defined by others."""

NOW_MADE_BY_A_FUNCTION = {"superarm.policies:Optimistic.": "superarm.policies:IndexPolicy."}
"""A class that became a variant of another one, which has its attributes."""


def find(path):
    """What a path of ``SIGNATURES`` names."""
    for old, new in NOW_MADE_BY_A_FUNCTION.items():
        path = path.replace(old, new)
    package, _, names = path.partition(":")
    found = importlib.import_module(package)
    for name in names.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.filterwarnings("ignore:.* is now called:DeprecationWarning")
@pytest.mark.parametrize("package", sorted({path.partition(":")[0] for path in SIGNATURES}))
def test_attributes_and_keywords_of_version_0_1_0_are_found(package):
    for path, parameters in SIGNATURES.items():
        if not path.startswith(f"{package}:"):
            continue
        found = find(path)  # raises AttributeError
        if parameters is None or not callable(found):
            continue
        gone = set(parameters.split()) - set(inspect.signature(found).parameters) - BY_POSITION
        gone = {name for name in gone if f"{path} {name}" not in NOT_CALLED}
        assert gone <= old_keywords(found), path


def old_keywords(function):
    """The old keywords that a function, or the constructor of a class, takes."""
    return set(getattr(function.__new__ if inspect.isclass(function) else function, "old_keywords", ()))


@pytest.mark.parametrize(
    ("call", "old", "new"),
    [
        (FreeSamples, {"world": Bernoulli([[0.5]])}, {"environment": Bernoulli([[0.5]])}),
        (Candidates, {"pulls": 1, "eligible": 2}, {"counts": 1, "eligible": 2}),
        (Round, {"t": 1, "tally": 2, "ranks": 3}, {"t": 1, "tally": 2, "candidates": 3}),
        (RunStreams, {"world": 1, "mind": 2, "coin": 3}, {"environment": 1, "policy": 2, "rounding": 3}),
    ],
)
def test_old_fields_are_arguments_and_attributes(call, old, new):
    with pytest.warns(DeprecationWarning, match=rf"{call.__name__}\(\w+=\) is now called {call.__name__}\(\w+=\)"):
        made = call(**old)
    assert repr(made) == repr(call(**new))
    for name in old.keys() - new.keys():
        with pytest.warns(DeprecationWarning, match=rf"{call.__name__}\.{name} is now called {call.__name__}\."):
            assert getattr(made, name) is old[name]


def test_an_old_keyword_of_a_function():
    arguments = (Bernoulli([[1.0]]), sa.Problem(n_arms=1, n_items=1, reward=sa.Linear(), actions=sa.Subsets(1)).support)
    with pytest.warns(DeprecationWarning, match=r"respond\(noise=\) is now called respond\(stream=\)"):
        feedback = respond(*arguments, np.array([0]), 1, noise=new_stream(np.random.SeedSequence(0)))
    assert feedback.outcome.tolist() == [1.0]
    with pytest.raises(TypeError, match="nonsense"):
        respond(*arguments, np.array([0]), 1, nonsense=1)


def test_old_attributes_of_components():
    for reward in (sa.Coverage(), sa.Linear(), sa.Logistic(0.5), sa.Conjunctive()):
        with pytest.warns(DeprecationWarning, match=r"\.lift is now called \w+\.item_gain"):
            assert reward.lift(2.0, 1.0, 0.5) == reward.item_gain(2.0, 1.0, 0.5)
    assert sa.ClippedLinear(0.5, 0.1).slope == 0.5  # a parameter, not the old name of bound_slope


@pytest.mark.parametrize("module", OLD_MODULES)
def test_old_modules_are_imported_with_a_warning(module):
    with pytest.warns(DeprecationWarning, match=f"{module} is now called {OLD_MODULES[module]}"):
        importlib.reload(importlib.import_module(module))


def test_old_modules_have_their_public_names():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from superarm.book import Decision
        from superarm.experiments.study import Study
        from superarm.policies.fading import Fading

    assert (Decision, Study, Fading) == (sa.Decision, sa.experiments.Study, sa.policies.Forgetting)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("superarm.policies.no_such_module")


@pytest.mark.compiled("reads renamed fields in a kernel")
def test_kernels_of_users_read_old_fields(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # a kernel that was compiled before warns no more

    @sa.kernel
    def read(moment):
        return moment.ranks.pulls[0]

    with (
        pytest.warns(DeprecationWarning, match=r"Round\.ranks is now called candidates"),
        pytest.warns(DeprecationWarning, match=r"Candidates\.pulls is now called counts"),
    ):
        assert read(Round(1, 0, Candidates(np.array([7.0]), np.array([True])))) == 7.0


class Entry(NamedTuple):
    """Has a field that is called as an old one of ``Candidates``."""

    pulls: int
    mean: float


@pytest.mark.compiled("reads renamed fields in a kernel")
def test_kernels_read_the_fields_of_other_tuples_as_before(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    @sa.kernel
    def pulls(entry):
        return entry.pulls

    assert pulls(Entry(3, 0.5)) == 3
