"""The tools of ``superarm mcp``, called by the official client: in memory, and over the pipes of a process."""

import asyncio
import contextlib
import socket
import subprocess
import sys
import time

import pytest

import superarm as sa
from superarm.service.mcp import build_server

from .running import MAIN, free_port


def call(target, *calls):
    """The results of tools, called one after the other in one session; a function makes its arguments of results."""

    import mcp  # not while tests are collected: it takes half a second

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
    listed = {"arms": ["a", "b", "c"], "items": ["right", "fast"], "n_arms": 3, "n_items": 2, "policy": "kl_ucb"}
    assert {"problem": "tools", **listed} in names.structured_content["result"]
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
    unit = {"problem": "tools", "unit": "\ud800"}  # half a character
    refused, half = call(build_server(service), ("ask", {"problem": "nobody"}), ("ask", unit))
    assert refused.is_error
    assert half.is_error
    assert "'nobody' does not exist" in refused.content[0].text
    assert r"'\ud800' is not valid text" in half.content[0].text


def test_numbers_need_an_item_and_an_arm_may_be_told_as_not_tried(service):
    def told(found, first, **more):
        made = found[0].structured_content
        outcomes = dict(zip(made["arms"], (first, None), strict=True))
        return {"problem": "tools", "decision": made["decision"], "outcomes": outcomes, **more}

    before = {row["arm"]: row["seen"] for row in service.problem("tools").statistics()}
    asked, no_item, wrong_item, right, fast = call(
        build_server(service),
        ("ask", {"problem": "tools"}),
        ("tell", lambda found: told(found, 1.0)),
        ("tell", lambda found: told(found, 1.0, item="cheap")),
        ("tell", lambda found: told(found, 1.0, item="right")),
        ("tell", lambda found: told(found, 0.5, item="fast")),
    )
    assert "not given; call tell once for each of 'right', 'fast'" in no_item.content[0].text
    assert "unknown 'cheap'" in wrong_item.content[0].text
    assert (no_item.is_error, wrong_item.is_error, right.is_error, fast.is_error) == (True, True, False, False)
    first, second = asked.structured_content["arms"]
    rows = {row["arm"]: row["seen"] for row in service.problem("tools").statistics()}
    assert rows[first] == [seen + 1 for seen in before[first]]
    assert rows[second] == before[second]
    assert service.problem("tools").decision(asked.structured_content["decision"]).state == "complete"


def test_the_command_speaks_over_its_pipes(service, served):
    from mcp import StdioServerParameters

    started = StdioServerParameters(command=sys.executable, args=["-c", MAIN, "mcp", "--url", served.url])
    asked, told = call(
        started,
        ("ask", {"problem": "tools"}),
        (
            "tell",
            lambda found: {
                "problem": "tools",
                "decision": found[0].structured_content["decision"],
                "outcomes": dict.fromkeys(found[0].structured_content["arms"]),
            },
        ),
    )
    assert len(asked.structured_content["arms"]) == 2
    assert told.structured_content == {"learnt": True}
    decision = service.problem("tools").decision(asked.structured_content["decision"])
    assert decision.state == "complete"


def test_tools_say_what_they_change_and_what_they_return(service):
    """So that a client need not ask before each call that only reads."""
    import mcp

    async def run():
        async with mcp.Client(build_server(service)) as client:
            return client.server_info, (await client.list_tools()).tools

    server, tools = asyncio.run(run())
    assert server.version == sa.__version__
    facts = {tool.name: tool.annotations for tool in tools}
    assert {name for name, said in facts.items() if said.read_only_hint} == {"problems", "explain"}
    assert {name for name, said in facts.items() if not said.idempotent_hint} == {"ask"}
    assert not any(said.destructive_hint or said.open_world_hint for said in facts.values())
    returned = {tool.name: tool.output_schema.get("properties", {}) for tool in tools}
    assert all(returned[name]["learnt"]["type"] == "boolean" for name in ("tell", "tell_total", "tell_scores"))
    assert set(returned["ask"]) == {"decision", "arms"}


def test_the_command_speaks_over_http(service, served):
    port = free_port()
    words = [sys.executable, "-c", MAIN, "mcp", "--url", served.url, "--http", str(port)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                    break
                time.sleep(0.1)
            (asked,) = call(f"http://127.0.0.1:{port}/mcp", ("ask", {"problem": "tools"}))
        finally:
            process.terminate()
    assert len(asked.structured_content["arms"]) == 2
