"""Commands and experiment files that the documentation shows: what they name exists, and files can be read."""

import importlib.util
import re
import shlex
import sys
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest

from superarm.cli import main
from superarm.experiments import load
from superarm.experiments.spec import imports

ROOT = Path(__file__).parent.parent
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PAGES.remove(ROOT / "CHANGELOG.md")  # it names commands that are gone
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))


def _lines(page):
    """The lines of a page's shell examples, without prompts, comments and what follows a pipe or a redirection."""
    for kind, block in re.findall(r"```(sh|console)\n(.*?)```", page.read_text(), re.S):
        for line in block.replace("\\\n", " ").splitlines():
            if kind == "sh" or line.startswith("$ "):
                command = re.split(r"\s#|[|>]", line.removeprefix("$ "))[0].strip()
                if re.match(r"(superarm|make|\S*python\d?) ", command):
                    yield command


def _inline(page):
    """The commands that the text of a page names."""
    return re.findall(r"`((?:superarm|make|python -m) [^`\n]+)`", page.read_text())


def _commands():
    for page in PAGES:
        for line in dict.fromkeys([*_lines(page), *_inline(page)]):
            yield pytest.param(line, id=f"{page.stem}: {line}")


def _check_superarm(words):
    """Refuse an unknown command or option; values are not looked at."""
    command = main
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        name = words.pop(0)
        if name in ("…", "COMMAND"):
            return
        assert name in command.commands, name
        command = command.commands[name]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.split("=")[0] for word in words if word.startswith("--")} <= known | {"--help"}


@pytest.mark.parametrize("line", list(_commands()))
def test_a_command_names_what_exists(line):
    words = [word for word in shlex.split(line) if not re.match(r"[A-Z_]+=", word)]
    if words[:1] == ["superarm"]:
        _check_superarm(words[1:])
    elif words[:1] == ["make"]:
        targets = [word for word in words[1:] if "=" not in word and not word.startswith(("-", "."))]
        assert set(targets) <= TARGETS | {"PYTHON"}
    elif words[1:2] == ["-m"] and words[0].endswith("python"):
        own = words[2].split(".")[0] in ("superarm", "dev", "tests")
        assert not own or importlib.util.find_spec(words[2]), words[2]


FROM_AN_INDEX = re.compile(
    r"\b(?:pip|pipx|uv|conda|npm|pnpm|yarn)\b[^\n`]*\b(?:install|add|i)\s+(?:-\S+\s+)*[\"'@]*superarm\b"
)
READ_BY_USERS = (
    "*.md",
    "docs/**/*.md",
    "src/**/*.py",
    "src/**/*.html",
    "src/**/*.toml",
    "examples/*",
    "clients/**/*.md",
    "deploy/**/*.*",
)


@pytest.mark.parametrize(
    "line", ["pip install 'superarm[lab]'", "uv add superarm", "npm install --save @superarm/client"]
)
def test_an_installation_by_name_is_noticed(line):
    assert FROM_AN_INDEX.search(line)


def test_nothing_that_users_read_installs_superarm_from_an_index():
    """No package index has superarm yet: pages, messages, errors and examples install it from a clone."""
    files = {file for pattern in READ_BY_USERS for file in ROOT.glob(pattern) if "node_modules" not in file.parts}
    found = {
        str(file.relative_to(ROOT)): FROM_AN_INDEX.findall(file.read_text()) for file in sorted(files) if file.is_file()
    }
    assert {file: lines for file, lines in found.items() if lines} == {}
    assert len(files) > 300  # the patterns find something


HEAD = 'name = "fragment"\nhorizon = 10\n'
INSTANCES = '[instances.i]\ngenerator = "random_coverage"\nn_arms = 4\nn_items = 2\nk = 2\n'
POLICIES = '[policies.p]\npolicy = "kl_ucb"\n'
TWO_ARMS = """
def two_arms(high: float):
    problem = sa.Problem(2, 1, sa.Coverage(), sa.Subsets(1))
    return sa.Instance(problem, sa.environments.Bernoulli([[high], [0.1]]))
"""


OWN = (ROOT / "docs/guides/own-components.md").read_text()
MINE = "\n".join([*re.findall(r"```python\n(.*?)```", OWN, re.S), TWO_ARMS])
"""The module that the pages let the reader write."""


def _files():
    for page in PAGES:
        for n, block in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text(), re.S)):
            if "[instances." in block or "[policies." in block:
                yield pytest.param(block, id=f"{page.stem}-{n}")


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of the reader's, beside the file; what its import changed is undone."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(imports, "_imported", {})
    (tmp_path / "mine.py").write_text(MINE)
    yield
    sys.modules.pop("mine", None)


@pytest.mark.parametrize("block", list(_files()))
@pytest.mark.usefixtures("mine")
def test_an_experiment_file_can_be_read(block, tmp_path):
    """Generators of data sets are not called: their files are not part of the repository."""
    np.save(tmp_path / "p.npy", np.full((6, 3), 0.5))
    given = tomllib.loads(block)
    text = ("" if "name" in given else HEAD) + block
    text += ("" if "instances" in given else INSTANCES) + ("" if "policies" in given else POLICIES)
    path = tmp_path / "shown.toml"
    path.write_text(re.sub(r"(?ms)^\[instances\.films\].*?(?=^\[)", INSTANCES, text))
    experiment = load(path)
    assert experiment.instances
    assert set(experiment.policies) >= set(given.get("policies", {})) - _swept(given)


def _swept(given):
    """Policies with a sweep have other names, one per value."""
    return {
        name
        for name, table in given.get("policies", {}).items()
        if any(isinstance(value, dict) and "sweep" in value for value in table.values())
    }
