"""The README's commands, as they stand there."""

import json
import shlex
import subprocess
from pathlib import Path

import pytest

from .running import Server

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.needs("curl")
def test_the_five_commands_do_what_they_say(tmp_path):
    lines = [line for line in README.read_text().splitlines() if line.startswith("curl ")]
    assert len(lines) == 5
    with Server("superarm.db", cwd=tmp_path) as server:
        answers = []
        for line in lines:
            words = shlex.split(line.replace("localhost:8000", f"localhost:{server.port}"))
            done = subprocess.run([*words, "-sS", "--fail-with-body"], check=False, capture_output=True, text=True)
            assert done.returncode == 0, (line, done.stdout, done.stderr)
            answers.append(json.loads(done.stdout))
    created, decision, told, statistics, grown = answers
    assert created["n_arms"] == 4
    assert decision["arms"] == ["ad-1", "ad-2"]
    assert told["applied"] is True
    assert {row["arm"]: row["pulls"] for row in statistics["arms"]} == {"ad-1": 1, "ad-2": 1, "ad-3": 0, "ad-4": 0}
    assert grown["n_arms"] == 5
    assert (tmp_path / "superarm.db").exists()
