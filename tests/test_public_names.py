"""What ``import superarm`` gives: the same names, whatever was imported before."""

import importlib
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import superarm as sa

PACKAGES = [found.name for found in pkgutil.iter_modules(sa.__path__) if found.ispkg and found.name != "next"]
OLD_NAMES = json.loads((Path(__file__).parent / "fixtures/public_names_0_1_0.json").read_text())
"""The names in ``__all__`` at 946dbf8, by package."""
COMPONENTS = Path(__file__).parents[1] / "docs" / "components.md"

_EACH_IN_A_FRESH_PROCESS = """
import json, os, sys
import numba, scipy.optimize, scipy.sparse  # what takes longest to import, and is not looked at
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


def test_every_package_is_reachable_on_a_fresh_import():
    assert {"actions", "oracles", "policies", "rewards", "simulation"} <= set(PACKAGES)
    script = [sys.executable, "-c", _EACH_IN_A_FRESH_PROCESS, *PACKAGES, "testing", "instances"]
    assert json.loads(subprocess.run(script, check=True, capture_output=True, text=True).stdout) == []


def test_dir_lists_every_name_that_can_be_reached():
    listed = dir(sa)
    assert set(sa.__all__) | set(PACKAGES) | {"__version__", "__doc__"} <= set(listed)
    assert all(hasattr(sa, name) for name in listed)


def components():
    """Each section of the page, and the components that the first column of its tables names."""
    for section in COMPONENTS.read_text().split("\n## ")[1:]:
        rows = re.findall(r"^\| `([^|]*) \|", section, re.MULTILINE)
        yield section.split("\n")[0], sorted({name for row in rows for name in re.findall(r"\b([A-Z]\w+)(?=\()", row)})


@pytest.mark.parametrize(("title", "names"), list(components()), ids=[title for title, _ in components()])
def test_documented_components_are_reachable(title, names):
    package = {"Rewards": sa.rewards, "Indices": sa.indices, "Policies": sa.policies, "Oracles": sa.oracles}[
        re.match(r"\w+", title)[0]
    ]
    assert names
    assert [name for name in names if not hasattr(package, name)] == []


@pytest.mark.parametrize("package", OLD_NAMES)
def test_public_names_of_version_0_1_0_are_found(package):
    """Names that are no longer listed work for one more release, with a warning."""
    module = importlib.import_module(package)
    for name in OLD_NAMES[package].split():
        if name in module.__all__:
            assert hasattr(module, name)
        else:
            with pytest.warns(DeprecationWarning, match=f"{package}.{name} is now called"):
                assert getattr(module, name) is not None


def test_old_name_of_candidates():
    problem = sa.Problem(n_arms=3, n_items=1, reward=sa.Linear(), actions=sa.Subsets(2))
    with pytest.warns(DeprecationWarning, match=r"Problem\.candidates"):
        assert problem.ranks().eligible.tolist() == [True, True, True]
