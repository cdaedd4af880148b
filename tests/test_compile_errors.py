"""A mistake in a component of the user's is answered with its line, the construct and the remedy."""

import inspect

import pytest

import superarm as sa
from superarm.indices.base import level
from superarm.rewards.base import initial_states
from superarm.testing import ContractViolation, check_declaration
from tests import uncompilable

MISTAKES = {
    "f_string": ("pulls:.3f", "an f-string cannot be compiled", "NUMBA_DISABLE_JIT=1"),
    "prints": ("print(", "print cannot be compiled", "remove it"),
    "untyped_list": ("terms = []", "a Python list cannot be compiled", "NumPy array"),
    "unsupported": ("np.einsum", "np.einsum is not available", "write a loop"),
    "unsupported_module": ("np.ma.sqrt", "np.ma.sqrt is not available", "write a loop"),
    "undecorated": ("plain_function(pulls)", "plain_function is a plain Python function", "@superarm.kernel"),
    "wrong_shape": ("terms[0, 0]", "an array of 1 dimension is indexed with 2 indices", "superarm.core.support.span"),
    "unknown_field": ("self.rho", "has no field or compiled method 'rho'", "add the field"),
    "mixed": ("", "values of different types meet here", "1.0 rather than 1"),
    "assigned": ("self.rho = pulls", "a field cannot be assigned", "arrays of the memory"),
    "imports": ("import itertools", "an import cannot be compiled", "at the top of the file"),
    "random_numbers": (
        "np.random.default_rng",
        "np.random.default_rng cannot be used here",
        "superarm.core.streams.uniform",
    ),
    "called_by_keyword": ("level(index=self", "keyword arguments", "by position"),
    "text": ('"much" * pulls', "text cannot be compiled", "a number"),
}


@sa.kernel
def _ask_for_level(index, pulls):
    """A kernel around the method, as the library's kernels are."""
    return level(index, pulls, 3, 0.5)


