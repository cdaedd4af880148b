"""Past outcomes imported into a running service: the start that an agent has from the same log."""

import asyncio
import json

import numpy as np
import pytest

import superarm as sa
from superarm.core.errors import InvalidArgument
from superarm.service.application import application
from superarm.service.storage.tables import read_pulls

from .inprocess import serving
from .memory_store import MemoryStore
from .running import Server, invoke

MEANS = np.array([[0.1, 0.2], [0.6, 0.1], [0.2, 0.5], [0.3, 0.3]])


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A log of 300 rounds of somebody else's service, as lines of JSON."""
    rng, file = np.random.default_rng(0), tmp_path_factory.mktemp("import") / "past.jsonl"
    with file.open("w") as out:
        for t in range(300):
            for place, arm in enumerate(rng.permutation(4)[:2]):
                for item in range(2):
                    row = {"slate_id": f"v{t}", "t": t, "position": place + 1, "arm": f"ad-{arm}", "item": "xy"[item]}
                    out.write(json.dumps({**row, "reward": float(rng.random() < MEANS[arm, item])}) + "\n")
    return file


def test_a_running_service_learns_from_a_log_what_an_agent_does(source, sqlite_file):
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2))
    log = sa.offline.Log.read(source, reward=sa.Coverage())
    with Server(sqlite_file) as server:
        service = sa.connect(server.url)
        remote = service.create("ads", list(log.arms), ["x", "y"], 2, settings={"policy": {"name": "kl_ucb"}})
        first = remote.ask(id="before")  # decisions go on while the log is imported
        done = invoke("import", str(source), "--problem", "ads", "--url", server.url)
        assert (done.exit_code, done.stdout) == (0, "600 pulls given to ads\n"), done.output
        assert invoke("import", str(source), "--problem", "ads", "--url", server.url).exit_code == 0  # counts once
        remote.tell(first, [[0, 0], [0, 0]])
        agent = sa.Agent(problem, sa.kl_ucb(), tally=log.tally, arms=log.arms, items=log.items)
        own = agent.ask(eligible=first.arms)
        assert sorted(own.arms) == sorted(first.arms)
        agent.tell(own, [[0, 0], [0, 0]])
        assert [row["pulls"] for row in remote.statistics()] == agent.learner.tally.pulls[0].tolist()
        assert [row["mean"] for row in remote.statistics()] == agent.estimates()[0].tolist()
        assert remote.ask().arms == agent.ask().arms
        assert invoke("verify", "--db", server.db).exit_code == 0
        service.close()


def test_rows_that_were_not_shown_or_seen_are_left_out(tmp_path):
    lines = ["decision,arm,item,click,state,problem"]
    lines += ["d1,a,x,1,complete,p", "d1,a,y,,complete,p", "d2,b,x,0.5,complete,p", "d2,b,y,0,complete,p"]
    lines += ["d3,a,x,1,deferred,p", "d4,a,,1,complete,p", "d5,c,x,1,complete,q"]
    file = tmp_path / "log.csv"
    file.write_text("\n".join(lines))
    assert list(read_pulls(file, "p")) == [("a", {"x": 1.0}), ("b", {"x": 0.5, "y": 0.0}), ("a", {"": 1.0})]
    with pytest.raises(InvalidArgument, match="name: None fits 2 problems of the file; give one of p, q"):
        list(read_pulls(file))
    with pytest.raises(InvalidArgument, match="fits 0 problems"):
        list(read_pulls(file, "r"))


@pytest.mark.parametrize(
    ("text", "wrong"), [("arm\na\n", "no column click or reward or outcome"), ("arm,click\na,2\n", "outcomes up to 2")]
)
def test_tables_that_cannot_be_imported_say_why(tmp_path, text, wrong):
    file = tmp_path / "log.csv"
    file.write_text(text)
    with pytest.raises(InvalidArgument, match=wrong):
        list(read_pulls(file))


def test_a_problem_with_contexts_takes_no_past_outcomes():
    async def trial():
        async with serving(application(MemoryStore())) as http:
            spec = {"arms": ["a", "b"], "context": {"features": {"categorical": {"country": ["NO", "SE"]}}}}
            made = await http.put("/v1/problems/p", json={**spec, "settings": {}})
            assert made.status_code == 201, made.text
            return await http.post("/v1/problems/p/outcomes", json={"id": "i", "arms": ["a"], "outcomes": [[1]]})

    refused = asyncio.run(trial())
    assert (refused.status_code, "context" in refused.text) == (422, True), refused.text


def test_the_key_is_taken_from_the_environment(source, sqlite_file, monkeypatch):
    key = invoke("keys", "new").stdout.strip()
    with Server(sqlite_file, "--admin-key", key) as server:
        service = sa.connect(server.url, key)
        service.create("ads", [f"ad-{n}" for n in range(4)], ["x", "y"], 2)
        service.close()
        words = ("import", str(source), "--problem", "ads", "--url", server.url)
        assert invoke(*words).exit_code == 2
        monkeypatch.setenv("SUPERARM_KEY", key)
        assert invoke(*words).output == "600 pulls given to ads\n"
    assert "SUPERARM_KEY" in invoke("import", "--help").output
