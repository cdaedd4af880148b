"""Run the examples, and draw their pictures for light and dark pages.

python -m tools.example_pictures
"""

import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import matplotlib
from matplotlib.figure import Figure

from superarm.experiments.report.figures import INK, figure_settings
from tools.gallery import write_svg

ROOT = Path(__file__).resolve().parent.parent
PICTURES = {
    "llm_portfolio.py": (
        "llm-portfolio.svg",
        [],
        "Issues solved against dollars per issue, for sets and single models",
    ),
    "shelf.py": (
        "shelf.svg",
        ["--runs", "10"],
        "What each shelf claims and does; visitors served while an agent learns",
    ),
}
"""For each example: its picture beside the guides, the arguments of the run, and what the picture shows."""
INKED = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)


def draw(example: str, arguments: list[str]) -> Figure:
    """The figure that an example writes when it runs."""
    drawn: list[Any] = []
    given = mock.patch.object(sys, "argv", [example, *arguments])
    saved = mock.patch.object(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    with tempfile.TemporaryDirectory() as place, matplotlib.rc_context(INKED), given, saved:
        os.chdir(place)
        runpy.run_path(str(ROOT / "examples" / example), run_name="__main__")
        os.chdir(ROOT)
    return drawn[-1]


if __name__ == "__main__":
    for example, (picture, arguments, description) in PICTURES.items():
        figure = draw(example, arguments)
        with figure_settings(picture):
            write_svg(figure, ROOT / "docs" / "guides" / picture, description)
