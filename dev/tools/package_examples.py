"""Run the examples of the README and the quick starts with an installed package, and compare what they print.

``dev.tools.package_test`` calls this with the Python of an environment that has only the wheel and its extras.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
AGENT = ROOT / "docs/start/quickstart-agent.md"
EXPERIMENT = ROOT / "docs/start/quickstart-experiment.md"


def blocks(page: Path, kind: str) -> list[str]:
    """The code blocks of a page in the language ``kind``."""
    return re.findall(rf"```{kind}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


def check_page(python: Path, page: Path, directory: Path) -> None:
    """Run the Python examples of a page one after the other; they have to print the tables that the page shows."""
    script = "\n".join(blocks(page, "python"))
    file = directory / f"{page.stem}.py"
    file.write_text(script, encoding="utf-8")
    done = subprocess.run([python, file], cwd=directory, env=outside(), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{page.name}: {done.stderr}")
    for table in blocks(page, "text"):
        for line in drop_times(table).splitlines():
            if line not in drop_times(done.stdout).splitlines():
                sys.exit(f"{page.name} shows\n{line}\nand its example prints\n{done.stdout}")
    print(f"{page.name}: the examples print what the page shows")


def drop_times(text: str) -> str:
    """The text with single spaces, and without the last column of tables of numbers: run times differ by machine."""
    lines = (line.split() for line in text.splitlines())
    return "\n".join(" ".join(words[:-1] if _is_row(words) else words) for words in lines)


def _is_row(words: list[str]) -> bool:
    """Whether a line ends with regret, standard error and microseconds per round."""
    return len(words) >= 4 and all(re.fullmatch(r"-?\d+\.\d\d", word) for word in words[-3:])


def outside() -> dict[str, str]:
    """The environment without a path to the repository."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def check_experiment_file(python: Path, directory: Path) -> None:
    """Run the experiment file of the quick start by the command that the page gives."""
    (spec,) = blocks(EXPERIMENT, "toml")
    (directory / "mine.toml").write_text(spec, encoding="utf-8")
    subprocess.run([python.parent / "superarm", "run", "mine.toml"], check=True, cwd=directory, env=outside())
    if not (directory / "results" / "mine" / "report.html").exists():
        sys.exit("superarm run mine.toml wrote no report")


def check_service(python: Path, directory: Path) -> None:
    """Start the service, and send it the README's requests, at another port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    requests = [line for line in blocks(README, "sh")[-1].splitlines() if line.startswith("curl ")]
    service = subprocess.Popen(
        [python.parent / "superarm", "serve", "--port", str(port)], cwd=directory, env=outside(), stderr=subprocess.PIPE
    )
    try:
        wait_for(f"http://127.0.0.1:{port}/health/ready")
        for request in requests:
            command = shlex.split(request.replace("localhost:8000", f"127.0.0.1:{port}"))
            subprocess.run([command[0], "--fail", "--silent", *command[1:]], check=True, stdout=subprocess.DEVNULL)
    finally:
        service.terminate()
        service.communicate()
    print(f"README.md: the service answered its {len(requests)} requests")


def wait_for(address: str, seconds: float = 120.0) -> None:
    """Wait until the address is answered with success."""
    end = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def check_examples(python: Path, directory: Path) -> None:
    """Everything that a newcomer would try first."""
    for page in (AGENT, EXPERIMENT, README):
        check_page(python, page, directory)
    check_experiment_file(python, directory)
    if os.name == "posix":
        check_service(python, directory)
