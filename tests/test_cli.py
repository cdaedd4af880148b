"""The command line: quick to answer."""

import subprocess
import sys

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
