"""Draw the pictures of the gallery: every experiment that is shipped or in dev/experiments, at a small size.

    make gallery                       the pictures that are missing, or whose experiment or size has changed
    python -m dev.tools.gallery items      these, in any case

``docs/reference/gallery`` gets one picture per experiment, and ``pictures.json``: the size that was run, a digest of
what was run, and a digest of the numbers.
"""

import json
import re
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from superarm.experiments import Experiment, Study
from superarm.experiments.report.figures import inline_svg, plot_curves, plot_sweeps
from superarm.experiments.spec.experiment import find_experiment, list_shipped

PLACE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "gallery"
OTHERS = {file.stem: str(file) for file in Path(__file__).resolve().parents[1].glob("experiments/*.toml")}
"""The experiments that the library does not ship."""
RECORD = PLACE / "pictures.json"
SCALE = 1.35
"""Pixels per point: as wide as a column of the site."""
LIGHT = ("#39424e", "#0072b2", "#d55e00", "#009e73", "#c0619a", "#3a9bd4", "#d08f00", "#555555", "#882255")
DARK = ("#d5dbe3", "#4aa8e8", "#ff8a3d", "#2fc79c", "#e59ac4", "#8fd0f5", "#f5b83d", "#b4bcc8", "#f0e442")
"""The colours of text and lines on a light and on a dark page, as in the reports."""


@dataclass(frozen=True)
class Size:
    """How much of an experiment is run for its picture.

    Parameters
    ----------
    horizon, replications
        In place of those of the experiment.
    instances
        The instances that are run; all if there are none here.
    axis
        The swept parameter that regret is drawn against; empty for regret over rounds.
    """

    horizon: int
    replications: int
    instances: tuple[str, ...] = ()
    axis: str = ""


SIZES = {
    "ads": Size(5_000, 6, axis="k"),
    "cascades": Size(20_000, 6, ("L16-K2-gap015", "L16-K4-gap015")),
    "champions": Size(5_000, 4, ("dev-independent", "dev-comonotone")),
    "champions-close": Size(5_000, 6, ("held-out-heavy", "held-out-comonotone")),
    "champions-long": Size(20_000, 6, ("held-out-half", "held-out-rare")),
    "champions-million": Size(100_000, 4),
    "champions-single": Size(5_000, 6, ("dev-single", "held-out-half")),
    "champions-unequal": Size(5_000, 6),
    "champions-wide": Size(2_000, 4, ("independent", "shock")),
    "changing": Size(20_000, 6),
    "channels": Size(5_000, 6, axis="k"),
    "context": Size(2_000, 4, ("list-10", "coverage")),
    "context-batch": Size(2_000, 4, axis="k"),
    "context-constants": Size(2_000, 4),
    "items": Size(30_000, 6, ("independent", "comonotone"), axis="n_items"),
    "paper": Size(20_000, 4, ("batches", "batches-dependent"), axis="k"),
    "quickstart": Size(10_000, 10, ("rare-hits",), axis="k"),
    "recommendation": Size(5_000, 6),
    "seeding": Size(5_000, 4, axis="k"),
    "sensors": Size(5_000, 6, axis="weather"),
}
"""The size of each picture: together a few minutes of processor time, half of it for the one-time compilation."""


def find(name: str) -> Experiment:
    """An experiment of the gallery."""
    return find_experiment(OTHERS.get(name, name))


def reduce_experiment(name: str) -> Experiment:
    """The experiment ``name`` at the size of its picture, without claims and words."""
    size, experiment = SIZES[name], find(name)
    instances = {key: value for key, value in experiment.instances.items() if key in (size.instances or [key])}
    small = {"horizon": size.horizon, "replications": size.replications, "instances": instances}
    return replace(experiment, claims=(), published={}, title="", text="", **small)


def digest(experiment: Experiment) -> str:
    """The digest of an experiment wherever its imports are."""
    return replace(experiment, imports=()).digest


def draw_study(study: Study, axis: str) -> Any:
    """Regret against ``axis``, or over rounds on the first two instances."""
    if axis:
        return plot_sweeps([line for line in study.sweep_lines if line.axis == axis])
    return plot_curves(study, study.started_instances[:2])


def write_svg(figure: Any, path: Path, description: str) -> None:
    """Write a figure of matplotlib as an SVG file that follows the colour scheme of its reader."""
    text = inline_svg(figure, path.stem, description)
    left, top, width, height = map(float, re.search(r'viewBox="([^"]*)"', text)[1].split())  # type: ignore[index]
    size = f'width="{width * SCALE:.0f}" height="{height * SCALE:.0f}" viewBox="{left:g} {top:g} {width:g} {height:g}"'
    text = re.sub(r'class="figure" viewBox="[^"]*"', size, text, count=1)
    light, dark = map(_colours, (LIGHT, DARK))
    style = f"<style>:root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}</style>"
    path.write_text(text.replace("<defs>", f"{style}<defs>", 1) + "\n", encoding="utf-8")


def _colours(colours: tuple[str, ...]) -> str:
    ink, *lines = colours
    return f"color:{ink};" + "".join(f"--c{n}:{colour};" for n, colour in enumerate(lines))


def read_record() -> dict[str, Any]:
    """What was drawn, by experiment."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def draw(name: str) -> dict[str, Any]:
    """Run one experiment at its small size, write its picture, and describe both."""
    experiment = reduce_experiment(name)
    with tempfile.TemporaryDirectory() as directory:
        study = experiment.run(directory, progress=False)
        title = f"Regret of each policy: {find(name).title}"
        write_svg(draw_study(study, SIZES[name].axis), PLACE / f"{name}.svg", title)
        numbers = study.digest
    return {
        "horizon": experiment.horizon,
        "replications": experiment.replications,
        "instances": list(experiment.instances),
        "experiment": digest(experiment),
        "numbers": numbers,
    }


def main(names: list[str]) -> None:
    """Draw the experiments of the command line, or those whose pictures are out of date."""
    PLACE.mkdir(exist_ok=True)
    record = read_record()
    outdated = [name for name in [*list_shipped(), *OTHERS] if not is_current(name, record)]
    for name in names or outdated:
        record[name] = draw(name)
        print(f"gallery: {name}.svg", flush=True)
        RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n", encoding="utf-8")


def is_current(name: str, record: dict[str, Any]) -> bool:
    """Whether the picture is there and shows the experiment as it is shipped, at the size of ``SIZES``."""
    known = record.get(name, {}).get("experiment") == digest(reduce_experiment(name))
    return known and (PLACE / f"{name}.svg").exists()


if __name__ == "__main__":
    main(sys.argv[1:])
