"""The command line: quick to answer."""

import subprocess
import sys

import pytest
from click.testing import CliRunner

from superarm import __version__
from superarm.cli import main

HEAVY = ("numba", "numpy", "scipy", "matplotlib")


def test_help_imports_nothing_heavy():
    code = f"""
import sys
from click.testing import CliRunner
from superarm.cli import main
assert CliRunner().invoke(main, ["--help"]).exit_code == 0
assert not [name for name in {HEAVY} if name in sys.modules], sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_package_is_a_program():
    done = subprocess.run([sys.executable, "-m", "superarm", "--version"], capture_output=True, text=True, check=True)
    assert __version__ in done.stdout


def test_version():
    assert __version__ in CliRunner().invoke(main, ["--version"]).output


def test_import_of_the_package_loads_nothing_heavy():
    code = f"import sys, superarm; assert not [name for name in {HEAVY} if name in sys.modules]"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "quikstart"), "did you mean 'quickstart'?"),
        (("report", "nowhere"), "nowhere"),
        (("bounds", "quikstart"), "did you mean 'quickstart'?"),
        (("verify", "--db", "nowhere.db"), "--db nowhere.db: there is no such file"),
        (("export", "--db", "nowhere.db", "log.csv"), "there is no such file"),
        (("keys", "list", "--db", "ftp://host"), "give a file, or postgresql://"),
        (("run", "--workers", "0", "quickstart"), "Invalid value for '--workers'"),
        (("serve", "--db", "file/log.db"), "file"),
    ],
)
def test_every_command_answers_a_mistake_in_the_same_way(words, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("package", "command", "extra"),
    [
        ("starlette", ["serve"], "service"),
        ("uvicorn", ["serve"], "service"),
        ("jinja2", ["run", "spec.toml"], "lab"),
        ("matplotlib", ["bounds", "spec.toml"], "lab"),
    ],
)
def test_a_command_without_its_extra_says_what_to_install(package, command, extra, tmp_path):
    (tmp_path / "spec.toml").write_text(
        'name = "x"\nhorizon = 5\nreplications = 1\n[instances.r]\ngenerator = "random_coverage"\nn_arms = 4\n'
        'n_items = 2\nk = 2\n[policies.u]\npolicy = "uniform"\n'
    )
    code = f"import sys; sys.modules[{package!r}] = None; from superarm.cli import main; main({command!r})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 2
    assert done.stderr == f"Error: {package} is not installed; in a clone of superarm, run: pip install '.[{extra}]'\n"
    assert done.stdout == ""
