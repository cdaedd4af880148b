"""One name, one meaning; and old public spellings still work, with a warning."""

import ast
import importlib
import operator
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

import superarm as sa

PACKAGE = Path(sa.__file__).parent


def test_the_glossary_speaks_of_what_exists():
    """Every name in code font in the glossary is a name in the source, or a directory of it."""
    words = {word for path in PACKAGE.rglob("*.py") for word in re.findall(r"\w+", path.read_text())}
    for term in re.findall(r"`([^`]+)`", (PACKAGE.parent.parent / "docs" / "glossary.md").read_text()):
        known = (PACKAGE / term).is_dir() or all(word in words for word in re.findall(r"\w+", term))
        assert known, term


def test_no_class_name_is_defined_twice():
    """Private classes included; ``next`` has the names of what it takes the place of."""
    coming = set((PACKAGE / "next").rglob("*.py"))
    for files in (set(PACKAGE.rglob("*.py")) - coming, coming):
        names = Counter(
            node.name for path in files for node in ast.parse(path.read_text()).body if isinstance(node, ast.ClassDef)
        )
        assert [name for name, n in names.items() if n > 1] == []


@pytest.mark.parametrize(
    ("module", "old", "home", "new"),
    [
        ("superarm.noise", "Noise", "superarm.core.streams", "Stream"),
        ("superarm.noise", "noise", "superarm.core.streams", "new_stream"),
        ("superarm.noise", "seek", "superarm.core.streams", "seek"),
        ("superarm.actions", "Ranks", "superarm.candidates", "Candidates"),
        ("superarm.rewards", "fresh", "superarm.rewards", "initial_states"),
        ("superarm.environments", "earn", "superarm.environments", "expected_reward"),
    ],
)
def test_old_names_of_modules_are_found_with_a_warning(module, old, home, new):
    with pytest.warns(DeprecationWarning, match=rf"{module}\.{old} is now called {home}\.{new}"):
        found = getattr(importlib.import_module(module), old)
    assert found is getattr(importlib.import_module(home), new)


@pytest.mark.parametrize("module", ["superarm.noise", "superarm.actions", "superarm.rewards"])
def test_unknown_names_are_unknown(module):
    with pytest.raises(AttributeError, match="nonsense"):
        importlib.import_module(module).nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("klucb", "did you mean 'kl_ucb'"),
        ("Bernoulli", "it is superarm.environments.Bernoulli"),
        ("environments.Bernouli", "did you mean 'Bernoulli'"),
        ("indices.KLMos", "did you mean 'KLMoss'"),
        ("oracles.Gredy", "did you mean 'Greedy'"),
        ("simulation.simulte", "did you mean 'simulate'"),
        ("experiments.Experimnt", "did you mean 'Experiment'"),
        ("offline.Logg", "did you mean 'Log'"),
    ],
)
def test_the_nearest_name_is_named(name, meant):
    with pytest.raises(AttributeError, match=meant):
        operator.attrgetter(name)(sa)


def test_a_component_may_define_a_hook_under_its_old_name():
    with pytest.warns(DeprecationWarning, match=r"Old\.lift is now called item_gain"):

        @sa.component
        class Old(NamedTuple):
            submodular, modular = True, True

            def lift(self, weight, state, q):
                return weight * q

    assert Old().item_gain(2.0, 0.0, 0.5) == 1.0
