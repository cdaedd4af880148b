"""The tools of ``superarm mcp``, called by the official client: in memory, and over the pipes of a process."""

import asyncio
import sys

import mcp
import pytest

import superarm as sa
from superarm.service.mcp import build_server

from .running import MAIN


def call(target, *calls):
    """The results of tools, called one after the other in one session; a function makes its arguments of results."""

    async def run():
        found = []
        async with mcp.Client(target) as client:
            for tool, arguments in calls:
                given = arguments(found) if callable(arguments) else arguments
                found.append(await client.call_tool(tool, given))
        return found

    return asyncio.run(run())


@pytest.fixture
def service(served):
    connection = sa.connect(served.url)
    connection.create("tools", ["a", "b", "c"], ["right", "fast"], 2, seed=0, settings={"policy": {"name": "kl_ucb"}})
    yield connection
    connection.close()


def test_a_client_asks_tells_and_has_it_explained(service):
    def told(found):
        made = found[1].structured_content
        return {"problem": "tools", "decision": made["decision"], "outcomes": {made["arms"][0]: 1.0}, "item": "fast"}

    def again(found, value, **more):
        given = told(found)
        return given | {"outcomes": dict.fromkeys(given["outcomes"], value)} | more

    def why(found):
        return {"problem": "tools", "decision": found[1].structured_content["decision"]}

    names, asked, first, repeated, refused, amended, explained = call(
        build_server(service),
        ("problems", {}),
        ("ask", {"problem": "tools", "eligible": ["b", "c"], "unit": "u1"}),
        ("tell", told),
        ("tell", told),
        ("tell", lambda found: again(found, 0.5)),
        ("tell", lambda found: again(found, 0.5, amend=True)),
        ("explain", why),
    )
    assert "tools" in names.structured_content["result"]
    assert sorted(asked.structured_content["arms"]) == ["b", "c"]
    assert first.structured_content == {"learnt": True}
    assert repeated.structured_content == {"learnt": False}
    assert refused.is_error
    assert "another value was told before" in refused.content[0].text
    assert amended.structured_content == {"learnt": True}
    arm = explained.structured_content["result"][0]
    assert arm["arm"] == asked.structured_content["arms"][0]
    assert arm["estimates"]["fast"] == 0.5
    assert arm["adds"] <= arm["adds_at_best"]
    rows = {row["arm"]: row for row in service.problem("tools").statistics()}
    assert rows[arm["arm"]]["seen"] == [0, 1]


def test_an_unknown_problem_is_an_error_that_says_so(service):
    (refused,) = call(build_server(service), ("ask", {"problem": "nobody"}))
    assert refused.is_error
    assert "'nobody' does not exist" in refused.content[0].text


def test_the_command_speaks_over_its_pipes(service, served):
    started = mcp.StdioServerParameters(command=sys.executable, args=["-c", MAIN, "mcp", "--url", served.url])
    asked, told = call(
        started,
        ("ask", {"problem": "tools"}),
        (
            "tell",
            lambda found: {
                "problem": "tools",
                "decision": found[0].structured_content["decision"],
                "outcomes": dict.fromkeys(found[0].structured_content["arms"], 1.0),
            },
        ),
    )
    assert len(asked.structured_content["arms"]) == 2
    assert told.structured_content == {"learnt": True}
    decision = service.problem("tools").decision(asked.structured_content["decision"])
    assert decision.state == "complete"
