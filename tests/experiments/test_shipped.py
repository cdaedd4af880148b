import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from superarm.core.errors import InvalidSpec
from superarm.experiments.spec import imports
from superarm.experiments.spec.experiment import find_experiment, list_published, list_shipped, load_shipped
from superarm.simulation import seeds
from superarm.simulation.regret import KINDS
from superarm.simulation.runs import play

APPLICATIONS = ["ads", "channels", "recommendation", "seeding", "sensors"]
CONTEST = [
    "champions", "champions-close", "champions-long", "champions-million", "champions-single", "champions-unequal",
    "champions-wide",
]  # fmt: skip
CONTEXTS = ["context", "context-batch", "context-constants"]
SHIPPED = ["cascades", "changing", *CONTEXTS, "items", "paper", "quickstart"]
PUBLISHED = [
    "cheung2019-table3", "huyuk2019-table1", "katariya2016-figure2", "komiyama2015-figure2a", "komiyama2015-figure2b",
    "kveton2015-grid", "kveton2015-table2", "wen2015-grid", "zhang2024-twosets", "zimmert2019-figure1a",
]  # fmt: skip
OTHERS = Path(__file__).parents[2] / "dev" / "experiments"
ALL = [*SHIPPED, *PUBLISHED, *APPLICATIONS, *CONTEST]


@pytest.fixture
def find(monkeypatch):
    """What finds an experiment, shipped or in dev/experiments; what it imports is forgotten."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(imports, "_imported", {})
    yield lambda name: find_experiment(name if name in [*SHIPPED, *PUBLISHED] else str(OTHERS / f"{name}.toml"))
    sys.modules.pop("applications", None)


def test_the_shipped_experiments():
    assert list_shipped() == sorted(SHIPPED)
    assert list_published() == ["cascades", *PUBLISHED]
    assert sorted(file.stem for file in OTHERS.glob("*.toml")) == sorted([*APPLICATIONS, *CONTEST])


@pytest.mark.parametrize("name", ALL)
def test_each_is_valid_and_bears_its_file_s_name(name, find):
    experiment = find(name)
    assert experiment.name == name
    assert experiment.claims
    assert experiment.target in KINDS, "a shipped file says what regret is measured against"
    digests = [cell.digest for cell in experiment.cells()]
    assert len(set(digests)) == len(digests) >= 3


@pytest.mark.parametrize("name", ["cascades", *PUBLISHED])
def test_a_published_result_has_its_source_and_a_number_for_every_instance(name):
    experiment = load_shipped(name)
    assert experiment.published
    assert {claim["instance"] for claim in experiment.claims if "instance" in claim} == set(experiment.instances)


@pytest.mark.parametrize("name", ALL)
def test_cells_play_some_rounds(name, find):
    rounds, stop = np.arange(1, 13), threading.Event()
    cells = find(name).cells()
    for cell in cells[:: max(1, len(cells) // 12)] if name in PUBLISHED else cells:  # those of a paper are much alike
        problem = cell.instance.problem
        runs = play(cell.instance, cell.policy, seeds(0, 2), rounds, stop, lambda _: None, batch_rounds=rounds)
        assert runs.done
        assert np.isfinite(runs.earned).all(), cell.label
        for batch in runs.batches.reshape(-1, problem.k):
            assert problem.actions.includes(batch[batch >= 0], problem.n_arms), cell.label


@pytest.mark.parametrize("name", APPLICATIONS)
def test_an_application_tells_what_its_arms_items_and_weights_are(name, find):
    text = find(name).text
    for words in ("is an arm", "is an item", "weigh", "p[j, i] is the chance", "feedback of a"):
        assert words in text, words


def test_a_file_of_the_same_name_wins(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "quickstart").write_text(load_shipped("quickstart").to_toml().replace('"quickstart"', '"mine"'))
    assert find_experiment("quickstart").name == "mine"


def test_neither_file_nor_name():
    with pytest.raises(InvalidSpec, match="unknown file or shipped experiment"):
        find_experiment("no/such/thing.toml")
