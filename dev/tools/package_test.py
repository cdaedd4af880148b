"""Build the wheel and the source distribution, install each into an empty environment, and use it there.

Both run a few rounds; the wheel, with the extras lab and service, then runs the examples of the README and of the quick
starts, which have to print what the pages show. make test-package runs it. What is built is left in dist/.
"""

import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from dev.tools.package_examples import check_examples, outside

ROOT = Path(__file__).resolve().parents[2]
QUICK_START = """
import pathlib, sys
import superarm as sa
assert pathlib.Path(sa.__file__).is_relative_to(sys.prefix), sa.__file__
instance = sa.instances.random_coverage(n_arms=8, n_items=3, k=2)
policies = {"uniform": sa.uniform(), "KL-UCB": sa.kl_ucb()}
results = sa.simulate(instance, policies, horizon=300, replications=2, progress=False)
print(results)
agent = sa.Agent(instance.problem, sa.kl_ucb(), seed=0)
agent.tell(agent.ask(), [[1, 0, 0], [0, 1, 0]])
print(sa.__version__, agent)
"""


def check_contents(wheel: Path, source: Path) -> None:
    """Refuse a package that lacks what the library reads at run time, or holds what does not belong there."""
    with zipfile.ZipFile(wheel) as file:
        inside = set(file.namelist())
    for needed in ("py.typed", "experiments/spec/shipped_specs/quickstart.toml", "output/pages/templates/style.css"):
        if f"superarm/{needed}" not in inside:
            sys.exit(f"{wheel.name} lacks superarm/{needed}")
    strange = [name for name in inside if not name.startswith("superarm") or name.endswith((".db", ".pyc", ".lock"))]
    if strange:
        sys.exit(f"{wheel.name} holds {', '.join(sorted(strange)[:5])}")
    with tarfile.open(source) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    missing = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "src/superarm/__init__.py"} - names
    if missing:
        sys.exit(f"{source.name} lacks {', '.join(sorted(missing))}")


def run_quick_start(package: Path, directory: Path) -> None:
    """Install ``package`` into an empty environment and run the quick start, away from the repository."""
    subprocess.run([sys.executable, "-m", "venv", directory / "env"], check=True)
    python = directory / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True)
    subprocess.run([python, "-c", QUICK_START], check=True, cwd=directory, env=outside())
    subprocess.run([python.parent / "superarm", "--version"], check=True, cwd=directory, env=outside())
    if package.suffix == ".whl":
        extras = f"superarm[lab,service] @ {package.as_uri()}"
        subprocess.run([python, "-m", "pip", "install", "--quiet", extras], check=True)
        check_examples(python, directory)


def main() -> None:
    """Build, look inside, install and run."""
    out = ROOT / "dist"
    for old in out.glob("superarm-*"):
        old.unlink()
    subprocess.run([sys.executable, "-m", "build", "--outdir", out, ROOT], check=True)
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    check_contents(wheel, source)
    for package in (wheel, source):
        with tempfile.TemporaryDirectory() as directory:
            run_quick_start(package, Path(directory))
    print(f"built, installed and run: {wheel.name}, {source.name}")


if __name__ == "__main__":
    main()
