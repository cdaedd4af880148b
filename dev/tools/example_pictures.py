"""Run the examples and the first experiment of the documentation, and draw their pictures for light and dark pages.

python -m dev.tools.example_pictures
"""

import os
import re
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib
from matplotlib.figure import Figure

from dev.tools.gallery import write_svg
from superarm.experiments.report.figures import INK, figure_settings

ROOT = Path(__file__).resolve().parents[2]
PICTURES = {
    "docs/start/quickstart-experiment.md": (
        "start/regret.svg",
        [],
        "Regret over rounds of seven policies, the recommended ones, BC-UCB, KL-UCB and Thompson sampling among them",
    ),
    "examples/llm_portfolio.py": (
        "guides/llm-portfolio.svg",
        [],
        "Issues solved against dollars per issue, for sets and single models",
    ),
    "examples/few_shot.py": (
        "guides/few-shot.svg",
        [],
        "How often the best guess is right, over scored sets, for superarm, linear Thompson sampling and random sets",
    ),
    "examples/shelf.py": (
        "guides/shelf.svg",
        [],
        "What each shelf claims and does; visitors served while an agent learns",
    ),
}
"""For each program or page with one: its picture below docs, the arguments of the run, and what the picture shows."""
INKED = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)


def draw(example: str, arguments: list[str]) -> Figure:
    """The figure that a program writes when it runs; that of a page are its Python examples."""
    drawn: list[Any] = []
    given = mock.patch.object(sys, "argv", [example, *arguments])
    saved = mock.patch.object(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    with tempfile.TemporaryDirectory() as place, matplotlib.rc_context(INKED), given, saved:
        program = ROOT / example
        if program.suffix == ".md":
            text = "\n".join(re.findall(r"```python\n(.*?)```", program.read_text(encoding="utf-8"), re.S))
            program = Path(place, "page.py")
            program.write_text(text, encoding="utf-8")
        os.chdir(place)
        runpy.run_path(str(program), run_name="__main__")
        os.chdir(ROOT)
    return drawn[-1]


if __name__ == "__main__":
    for example, (picture, arguments, description) in PICTURES.items():
        figure = draw(example, arguments)
        with figure_settings(Path(picture).stem):
            write_svg(figure, ROOT / "docs" / picture, description)
