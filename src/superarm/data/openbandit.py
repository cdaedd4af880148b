"""Open Bandit logs: which fashion item was shown to whom, and whether it was clicked."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.data.files import read_rows


@dataclass(frozen=True)
class Clicks:
    """``p[j, i]`` is the rate at which group ``i`` clicks item ``j``; ``shown`` how often it was shown to the group."""

    p: Floats
    shown: Floats
    shares: Floats
    items: tuple[str, ...]
    groups: tuple[str, ...]


def read_open_bandit(path: str | Path, feature: str = "user_feature_0", member: str = "random/all/all.csv") -> Clicks:
    r"""Read a log such as ``random/all/all.csv``: a CSV file, or the published directory or zip that contains it.

    Users are grouped by ``feature``. Rates are weighted by inverse propensity, so that the log may be of any policy:

    .. math:: \hat p_{ij} = \frac{\sum click / propensity}{\sum 1 / propensity}

    over the rows that showed item j to group i; 0 where there are none.
    """
    log = list(read_rows(path, member if _is_archive(path) else "", ("item_id", "click", "propensity_score", feature)))
    if not log:
        raise InvalidArgument("path", f"{path} has no rows", "give a log of Open Bandit")
    items, groups = sorted({row[0] for row in log}, key=int), sorted({row[3] for row in log})
    j = np.searchsorted([int(item) for item in items], [int(row[0]) for row in log])
    i = np.array([groups.index(row[3]) for row in log])
    click, propensity = (np.array([float(row[n]) for row in log]) for n in (1, 2))
    if not (propensity > 0.0).all() or not np.isin(click, (0.0, 1.0)).all():
        raise InvalidArgument(
            "path", "some propensity is not positive, or some click is not 0 or 1", "give the published log"
        )
    shape = (len(items), len(groups))
    weight, clicked, shown = (np.zeros(shape) for _ in range(3))
    np.add.at(weight, (j, i), 1.0 / propensity)
    np.add.at(clicked, (j, i), click / propensity)
    np.add.at(shown, (j, i), 1.0)
    p = np.divide(clicked, weight, out=np.zeros(shape), where=weight > 0.0)
    return Clicks(np.clip(p, 0.0, 1.0), shown, shown.sum(axis=0) / shown.sum(), tuple(items), tuple(groups))


def _is_archive(path: str | Path) -> bool:
    return Path(path).is_dir() or Path(path).suffix == ".zip"
