"""``superarm learn``: from a log of clicks to a table, without a server. Heavy imports are inside of the functions."""

import time
import tomllib
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple, cast

import click

from superarm.core.errors import InvalidArgument

DRAWS = 400
"""The interval of a claim is that of so many draws from what is known."""

ASSUMED = (
    "These are claims of a model: clicks depend on arm and segment alone, not on place, neighbours or time, "
    "and the log has everybody who saw an arm, not only those who clicked."
)

OF_TABLES = {"policy", "control", "serve", "table_rows", "table_expires_s"}
"""The settings that a table follows."""

_FILE: Any = {"type": click.Path(exists=True, dir_okay=False, path_type=Path)}
_DIALECTS = ("duckdb", "postgres", "sqlite", "bigquery", "snowflake", "spark", "clickhouse")


@click.command()
@click.argument("source", required=False)
@click.option("--problem", "toml", help="A TOML file with the fields of PUT /v1/problems/{name}: k, reward, …", **_FILE)
@click.option("--baseline", help="A text file with the arms that are shown today, best first, one a line.", **_FILE)
@click.option("--publish", type=click.Path(path_type=Path), help="Write a table of slates to this file.")
@click.option("--version", type=click.IntRange(1), help="Its version; by default larger than that of the file's table.")
@click.option(
    "--rows", type=int, help="How many slates it has for each segment; by default settings.table_rows, or 256."
)
@click.option("--decision", default="decision", show_default=True, help="The column of the decision's id.")
@click.option("--arm", default="arm", show_default=True, help="The column of the arm's name.")
@click.option("--outcome", default="click", show_default=True, help="The column of the outcome, from 0 to 1.")
@click.option("--segment", default=None, help="The column of the segment; by default segment, if there is one.")
@click.option("--position", default=None, help="The column of the place in the slate; by default position.")
@click.option("--where", default="", help="A condition in SQL, such as \"day = '2026-11-17'\".")
@click.option("--unique", is_flag=True, help="No row is there twice: nine times as fast.")
@click.option("--sql", is_flag=True, help="Print the statement, to run where the log is; SOURCE is then the table.")
@click.option("--dialect", type=click.Choice(_DIALECTS), default="duckdb", show_default=True)
def learn(source: str | None, toml: Path | None, baseline: Path | None, publish: Path | None, **given: Any) -> None:
    """Learn from SOURCE, a log of who was shown what, and publish a table of slates to decide from.

    SOURCE is a file, a directory or a glob of .parquet, .csv or .jsonl files with a row for each decision and arm that
    was shown, clicked or not; or the answer of the statement that --sql prints. See docs/guides/scale.md.
    """
    from superarm import warehouse

    columns = {name: given[name] for name in ("decision", "arm", "outcome", "where", "unique")}
    named = {name: given[name] for name in ("segment", "position") if given[name] is not None}
    if given["sql"]:
        click.echo(warehouse.sql(given["dialect"], source or "clicks", **columns, **named))
        return
    if source is None or toml is None:
        raise click.UsageError("give SOURCE and --problem, or --sql")
    try:
        described = tomllib.loads(toml.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument("problem", f"{toml.name} is not TOML: {error}", "write k = 5, for instance") from None
    several = {"item": ["item"]} if len(described.get("items", "")) > 1 else {}
    columns |= {"segment": ["segment"], "position": ["position"]} | several | named
    found, nameless = _read(source, columns)
    answer = warehouse.read_sums(found)
    listed = [] if baseline is None else [line.strip() for line in baseline.read_text("utf-8").splitlines()]
    log = _prepare(answer, described, [arm for arm in listed if arm])
    rows = log.settings.table_rows if given["rows"] is None else given["rows"]
    for line in () if baseline is None else _unknown(baseline, listed, log):
        click.echo(line)
    if nameless:
        click.echo(f"left out: {nameless:,} rows whose {given['decision']} is NULL or empty")
    for line in (*_reading(source, answer, log, str(given["segment"] or "segment")), *_claims(log, rows)):
        click.echo(line)
    if publish is not None:
        began = time.perf_counter()
        table = _publish(log, rows, toml.stem, publish, given["version"])
        publish.write_bytes(table.to_json())
        spent = time.perf_counter() - began
        said = f"{rows} slates for each of {len(table.segments)} segments, chosen in {spent:.1f} s"
        click.echo(f"table: {publish}, version {table.version}, {said}; publish again after {table.lifetime} decisions")
    for line in _warnings(log):  # last, where they are read
        click.echo(line)


def _table(log: "Prepared", rows: int, problem: str, version: int) -> Any:
    """The table, with the share of the control slate and the end that the problem's settings have."""
    control, lives = log.settings.control, log.settings.table_expires_s
    present = log.present or None
    if control and not present and not getattr(log.agent.policy, "baseline", ()):
        raise InvalidArgument("settings.control", f"{control}, without a control slate", "give --baseline")
    ends = None if lives is None else datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=lives)
    return log.agent.publish(rows, problem=problem, version=version, control=control, present=present, expires=ends)


