import pytest

from superarm.core.errors import InvalidSpec
from superarm.experiments.spec.build import Case, expand


def test_two_sweeps_give_every_combination():
    cases = expand({"k": {"sweep": [2, 4]}, "outcomes": {"name": "Beta", "strength": {"sweep": [1.0, 9.0]}}}, ())
    assert [axes for axes, _ in cases] == [
        {"k": 2, "outcomes.strength": 1.0},
        {"k": 2, "outcomes.strength": 9.0},
        {"k": 4, "outcomes.strength": 1.0},
        {"k": 4, "outcomes.strength": 9.0},
    ]
    assert cases[1][1] == {"k": 2, "outcomes": {"name": "Beta", "strength": 9.0}}


def test_without_a_sweep_there_is_one_case():
    assert expand({"k": 2}, ()) == [({}, {"k": 2})]


@pytest.mark.parametrize("bad", [{"sweep": []}, {"sweep": 3}, {"sweep": [1], "more": 1}, {"sweep": [1, 1]}])
def test_what_is_no_sweep_is_refused_by_name(bad):
    with pytest.raises(InvalidSpec) as refused:
        expand({"k": bad}, ("instances", "x"))
    assert refused.value.key == ("instances", "x", "k")


def test_labels_show_the_axes():
    assert Case("x", {"gap": 0.1, "name": "a"}).label == "x (gap=0.1, name=a)"
