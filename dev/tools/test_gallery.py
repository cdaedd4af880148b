"""The gallery shows experiments as they are shipped; drawings are up to date. ``make docs-test`` runs these checks."""

import pytest

from dev.tools import drawings, gallery
from superarm.experiments.spec.experiment import list_shipped

RECORD = gallery.read_record()


def test_every_experiment_has_a_size_and_a_record():
    assert sorted(gallery.SIZES) == sorted(RECORD) == sorted([*list_shipped(), *gallery.OTHERS])


@pytest.mark.parametrize("name", gallery.SIZES)
def test_the_picture_is_of_the_experiment_as_it_is_shipped(name):
    """make gallery draws pictures anew whose experiments have changed."""
    assert gallery.is_current(name, RECORD)
    picture = (gallery.PLACE / f"{name}.svg").read_text(encoding="utf-8")
    assert picture.startswith("<svg ")
    assert "prefers-color-scheme:dark" in picture
    assert len(picture) < 150_000


@pytest.mark.parametrize("name", gallery.SIZES)
def test_the_record_says_how_much_was_run(name):
    size, complete = gallery.SIZES[name], gallery.find(name)
    assert RECORD[name]["horizon"] == size.horizon <= complete.horizon
    assert RECORD[name]["replications"] == size.replications <= complete.replications
    assert set(RECORD[name]["instances"]) == set(size.instances or complete.instances)


def test_another_size_makes_a_picture_outdated(monkeypatch):
    monkeypatch.setitem(gallery.SIZES, "items", gallery.Size(7, 2))
    assert not gallery.is_current("items", RECORD)
    assert not gallery.is_current("ads", {})


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_a_drawing_is_what_its_program_draws(name):
    """python -m dev.tools.drawings"""
    assert (drawings.PLACE / f"{name}.svg").read_text(encoding="utf-8") == drawings.draw(name)