def _unknown(baseline: Path, listed: list[str], log: "Prepared") -> Iterable[str]:
    """The lines of the baseline that are no arms; a file without any arm is refused."""
    unknown = [line for line in listed if line and line not in log.agent.arms]
    if not log.present:
        wrong = f"{baseline.name} names no arm of the problem or of the log"
        raise InvalidArgument("baseline", wrong, "write an arm a line, as the log has them")
    if unknown:
        more = ", …" if len(unknown) > 5 else ""
        yield f"left out of {baseline.name}: {len(unknown)} lines that are no arms: {', '.join(unknown[:5])}{more}"


def _publish(log: "Prepared", rows: int, name: str, path: Path, version: int | None) -> Any:
    """The table; another one than the file has gets a larger version, also of a log that is shorter than the last."""
    from superarm.tables import Table

    try:
        old = Table.load(path)
        before = old.version if old.problem == name else 0
    except (OSError, InvalidArgument):
        before = 0
    if version is not None and version <= before:
        raise InvalidArgument("version", f"{version}, where {path.name} holds {before}", "give a larger number")
    if before and version is None:
        again = _table(log, rows, name, before)
        if again.digest == old.digest:
            return again
    return _table(log, rows, name, version or max(1 + int(log.agent.tally.pulls.sum()), before + 1))


def _read(source: str, columns: dict[str, Any]) -> tuple[Any, int]:
    """The sums of a log, or of a file that holds them already, and how many rows have no id of a decision."""
    from superarm import warehouse

    try:
        return warehouse.sums(source, **columns), warehouse.rows_without_decision(source, **columns)
    except InvalidArgument:
        with warehouse.opened(source) as (connection, table, known):
            names = [name.lower() for name in known]
            if not {"pulls", "seen", "total", "square"} <= set(names):
                raise
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            return [dict(zip(names, row, strict=True)) for row in rows], 0


class Prepared(NamedTuple):
    """What was read, made ready: the agent that has learnt it, the sums it took, and those that it left out."""

    agent: Any
    kept: list[Any]
    left: list[Any]
    present: list[str]
    settings: Any


