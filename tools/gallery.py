"""Draw the pictures of the gallery: every shipped experiment, at a small size.

    make gallery                       the pictures that are missing, or whose experiment or size has changed
    python -m tools.gallery items      these, in any case

``docs/reference/gallery`` gets one picture per experiment, and ``pictures.json``: the size that was run, a digest of
what was run, and a digest of the numbers.
"""

import json
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from superarm.experiments import Experiment, Study
from superarm.experiments.report.figures import plot_curves, plot_sweeps
from superarm.experiments.spec.experiment import list_shipped, load_shipped

PLACE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "gallery"
RECORD = PLACE / "pictures.json"
DPI = 90
"""Dots per inch of a picture: as wide as a column of the site, and a small file."""


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
    "quickstart": Size(10_000, 4, ("rare-hits",), axis="k"),
    "recommendation": Size(5_000, 6),
    "seeding": Size(5_000, 4, axis="k"),
    "sensors": Size(5_000, 6, axis="weather"),
}
"""The size of each picture: together a few minutes of processor time, half of it for the one-time compilation."""


def reduce_experiment(name: str) -> Experiment:
    """The shipped experiment ``name`` at the size of its picture, without claims and words."""
    size, experiment = SIZES[name], load_shipped(name)
    instances = {key: value for key, value in experiment.instances.items() if key in (size.instances or [key])}
    small = {"horizon": size.horizon, "replications": size.replications, "instances": instances}
    return replace(experiment, claims=(), title="", text="", **small)


def draw_study(study: Study, axis: str) -> Any:
    """Regret against ``axis``, or over rounds on the first two instances."""
    if axis:
        return plot_sweeps([line for line in study.sweep_lines if line.axis == axis])
    return plot_curves(study, study.started_instances[:2])


def read_record() -> dict[str, Any]:
    """What was drawn, by experiment."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def draw(name: str) -> dict[str, Any]:
    """Run one experiment at its small size, write its picture, and describe both."""
    experiment = reduce_experiment(name)
    with tempfile.TemporaryDirectory() as directory:
        study = experiment.run(directory, progress=False)
        draw_study(study, SIZES[name].axis).savefig(PLACE / f"{name}.png", dpi=DPI, facecolor="white")
        numbers = study.digest
    return {
        "horizon": experiment.horizon,
        "replications": experiment.replications,
        "instances": list(experiment.instances),
        "experiment": experiment.digest,
        "numbers": numbers,
    }


def main(names: list[str]) -> None:
    """Draw the experiments of the command line, or those whose pictures are out of date."""
    PLACE.mkdir(exist_ok=True)
    record = read_record()
    outdated = [name for name in list_shipped() if not is_current(name, record)]
    for name in names or outdated:
        record[name] = draw(name)
        print(f"gallery: {name}.png", flush=True)
        RECORD.write_text(json.dumps(dict(sorted(record.items())), indent=1) + "\n", encoding="utf-8")


def is_current(name: str, record: dict[str, Any]) -> bool:
    """Whether the picture is there and shows the experiment as it is shipped, at the size of ``SIZES``."""
    known = record.get(name, {}).get("experiment") == reduce_experiment(name).digest
    return known and (PLACE / f"{name}.png").exists()


if __name__ == "__main__":
    main(sys.argv[1:])
