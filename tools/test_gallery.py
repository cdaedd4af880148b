"""The gallery shows every shipped experiment as it is shipped; ``make docs-test`` runs these checks."""

import pytest

from superarm.experiments.spec.experiment import list_shipped, load_shipped
from tools import gallery

RECORD = gallery.read_record()


def test_every_shipped_experiment_has_a_size_and_a_record():
    assert sorted(gallery.SIZES) == sorted(RECORD) == list_shipped()


@pytest.mark.parametrize("name", list_shipped())
def test_the_picture_is_of_the_experiment_as_it_is_shipped(name):
    """make gallery draws pictures anew whose experiments have changed."""
    assert gallery.is_current(name, RECORD)
    assert (gallery.PLACE / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (gallery.PLACE / f"{name}.png").stat().st_size < 120_000


@pytest.mark.parametrize("name", list_shipped())
def test_the_record_says_how_much_was_run(name):
    size, complete = gallery.SIZES[name], load_shipped(name)
    assert RECORD[name]["horizon"] == size.horizon <= complete.horizon
    assert RECORD[name]["replications"] == size.replications <= complete.replications
    assert set(RECORD[name]["instances"]) == set(size.instances or complete.instances)


def test_another_size_makes_a_picture_outdated(monkeypatch):
    monkeypatch.setitem(gallery.SIZES, "items", gallery.Size(7, 2))
    assert not gallery.is_current("items", RECORD)
    assert not gallery.is_current("ads", {})
