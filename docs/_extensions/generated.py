"""Parts of pages that are written when the site is built: the gallery, the command line, the HTTP interface."""

import json
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from http_interface import write_operations
from sphinx.application import Sphinx

SPECS = Path(__file__).parents[2] / "src" / "superarm" / "experiments" / "spec" / "shipped_specs"
RECORD = Path(__file__).parents[1] / "gallery" / "pictures.json"
"""What each picture of the gallery shows; written by ``python -m tools.gallery``."""
OTHERS = (
    ("overview.png", "Similar arms, and regret of four policies", "python tools/overview.py", "start/what-it-is.md"),
    ("theory/headline.png", "Regret against the batch size", "superarm run paper", "theory/headline.md"),
    ("items.png", "Regret against the number of items", "superarm run items", "champion.md"),
    ("changing.png", "Parameters that change", "superarm run changing", "changing.md"),
    ("scaling.png", "Time per round", "python -m benchmarks.scaling --figure docs/scaling.png", "speed.md"),
    ("soak.png", "The service for half an hour", "python -m benchmarks.soak --minutes 30 --picture docs/soak.png",
     "service.md"),
)  # fmt: skip
"""Pictures of other pages: file, title, command and page."""


def write_gallery() -> str:
    """One section per shipped experiment: title, command, size, what it shows, and its picture; then other pictures."""
    record = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    parts = []
    for file in sorted(SPECS.glob("*.toml")):
        experiment = tomllib.loads(file.read_text(encoding="utf-8"))
        name, title = experiment["name"], experiment["title"]
        parts += [f"## {title}\n", f"```console\n$ superarm run {name}\n```\n", experiment["text"].strip() + "\n"]
        if name in record:
            alt = f"Regret of each policy: {title}"
            parts += [f"![{alt}](gallery/{name}.png)\n", _describe_size(experiment, record[name])]
    parts.append("## Pictures of other pages\n")
    for picture, title, command, page in OTHERS:
        parts += [f"### {title}\n", f"![{title}]({picture})\n", f"*Made by `{command}`; explained [here]({page}).*\n"]
    return "\n".join(parts)


def _describe_size(experiment: dict[str, Any], shown: dict[str, Any]) -> str:
    """How much of the experiment its picture shows, and the command that drew it."""
    complete = f"{experiment['horizon']:,} rounds and {experiment['replications']} runs"
    small = f"{shown['horizon']:,} rounds and {shown['replications']} runs"
    left = [name for name in experiment["instances"] if name not in shown["instances"]]
    instances = f" of {', '.join(f'`{name}`' for name in shown['instances'])}" if left else ""
    size = "the complete size" if small == complete and not left else f"{small}{instances}; complete: {complete}"
    return f"*Drawn by `python -m tools.gallery {experiment['name']}`: {size}.*\n"


def write_commands() -> str:
    """The help texts of ``superarm`` and of all its commands."""
    from superarm.cli import main

    return "\n".join(
        f"## `{' '.join(path)}`\n\n```text\n{_help_text(command, path)}\n```\n"
        for path, command in _commands(main, ("superarm",))
    )


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            yield from _commands(command.commands[name], (*path, name))


def _help_text(command: click.Command, path: tuple[str, ...]) -> str:
    context = click.Context(command, info_name=" ".join(path), terminal_width=100, max_content_width=100)
    return command.get_help(context)


PARTS: dict[str, tuple[str, Callable[[], str]]] = {
    "gallery": ("<!-- experiments -->", write_gallery),
    "reference/command-line": ("<!-- commands -->", write_commands),
    "reference/http": ("<!-- operations -->", write_operations),
}


def _fill(app: Sphinx, page: str, source: list[str]) -> None:
    if page in PARTS:
        mark, write = PARTS[page]
        if mark not in source[0]:
            raise ValueError(f"{page}: the mark {mark} is missing")
        source[0] = source[0].replace(mark, write())


def _always_read(app: Sphinx, env: Any, added: set[str], changed: set[str], removed: set[str]) -> list[str]:
    """These pages depend on the program, whose changes Sphinx does not see."""
    return [page for page in PARTS if (Path(app.srcdir) / f"{page}.md").exists()]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _fill)
    app.connect("env-get-outdated", _always_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