@pytest.mark.compiled("the errors are numba's")
@pytest.mark.parametrize("nested", [False, True], ids=["called", "inside a kernel"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_answered_with_its_line_and_a_remedy(mistake, nested):
    code, wrong, remedy = MISTAKES[mistake]
    function = getattr(uncompilable, mistake)
    component = uncompilable.index(mistake.title() + str(nested), function)()
    with pytest.raises(sa.CompileError) as caught:
        _ask_for_level(component, 2.0) if nested else component.level(2.0, 3, 0.5)
    lines, first = inspect.getsourcelines(function)
    message = str(caught.value)
    number = int(caught.value.place.rpartition(":")[2])
    assert caught.value.place.startswith("tests/uncompilable.py:")
    assert first <= number < first + len(lines)
    assert code in lines[number - first]
    assert wrong in message
    assert remedy in message
    assert len(message.splitlines()) <= 3
    assert len(caught.value.full_text) > 0
    assert caught.value.__cause__ is None


@pytest.mark.compiled("the errors are numba's")
def test_the_compilers_text_is_shown_on_request(monkeypatch):
    monkeypatch.setenv("SUPERARM_FULL_ERRORS", "1")
    with pytest.raises(sa.CompileError) as caught:
        uncompilable.index("Shown", uncompilable.wrong_shape)().level(2.0, 3, 0.5)
    assert str(caught.value.__cause__) == caught.value.full_text


@pytest.mark.compiled("the errors are numba's")
def test_errors_that_no_component_of_the_user_causes_are_left_alone():
    with pytest.raises(Exception, match="nopython") as caught:
        _ask_for_level(sa.indices.KL().level, 2.0)
    assert not isinstance(caught.value, sa.CompileError)


@pytest.mark.compiled("the errors are numba's")
def test_methods_with_other_parameters_or_results_are_named():
    with pytest.raises(sa.CompileError, match=r"wrong_signature|takes \(self, pulls, t\), but Index.level takes"):
        _ask_for_level(uncompilable.index("Wrong", uncompilable.wrong_signature)(), 2.0)
    terms = sa.Problem(3, 2, sa.Coverage(), sa.Subsets(1)).terms
    with pytest.raises(sa.CompileError, match=r"PairState.start: returns a tuple, but the state of an item is one"):
        initial_states(uncompilable.PairState(), terms)
    with pytest.raises(sa.CompileError, match=r"lacks a decorator; write @superarm.component above class Undeclared"):
        _ask_for_level(uncompilable.Undeclared(), 2.0)


@pytest.mark.compiled("the errors are numba's")
def test_a_method_that_returns_none_on_some_path_is_named_although_numba_compiles_it():
    nothing = uncompilable.index("NothingCompiled", uncompilable.nothing_at_first)()
    place = inspect.getsourcelines(uncompilable.nothing_at_first)[1]
    for _ in range(2):  # nothing is kept of the first attempt
        with pytest.raises(sa.CompileError, match=r"level: returns None on some paths, .* on every path") as caught:
            _ask_for_level(nothing, 2.0)
        assert caught.value.place == f"tests/uncompilable.py:{place}"
        assert not any("numba/core/compiler.py" in str(frame.path) for frame in caught.traceback)


def test_the_checks_name_what_is_missing_above_or_inside_the_parentheses():
    with pytest.raises(ContractViolation, match=r"uncompilable.py:\d+: Undeclared .* write @superarm.component above"):
        sa.testing.check(uncompilable.Undeclared())
    with pytest.raises(
        ContractViolation, match=r"PairState.smoothness .* write @superarm.interpreted above def smooth"
    ):
        sa.testing.check(uncompilable.PairState())
    with pytest.raises(ContractViolation, match=r"write def level\(self, pulls, t, share\)"):
        sa.testing.check(uncompilable.index("WrongPlain", uncompilable.wrong_signature)())
    with pytest.raises(ContractViolation, match=r"level returns \(\d"):
        sa.testing.check_index(uncompilable.index("NoNumber", uncompilable.no_number)())
    with pytest.raises(ContractViolation, match="level returns None, but it is one number"):
        sa.testing.check_index(uncompilable.index("NothingAtFirst", uncompilable.nothing_at_first)())
    with pytest.raises(
        ContractViolation, match=r"PairState.start returns \(0.0, 0.0\), but the state of an item is one"
    ):
        sa.testing.check_reward(_with_smoothness())
    with pytest.raises(ContractViolation, match="the methods of a family, one of score, join"):
        sa.testing.check(1.0)


def _with_smoothness():
    class Marked(uncompilable.PairState):
        pass

    Marked.__name__ = "PairState"
    Marked.smoothness = sa.interpreted(lambda self, k: sa.Smoothness(1.0, 0.5, 0.5))
    return Marked()


def test_a_batch_that_is_no_array_is_named():
    with pytest.raises(ContractViolation, match=r"uncompilable.py:\d+: ListOracle.maximize returns \[0, 1, 2\], but"):
        sa.testing.check(uncompilable.ListOracle())


@pytest.mark.compiled("the errors are numba's")
def test_what_a_problem_offers_to_python_only_has_a_remedy():
    problem = sa.Problem(4, 2, sa.Coverage(), sa.Subsets(2))
    agent = sa.Agent(problem, sa.kl_ucb(oracle=uncompilable.PythonAttribute()))
    with pytest.raises(sa.CompileError, match=r"has no field or compiled method 'k'; write superarm.actions.capacity"):
        agent.ask()


def test_missing_methods_are_named():
    with pytest.raises(ContractViolation, match="PairState lacks the method capacity of Actions"):
        check_declaration(uncompilable.PairState(), sa.actions.Actions)


def test_a_broken_contract_is_shown_under_its_public_name():
    assert f"{ContractViolation.__module__}.{ContractViolation.__qualname__}" == "superarm.testing.ContractViolation"
