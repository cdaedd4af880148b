"""Compiled and plain Python agree to the bit, so that every other test may run as plain Python.

The files of ``tests/modes`` compare. Here it is checked that together they compare all there is to compare.
"""

import itertools
import sys

from tests.compositions import covering_set, kinds_of, missing
from tests.mode_functions import FUNCTIONS, kernels
from tests.modes.games import COMPOSITIONS, GAMES, PARTS, list_part, run_by_name


def test_together_they_call_every_kernel_and_their_results_differ():
    called = set()

    def note(frame, event, _):
        if event == "call":
            called.add((frame.f_code.co_filename, frame.f_code.co_qualname))

    sys.setprofile(note)
    try:
        found = {name: run_by_name(name) for name in (*COMPOSITIONS, *GAMES, *FUNCTIONS)}
    finally:
        sys.setprofile(None)
    assert sorted(set(kernels()) - called) == [], "play it in a composition, or compute it in tests/mode_functions.py"
    assert len({found[name]["digest"] for name in (*COMPOSITIONS, *GAMES)}) == len(COMPOSITIONS) + len(GAMES)


def test_every_composition_is_in_one_file():
    assert sorted(itertools.chain(*map(list_part, PARTS))) == sorted(COMPOSITIONS)


def test_the_covering_set_covers_every_pair_that_the_library_supports():
    assert missing(covering_set()) == [], "run: python -m tests.compositions"


def test_what_is_not_covered_is_found():
    rest = [one for one in covering_set() if one.actions != "Paths" or kinds_of(one).oracle != "by gains"]
    assert ((2, "paths"), (3, "by gains")) in missing(rest)
    assert ((3, "IMM"),) in missing([one for one in rest if one.oracle != "IMM"])
