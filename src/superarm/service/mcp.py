"""``superarm mcp``: the problems of a running service as tools of the Model Context Protocol, over stdin and stdout."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import click

from superarm import __version__
from superarm.core.errors import SuperarmError

if TYPE_CHECKING:
    from superarm.service.client import Connection

INSTRUCTIONS = (
    "superarm learns which sets of arms work best together. Call ask before something is to be chosen, do what the "
    "chosen arms say, then call tell with what each arm did, as a number from 0 (failed) to 1 (succeeded), or null for "
    "an arm that was not tried, or tell_total with what all did together. Problems are created over HTTP or with "
    "sa.connect, not here; problems lists them."
)
MAX_LISTED = 100
"""So many arms and items of a problem are listed."""
READING = ("problems", "explain")
"""Tools that change nothing."""


class AskResult(TypedDict):
    """A decision's id, which tell needs, and its arms in the order of picking."""

    decision: str
    arms: list[str]


class TellResult(TypedDict):
    """Whether what was told is new."""

    learnt: bool


def build_server(service: "Connection") -> Any:
    """The tools of a service: problems, ask, tell, tell_total, tell_scores and explain."""
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    server = MCPServer("superarm", instructions=INSTRUCTIONS, version=__version__)

    def tool(function: Callable[..., Any]) -> None:
        """Offer a function as a tool; what the service refuses is told to the caller."""

        @functools.wraps(function)
        def run(*args: Any, **given: Any) -> Any:
            try:
                return function(*args, **given)
            except SuperarmError as error:
                raise ToolError(str(error)) from None

        name = function.__name__
        facts: Any = {"read_only_hint": name in READING, "idempotent_hint": name != "ask", "destructive_hint": False}
        server.tool(annotations=ToolAnnotations(**facts, open_world_hint=False))(run)

    @tool
    def problems() -> list[dict[str, Any]]:
        """List all problems: their names, arms and items (100 at most) or scale of scores, sizes, and the policy."""
        found = []
        for name in service.problems():
            agent = service.problem(name)
            arms, items = list(agent.arms), list(agent.items)
            sizes = {"n_arms": len(arms), "n_items": len(items), "policy": agent.policy["name"]}
            told = {"items": items[:MAX_LISTED]} if agent.scores is None else {"scores": agent.scores}
            found.append({"problem": name, "arms": arms[:MAX_LISTED], **told, **sizes})
        return found

    @tool
    def ask(problem: str, eligible: list[str] | None = None, unit: str | None = None) -> AskResult:
        """Choose the arms to use next, out of the eligible ones (all by default).

        The unit says for whom, if that is known. Returns the arms in the order of picking, and the decision's id, which
        tell needs.
        """
        made = service.problem(problem).ask(eligible, unit=unit)
        return {"decision": made.id, "arms": list(made.arms)}

    @tool
    def tell(
        problem: str, decision: str, outcomes: dict[str, float | None], item: str | None = None, amend: bool = False
    ) -> TellResult:
        """Report what arms of a decision did, each a number from 0 to 1; arms that are left out can be told later.

        null says that an arm was not tried. The item says what the numbers are about; it is needed where a problem has
        several. Reporting the same again changes nothing; a larger number than before replaces it, and a
        smaller one does if amend is true.
        """
        agent = service.problem(problem)
        names = agent.items
        told = any(value is not None for value in outcomes.values())
        if item not in names and (item is not None or (told and len(names) > 1)):
            wrong = "not given" if item is None else f"unknown {item!r}"
            raise ToolError(f"item: {wrong}; call tell once for each of {', '.join(map(repr, names))}")
        rows = [[value if item in (None, name) else None for name in names] for value in outcomes.values()]
        seen = [[value is not None] * len(names) for value in outcomes.values()]
        return {"learnt": agent.tell(decision, rows, seen, arms=list(outcomes), amend=amend, complete=False)}

    @tool
    def tell_total(
        problem: str, decision: str, total: float, arms: list[str] | None = None, n: int = 1, amend: bool = False
    ) -> TellResult:
        """Report what all arms of a decision did together, or some of its arms, as a number from 0 to 1.

        For problems whose reward is total, such as a score of a prompt with several examples. The total is the mean of
        n trials. Reporting the same again changes nothing.
        """
        agent = service.problem(problem)
        told = {"total": total} if arms is None else {"totals": {tuple(arms): total}}
        return {"learnt": agent.tell(decision, **told, n=n, amend=amend)}

    @tool
    def tell_scores(problem: str, decision: str, scores: dict[str, float | None], amend: bool = False) -> TellResult:
        """Report the scores of arms of a decision, for problems with a scale of scores, in its units.

        null says that an arm has no score and will have none; arms that are left out can be told later.
        """
        told = service.problem(problem).tell(decision, scores=scores, amend=amend, complete=False)
        return {"learnt": told}

    @tool
    def explain(problem: str, decision: str) -> list[dict[str, Any]]:
        """Explain why each arm of a decision was chosen: its estimated outcomes by item, and what it adds."""
        agent = service.problem(problem)
        names = agent.items if agent.scores is None else ("score",)
        return [
            {
                "arm": arm.name,
                "estimates": dict(zip(names, arm.estimate.tolist(), strict=False)),
                "adds": arm.estimated_gain,
                "adds_at_best": arm.gain,
            }
            for arm in agent.explain(decision).arms
        ]

    return server


@click.command()
@click.option("--url", envvar="SUPERARM_URL", default="http://127.0.0.1:8000", show_default=True, show_envvar=True)
@click.option("--key", envvar="SUPERARM_KEY", show_envvar=True, help="A key with the scopes read, decide and feedback.")
@click.option("--http", "port", type=click.IntRange(0, 65535), help="Serve HTTP on this port of this host, at /mcp.")
def mcp(url: str, key: str | None, port: int | None) -> None:
    """Offer the problems of a running service to an MCP client, such as a desktop assistant: ask, tell, explain.

    The client starts this command and speaks to it over stdin and stdout or, with --http, over streamable HTTP.
    """
    from superarm.service.client import connect

    server = build_server(connect(url, key, retry_for=5.0))
    server.run() if port is None else server.run("streamable-http", port=port, stateless_http=True)