def _prepare(answer: list[Any], described: dict[str, Any], listed: list[str]) -> Prepared:
    """An agent for the problem that a file describes; arms and segments that it leaves out are those of the log."""
    import msgspec

    from superarm import warehouse
    from superarm.agent import Agent
    from superarm.service.domain.spec import ProblemSpec, complete, to_policy, to_problem

    segments = sorted({str(one.segment) for one in answer if one.segment not in (None, "")})
    described.setdefault("arms", sorted({str(one.arm) for one in answer if one.arm is not None}))
    if segments and "context" not in described:
        described["context"] = {"features": {"categorical": {"segment": segments}}}
    matching = [arm for arm in listed if arm in described["arms"]]
    if matching:
        chosen = described.setdefault("settings", {}).setdefault("policy", {})
        chosen |= {"baseline": matching}
    try:
        spec = msgspec.convert(described, ProblemSpec)
    except msgspec.ValidationError as error:
        raise InvalidArgument("problem", str(error), "see the fields of PUT /v1/problems/{name}") from None
    unused = sorted(set(described.get("settings", {})) - OF_TABLES)
    if unused:
        raise InvalidArgument(f"settings.{unused[0]}", "has no effect on a table", "leave it out of the problem's file")
    problem = to_problem(spec)
    spec = complete(spec, problem)
    kept, left, arms = list[Any](), list[Any](), set(spec.arms)
    known = {segment: _knows(problem, segment) for segment in {one.segment for one in answer}}
    for one in answer:
        (kept if str(one.arm) in arms and known[one.segment] else left).append(one)
    from superarm.decisions.names import Names

    policy = to_policy(spec.settings.policy, Names(spec.arms, "arms"))
    tally = warehouse.tally(problem, kept, spec.arms, spec.item_names)
    agent = Agent(problem, policy, spec.seed or 0, tally=tally, arms=spec.arms, items=spec.item_names)
    return Prepared(agent, kept, left, [arm for arm in listed if arm in spec.arms][: problem.k], spec.settings)


def _knows(problem: Any, segment: Any) -> bool:
    """Whether a problem has a segment."""
    from superarm.warehouse import segment_number

    try:
        return segment_number(problem, segment) >= 0
    except InvalidArgument:
        return False


def _name_left(one: Any, problem: Any, segment: str) -> str:
    """What a row that was left out is about, with the column that is NULL."""
    arm = "rows whose arm is NULL" if one.arm is None else str(one.arm)
    if one.segment is None and problem.context is not None:
        return f"{arm}, whose {segment} is NULL"
    return f"{arm} in {one.segment}" if one.segment else arm


def _reading(source: str, answer: list[Any], log: Prepared, segment: str) -> Iterable[str]:
    """What was read, and what was left out; ``segment`` is the column of the segments."""
    rows, shown = (sum(getattr(one, name) or one.pulls for one in answer) for name in ("rows", "shown"))
    again = f", {rows - shown:,} of them again" if rows > shown else ""
    parts = f"{len({one.arm for one in log.kept}):,} arms in {len({one.segment for one in log.kept}):,} segments"
    yield f"read: {source}, {rows:,} rows{again}; {parts}"
    if log.left:
        names = ", ".join(sorted({_name_left(one, log.agent.problem, segment) for one in log.left})[:5])
        rows = sum(one.rows or one.pulls for one in log.left)
        yield f"left out: {rows:,} rows of what the problem does not have: {names}"
    unseen = sum(one.shown - one.seen for one in log.kept if one.shown)
    if unseen:
        yield f"not counted: {unseen:,} rows without an outcome, which is not the outcome 0"


def _claims(log: Prepared, rows: int) -> Iterable[str]:
    """What the present page is worth and what the new one, with 95 % intervals, if the model is right."""
    import numpy as np

    from superarm.agent import Agent
    from superarm.agent.publishing import see
    from superarm.policies import PooledThompson, pooled_thompson

    agent, problem = log.agent, log.agent.problem
    model = Agent(problem, pooled_thompson(), 0, tally=agent.tally).learner
    policy, memory = model.policy, cast(Any, model.memory)
    if not isinstance(policy, PooledThompson) or not log.kept:
        return
    table, keys = agent.publish(rows), np.random.SeedSequence(1).generate_state(DRAWS, np.uint64)
    shares = (agent.tally.pulls.sum(1) / agent.tally.pulls.sum()).tolist()
    new, old = np.zeros(DRAWS), np.zeros(DRAWS)
    for n, (name, share) in enumerate(zip(table.segments, shares, strict=True)):
        view = see(model, keys, n)
        draws = policy.posteriors(problem, view, memory)[1].draw(1.0, keys, view.t)
        for slate, count in Counter(map(tuple, table.slates[name])).items():
            new += share * count / rows * problem.values(draws, np.tile(slate, (DRAWS, 1)))
        if log.present:
            numbers = agent.learner.arms.numbers(log.present)
            old += share * problem.values(draws, np.tile(numbers, (DRAWS, 1)))
    found = {"present page": old, "new page": new, "difference": new - old} if log.present else {"new page": new}
    for title, values in found.items():
        low, high = np.quantile(values, [0.025, 0.975])
        yield f"{title}: {values.mean():.4g} a decision (95 % interval {low:.4g} to {high:.4g})"
    yield ASSUMED


