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
        (("serve", "--db", "log.db", "--workers", "2"), "SQLite serves one process"),
        (("run", "--workers", "0", "quickstart"), "Invalid value for '--workers'"),
        (("serve", "--db", "file/log.db"), "file"),
        (("warm",), "give SPEC, --policy or --service"),
        (("warm", "quickstart", "--service"), "give SPEC, or --policy"),
        (("warm", "quikstart"), "did you mean 'quickstart'?"),
        (("warm", "--policy", "kl_ubc"), "did you mean 'kl_ucb'?"),
        (("warm", "--policy", "kl_ucb", "--reward", "Covrage"), "did you mean 'Coverage'?"),
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
    "words",
    [
        ("--policy", "bc_ucb", "--reward", "ClippedLinear"),
        ("--service", "--policy", "bc_ucb", "--reward", "ClippedLinear"),
        ("--service",),
    ],
)
def test_warm_runs_a_small_and_a_large_problem(words, monkeypatch, tmp_path):
    """As plain Python, which compiles nothing; ``tests/test_cache.py`` checks what is found on disk afterwards."""
    sizes = [(4, 2, 2), (64, 32, 2)]
    monkeypatch.setattr("superarm.warm.SIZES", sizes)
    done = CliRunner().invoke(main, ["warm", "--workers", "1", *words])
    assert done.exit_code == 0, done.output
    *compiled, last = done.stdout.splitlines()
    assert [line.split()[-2] for line in compiled] == ["4", "64"]
    assert last.startswith("machine code is kept in ")


def test_warm_simulates_each_composition_of_an_experiment_once(monkeypatch, tmp_path):
    spec = tmp_path / "small.toml"
    spec.write_text(
        'name = "small"\nhorizon = 10\nreplications = 1\n'
        '[instances.random]\ngenerator = "random_coverage"\nn_arms = { sweep = [4, 5] }\nn_items = 2\nk = 2\n'
        '[policies.CUCB]\npolicy = "cucb"\n[policies.BC-UCB]\npolicy = "bc_ucb"\n'
    )
    done = CliRunner().invoke(main, ["warm", str(spec), "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert len(done.stdout.splitlines()) == 3


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
