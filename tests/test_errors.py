"""The errors: what they say, what else they are, and that they travel between processes."""

import pickle

import pytest

from superarm.core.errors import ConflictingFeedback, InvalidArgument, MissingExtra, SuperarmError, UnknownDecision


@pytest.mark.parametrize(
    ("error", "also"),
    [
        (InvalidArgument("k", "5 arms of 3", "choose k <= 3"), ValueError),
        (UnknownDecision("d7 is not open"), KeyError),
        (ConflictingFeedback("d7 was told before"), Exception),
        (MissingExtra("matplotlib", "lab"), ImportError),
    ],
)
def test_family_and_pickle(error, also):
    assert isinstance(error, SuperarmError)
    assert isinstance(error, also)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


def test_invalid_argument_says_which_what_and_what_instead():
    assert str(InvalidArgument("k", "5 arms of 3", "choose k <= 3")) == "k: 5 arms of 3; choose k <= 3"
    owned = InvalidArgument("k", "5 arms of 3", "choose k <= 3", "Subsets")
    assert str(owned) == "Subsets.k: 5 arms of 3; choose k <= 3"
    assert (owned.argument, owned.wrong, owned.remedy, owned.owner) == ("k", "5 arms of 3", "choose k <= 3", "Subsets")


def test_unknown_decision_reads_as_a_sentence():
    assert str(UnknownDecision("d7 is not open")) == "d7 is not open"  # a KeyError would put it in quotes


def test_missing_extra_gives_the_command():
    said = "tqdm is not installed; in a clone of superarm, run: pip install '.[lab]'"
    assert str(MissingExtra("tqdm", "lab")) == said
