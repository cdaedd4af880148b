"""What importing the library does to Python's garbage collector: nothing runs meanwhile, and nothing stays changed."""

import json
import subprocess
import sys
from textwrap import dedent

import pytest

BEGIN = """
    import gc, json
    class Marker: pass
    marker, passes = Marker(), []
    gc.callbacks.append(lambda phase, info: passes.append(phase))
"""
END = """
    import superarm as sa
    passes.clear()
    sa.Agent, sa.simulate
    seen = len(passes)
    print(json.dumps([gc.isenabled(), any(thing is marker for thing in gc.get_objects()), seen]))
"""


def run(change):
    program = dedent(BEGIN) + change + dedent(END)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("change", "enabled", "collectable"),
    [("", True, True), ("gc.disable()", False, True), ("gc.freeze()", True, False)],
    ids=["as it is", "switched off by the program", "objects frozen by the program"],
)
def test_the_collector_is_left_as_it_was(change, enabled, collectable):
    assert run(change)[:2] == [enabled, collectable]


def test_nothing_is_collected_while_the_library_is_imported():
    assert run("")[2] == 0
