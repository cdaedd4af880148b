"""What ``import superarm`` gives: few names, whatever was imported before, each with a docstring and an example."""

import importlib
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import superarm as sa

AT_THE_TOP = [
    *(
        "Actions",
        "Agent",
        "Context",
        "Copies",
        "Coverage",
        "Decision",
        "Environment",
        "Experiment",
        "Features",
        "Index",
    ),
    *(
        "IndexPolicy",
        "Instance",
        "InvalidArgument",
        "Judge",
        "Knapsack",
        "Linear",
        "Logistic",
        "Oracle",
        "Policy",
        "Problem",
    ),
    *("Results", "Reward", "Slots", "Subsets", "SuperarmError", "Table", "Tally", "Thresholds", "Total"),
    *("bc_ucb", "connect", "cts", "cucb", "directional_kl_moss", "kl_moss", "kl_ucb", "policy", "pooled_thompson"),
    *("recommend", "simulate", "uniform"),
]
PACKAGES = [
    *("actions", "agent", "context", "contextual", "data", "diffusion", "environments", "experiments"),
    *("gym", "indices", "instances", "items", "models", "offline", "oracles", "policies", "random", "rewards"),
    *("service", "simulation", "testing", "theory", "warehouse"),
]
RECEIVED = {"Decision", "InvalidArgument", "Results", "SuperarmError", "Table", "Tally"}
"""What users get from other calls, and do not make themselves."""
COMPONENTS = Path(__file__).parents[1] / "docs" / "reference" / "components.md"

_EACH_IN_A_FRESH_PROCESS = """
import json, os, sys
import scipy.optimize, scipy.sparse  # what takes longest to import, and is not looked at
import superarm as sa
failed = []
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        os._exit(0 if hasattr(sa, name) else 1)
    if os.waitpid(child, 0)[1]:
        failed.append(name)
print(json.dumps(failed))
"""


def test_the_names_at_the_top_are_these():
    """A further one is a decision: it has to be of use to almost everybody."""
    assert sorted(sa.__all__) == sorted(AT_THE_TOP + PACKAGES)


def test_every_name_is_reachable_on_a_fresh_import():
    script = [sys.executable, "-c", _EACH_IN_A_FRESH_PROCESS, *AT_THE_TOP, *PACKAGES]
    assert json.loads(subprocess.run(script, check=True, capture_output=True, text=True).stdout) == []


def test_every_package_can_be_imported_first():
    modules = [f"superarm.{found.name}" for found in pkgutil.iter_modules(sa.__path__) if found.name != "__main__"]
    script = _EACH_IN_A_FRESH_PROCESS.replace("hasattr(sa, name)", "__import__(name)").replace(
        "import superarm as sa\n", ""
    )
    done = subprocess.run([sys.executable, "-c", script, *modules], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == [], done.stderr


def test_dir_lists_every_name_that_can_be_reached():
    listed = dir(sa)
    assert {*sa.__all__, "__version__", "__doc__"} <= set(listed)
    assert all(hasattr(sa, name) for name in listed)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("escb", "superarm.policies.escb"),
        ("Bernoulli", "superarm.environments.Bernoulli"),
        ("Explicit", "superarm.actions.Explicit"),
        ("ClippedLinear", "superarm.rewards.ClippedLinear"),
        ("Greedy", "superarm.oracles.Greedy"),
        ("KL", "superarm.indices.KL"),
        ("c2_ucb", "superarm.contextual.c2_ucb"),
        ("Spread", "superarm.diffusion.Spread"),
        ("UnknownDecision", "superarm.core.errors.UnknownDecision"),
    ],
)
def test_a_name_that_is_not_at_the_top_is_found(name, place):
    with pytest.raises(AttributeError, match=rf"it is {place}$"):
        getattr(sa, name)
    module, _, attribute = place.rpartition(".")
    assert hasattr(importlib.import_module(module), attribute)


def test_an_unknown_name_is_unknown():
    with pytest.raises(AttributeError, match=r"has no attribute 'qqqqq'$"):
        sa.qqqqq  # noqa: B018


@pytest.mark.parametrize(
    ("name", "meant"), [("klucb", "superarm.kl_ucb"), ("Bernouli", "superarm.environments.Bernoulli")]
)
def test_a_misspelt_name_is_answered_with_the_nearest(name, meant):
    with pytest.raises(AttributeError, match=rf"did you mean {meant}\?$"):
        getattr(sa, name)


@pytest.mark.parametrize("name", AT_THE_TOP)
def test_a_name_has_a_docstring_and_an_example_if_users_call_it(name):
    text = inspect.getdoc(getattr(sa, name))
    assert text
    assert name in RECEIVED or ">>> " in text


@pytest.mark.parametrize("name", sa.policies.catalog.__all__)
def test_a_named_policy_has_an_example(name):
    assert ">>> " in inspect.getdoc(getattr(sa.policies, name))


def _sections():
    """Each section of the page of components, and the components that the first column of its tables names."""
    for section in COMPONENTS.read_text().split("\n## ")[1:]:
        rows = re.findall(r"^\| `([^|]*) \|", section, re.MULTILINE)
        names = sorted({name for row in rows for name in re.findall(r"\b([A-Z]\w+)(?=\()", row)})
        title = section.split("\n")[0]
        yield pytest.param("actions" if title == "Action sets" else title.lower(), names, id=title)


@pytest.mark.parametrize(("package", "names"), list(_sections()))
def test_documented_components_are_where_the_page_says(package, names):
    assert names
    assert [name for name in names if not hasattr(getattr(sa, package), name)] == []


BASES = {
    "rewards": sa.Reward,
    "actions": sa.Actions,
    "indices": sa.Index,
    "oracles": sa.Oracle,
    "environments": sa.Environment,
}


@pytest.mark.parametrize("package", [*BASES, "policies"])
def test_every_component_is_on_the_page(package):
    """All classes of a kind, and the policies by name."""
    page, module = COMPONENTS.read_text(), getattr(sa, package)
    if package == "policies":
        names = sa.policies.catalog.__all__
    else:
        base = BASES[package]
        found = [(name, getattr(module, name)) for name in dir(module) if name[0] != "_"]
        found = [(name, value) for name, value in found if isinstance(value, type) and value is not base]
        names = [name for name, value in found if issubclass(value, base)]
    assert names
    assert [name for name in names if not re.search(rf"`{name}\(|\b{name}\(", page)] == []
