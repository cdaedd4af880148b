"""Run tests with other versions of Python, NumPy and numba, each in an environment of its own.

    make test-versions                     every set below whose interpreter is installed, each in .venv-<name>
    python -m dev.tools.versions oldest        one set, with the Python that runs this
    make test-versions TESTS=tests/test_agent.py

Without TESTS, the tests of the library and the laboratory run.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETS = {
    "oldest": ["numba==0.61.0", "numpy==2.0.0", "scipy==1.13.0", "msgspec==0.19.0", "click==8.1.0"],
    "newest": ["--upgrade", "numba", "numpy", "scipy"],
    "nightly": [
        "--pre",
        "--extra-index-url=https://pypi.anaconda.org/scientific-python-nightly-wheels/simple",
        "numpy",
        "numba",
    ],
}
"""What is installed besides; ``oldest`` are the lower bounds of pyproject.toml."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
NOTEBOOKS = ("nbclient", "ipykernel", "ipywidgets")


def run_set(name: str, interpreter: str) -> bool:
    """Make an environment, and run the tests in it; whether all passed."""
    place = ROOT / f".venv-{Path(interpreter).name}-{name}"
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    print(f"versions: {name} with {interpreter}, in {place.name}", flush=True)
    subprocess.run([interpreter, "-m", "venv", place], check=True)
    extras = ".[lab,frames,cluster,data,service,postgres]"
    tools = ["pytest>=8", "pytest-xdist", "hypothesis", "mpmath", "httpx", "pyyaml", *NOTEBOOKS]
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--editable", extras, *tools], cwd=ROOT, check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", *SETS[name]], cwd=ROOT, check=True)
    show = "import sys, numpy, numba; print('versions:', sys.version.split()[0], numpy.__version__, numba.__version__)"
    subprocess.run([python, "-c", show], check=True)
    tests = os.environ.get("TESTS", "").split() or ["tests", "--ignore=tests/service"]
    command = [python, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", *tests]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def find_interpreter(version: str) -> str | None:
    """The path of this Python, if it is there and runs: version managers have commands for Pythons that they lack."""
    path = shutil.which(f"python{version}")
    if path is None:
        return None
    asked = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return path if asked.stdout.startswith(f"Python {version}.") else None


def main(arguments: list[str]) -> int:
    """Run the sets of the command line, or oldest and newest with every interpreter that is there."""
    if arguments:
        return 0 if all(run_set(name, sys.executable) for name in arguments) else 1
    found = [path for version in PYTHONS if (path := find_interpreter(version))]
    missing = [version for version in PYTHONS if not find_interpreter(version)]
    passed = [run_set("newest", path) for path in found]
    passed += [run_set("oldest", path) for path in found if path.endswith(("3.11", "3.12"))]
    if missing:
        print(f"versions: not tested, for want of the interpreter: Python {', '.join(missing)}")
    return 0 if passed and all(passed) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