def _warnings(log: Prepared) -> Iterable[str]:
    """What in the log can mislead, a sentence each."""
    from superarm.core.tally import GRID

    arms: dict[Any, list[Any]] = {}
    segments: dict[Any, set[Any]] = {}
    for one in log.kept:
        arms.setdefault(one.arm, []).append(one)
        segments.setdefault(one.segment, set()).add(one.arm)
    seen, total = (sum(getattr(one, name) for one in log.kept) for name in ("seen", "total"))
    if seen and total == seen * int(GRID):
        yield "warning: all outcomes are 1; the log lacks what was shown and not clicked, so that nothing can be learnt"
    fixed = [arm for arm, own in arms.items() if own[0].first is not None and _one_place(own)]
    if fixed:
        yield f"warning: {len(fixed)} of {len(arms)} arms were seen in one place only, whose rates theirs may be"
    k = log.agent.problem.k
    alone = sorted(str(name) or "everybody" for name, own in segments.items() if len(own) <= k)
    if alone:
        yield f"warning: one slate alone was shown to {', '.join(alone[:5])}: nothing is known of other arms there"


def _one_place(own: list[Any]) -> bool:
    return min(one.first for one in own) == max(one.last for one in own)


def read_past(source: Path, items: Iterable[str], only: str | None, segments: bool) -> list[list[Any]]:
    """The sums of an export, or of a table with the same columns, as ``POST …/sums`` takes them.

    An outcome without an item is for all ``items``. ``only`` is the problem to take where the file has several.
    """
    from superarm import warehouse

    with warehouse.opened(source) as (connection, table, names):
        where = ["(state IS NULL OR state NOT IN ('deferred', 'unshown'))"] if "state" in names else []
        known = []
        if "problem" in names:
            known = [one for (one,) in connection.execute(f"SELECT DISTINCT problem FROM {table}").fetchall()]
            where += [] if only is None else [f"problem = '{only.replace(chr(39), 2 * chr(39))}'"]
    if known and len(known if only is None else [one for one in known if one == only]) != 1:
        wrong = f"{only!r} fits {len(known) if only is None else 0} problems of the file"
        raise InvalidArgument("name", wrong, f"give one of {', '.join(sorted(known))}")
    whole = not {"decision", "slate_id"} & set(names)
    told: dict[str, Any] = {"decision": None if whole else ["decision", "slate_id"], "unique": whole, "item": ["item"]}
    told |= {"arm": ["arm", "item_id", "action"], "outcome": ["click", "reward", "outcome"]}
    told |= {"segment": ["group"]} if segments else {}
    found: dict[tuple[str, str, str], list[int]] = {}
    for one in warehouse.read_sums(warehouse.sums(source, **told, where=" AND ".join(where))):
        for item in items if one.item in (None, "") else [one.item]:
            row = found.setdefault((str(one.segment), str(one.arm).removeprefix("'"), str(item)), [one.pulls, 0, 0, 0])
            row[1:] = [old + new for old, new in zip(row[1:], one[4:7], strict=True)]
    return [[*key, *counts] for key, counts in sorted(found.items())]
