"""The README's commands, and examples of other pages that need a service, as they stand there."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from .running import Server

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


def run_curls(page, server):
    """What a service answers to the curl commands of a page, one after the other."""
    answers = []
    for line in re.findall(r"^curl (?:[^'\n#]|'[^']*')+", page.read_text(), re.MULTILINE):
        words = shlex.split(line.replace("localhost:8000", f"localhost:{server.port}"))
        done = subprocess.run([*words, "-sS", "--fail-with-body"], check=False, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        answers.append(json.loads(done.stdout))
    return answers


@pytest.mark.needs("curl")
@pytest.mark.parametrize(("page", "n"), [("guides/shop.md", 6), ("guides/service.md", 15)])
def test_every_curl_command_of_a_page_is_answered(page, n, tmp_path):
    """Review, A11: four of them sent no content type, which is 415."""
    with Server("superarm.db", cwd=tmp_path) as server:
        assert len(run_curls(ROOT / "docs" / page, server)) == n


@pytest.mark.needs("curl")
def test_the_five_commands_do_what_they_say(tmp_path):
    with Server("superarm.db", cwd=tmp_path) as server:
        created, decision, told, statistics, grown = run_curls(README, server)
    assert created["n_arms"] == 4
    assert decision["arms"] == ["ad-1", "ad-2"]
    assert told["applied"] is True
    assert {row["arm"]: row["pulls"] for row in statistics["arms"]} == {"ad-1": 1, "ad-2": 1, "ad-3": 0, "ad-4": 0}
    assert grown["n_arms"] == 5
    assert (tmp_path / "superarm.db").exists()


def _blocks(page, kind):
    return re.findall(rf"```{kind}\n(.*?)```", (ROOT / "docs" / page).read_text(), re.DOTALL)


@pytest.mark.needs("curl")
@pytest.mark.parametrize(
    ("page", "pulls"), [("guides/shop.md", 5), ("guides/service.md", 4)], ids=["web shop", "client"]
)
def test_an_example_for_the_client(page, pulls, sqlite_file):
    """After the README's and the page's own commands: one created a problem, one asked for a decision of their names.

    The first example of the web shop names the products.
    """
    names: dict = {}
    if page == "guides/shop.md":
        exec(_blocks(page, "python")[0], names)
    with Server(sqlite_file) as server:
        if page == "guides/shop.md":  # the other page begins with the same five
            run_curls(README, server)
        run_curls(ROOT / "docs" / page, server)
        for block in _blocks(page, "py"):
            exec(block.replace("http://127.0.0.1:8000", server.url), names)
        agent = names.get("shop") or names["agent"]
        assert sum(row["pulls"] for row in agent.statistics()) == pulls
        names["service"].close()
