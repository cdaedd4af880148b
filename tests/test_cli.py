"""The command line: quick to answer, and the demo from end to end."""

import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from superarm import __version__, demo
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


def test_demo_prints_tables_and_writes_the_figure_it_names(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "SIZES", (2, 4))
    monkeypatch.setattr(demo, "HORIZON", 60)
    monkeypatch.setattr(demo, "REPLICATIONS", 2)
    monkeypatch.setattr(demo, "COVERAGE_HORIZON", 40)
    done = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "new")], catch_exceptions=False)
    assert done.exit_code == 0
    for word in ("K = 2", "K = 4", "BC-UCB", "CUCB", "KL-UCB", "± s.e.", "Random coverage"):
        assert word in done.output
    figure = Path(done.output.rsplit("figure: ", 1)[1].strip())
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_import_of_the_package_loads_nothing_heavy():
    code = f"import sys, superarm; assert not [name for name in {HEAVY} if name in sys.modules]"
    subprocess.run([sys.executable, "-c", code], check=True)
