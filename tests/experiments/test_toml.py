import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superarm.experiments.spec.toml import dumps, line_of

TEXT = '''name = "x"   # line 1
text = """
horizon = 3
"""
horizon = 10

[instances."a b"]
generator = "random_coverage"
outcomes = { name = "Copula", items = { sweep = [0.1, 0.5] } }

[policies.KL-UCB]
policy = "kl_ucb"

[[claims]]
kind = "less"

[[claims]]
kind = "slope"
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 1),
        (("horizon",), 5),
        (("instances", "a b"), 7),
        (("instances", "a b", "generator"), 8),
        (("instances", "a b", "outcomes", "items", "sweep"), 9),
        (("instances", "a b", "absent"), 7),
        (("policies", "KL-UCB", "policy"), 12),
        (("claims", "0", "kind"), 15),
        (("claims", "1", "kind"), 18),
        (("nothing",), None),
    ],
)
def test_line_of_a_key(path, line):
    assert line_of(TEXT, path) == line


_words = st.text(max_size=12).filter(lambda s: "\r" not in s)
_scalars = st.one_of(
    st.integers(-(2**60), 2**60), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), _words
)
_inner = st.dictionaries(
    st.text(min_size=1, max_size=5), st.one_of(_scalars, st.lists(_scalars, max_size=3)), max_size=3
)


@given(
    st.dictionaries(st.sampled_from(["name", "text", "seed"]), _scalars), st.dictionaries(_words, _inner, max_size=3)
)
def test_what_is_written_is_read_back(top, instances):
    table = {**top, "instances": instances, "claims": [{"kind": "less", "factor": 0.5}]}
    read = tomllib.loads(dumps(table))
    assert read.pop("instances", {}) == instances
    assert read == {**top, "claims": table["claims"]}
