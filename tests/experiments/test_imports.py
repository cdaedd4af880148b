"""Components of the user's own in experiment files and on the command line."""

import sys

import numpy as np
import pytest
from click.testing import CliRunner

import superarm as sa
from superarm.cli import main
from superarm.core.errors import InvalidSpec
from superarm.experiments import Study, load
from superarm.experiments.execution.cells import digest_sources, list_cells
from superarm.experiments.spec import imports

MODULE = """
import numpy as np
import superarm as sa


class FirstArms(sa.Policy):
    shift: int = 0

    def choose(self, problem, view, memory):
        arms = (np.arange(problem.k) + self.shift) % problem.n_arms
        return np.repeat(arms[None], len(view), axis=0)


def shifted(by: int):
    return FirstArms(by + 1)


def two_arms(high: float):
    problem = sa.Problem(2, 1, sa.Coverage(), sa.Subsets(1))
    return sa.Instance(problem, sa.environments.Bernoulli([[high], [0.1]]))


def nothing():
    return None


class Widest(sa.Index):
    scale: float = 1.0

    def level(self, pulls, t, share):
        return 1.0 / pulls

    def score(self, mean, deviation, level, chance):
        return np.minimum(1.0, mean + self.scale * np.sqrt(level))


class FirstOnes(sa.Oracle):
    def maximize(self, problem, q, view):
        return np.tile(np.arange(problem.k), (len(view), 1))


class Pairs(sa.Actions):
    k = 2

    def start(self, n_arms):
        return np.zeros(1)


class AlwaysOnes(sa.Environment):
    p: object

    def means(self, problem, t):
        return np.ones((1, problem.n_items, problem.n_arms))


def with_actions(actions: sa.Actions = sa.Subsets(1)):
    return sa.Instance(sa.Problem(3, 1, sa.Coverage(), actions), sa.environments.Bernoulli(np.full((3, 1), 0.5)))
"""

EVERY_KIND = """
name = "kinds"
{head}

[instances]
outcomes = {{ generator = "random_coverage", n_arms = 4, n_items = 2, k = 2, outcomes = "{prefix}AlwaysOnes" }}
actions = {{ generator = "{prefix}with_actions", actions = {{ name = "{prefix}Pairs" }} }}

[policies]
mine = {{ policy = "IndexPolicy", index = {{ name = "{prefix}Widest", scale = 2.0 }}, oracle = "{prefix}FirstOnes" }}
"""

SPEC = """
name = "own"
{head}
horizon = 30
replications = 2
checkpoints = 5

[instances.two]
generator = "{prefix}two_arms"
high = 0.9

[policies.first]
policy = "{prefix}FirstArms"

[policies.shifted]
policy = "{prefix}shifted"
by = 0
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of its own name for each test, beside the spec; what it changed is undone."""
    name = f"mine_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(imports, "_imported", {})
    yield name
    sys.modules.pop(name, None)


def _write(directory, head="", prefix=""):
    path = directory / "spec.toml"
    path.write_text(SPEC.format(head=head, prefix=prefix))
    return path


def _run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("form", ["module", "file", "path", "option"])
@pytest.mark.usefixtures("blank_figures")
def test_own_components_are_run_and_reported(module, tmp_path, monkeypatch, form):
    monkeypatch.chdir(tmp_path)
    head = {"module": f'import = ["{module}"]', "file": f'import = ["{module}.py"]'}.get(form, "")
    spec = _write(tmp_path, head, f"{module}.py:" if form == "path" else "")
    extra = ["--import", module] if form == "option" else []
    done = _run("run", spec, "--out", tmp_path / "out", "--workers", 1, "--quiet", *extra)
    assert done.exit_code == 0, done.output
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # the stored spec names the file by its absolute path
    study = Study.load(tmp_path / "out")
    assert np.allclose(study.final_regret("two", "first"), 0.0)
    assert study.final_regret("two", "shifted") == pytest.approx(30 * 0.8)
    assert _run("report", tmp_path / "out").exit_code == 0


@pytest.mark.parametrize("form", ["file", "path"])
def test_a_file_takes_an_own_index_oracle_environment_and_action_set(module, tmp_path, form):
    path = tmp_path / "kinds.toml"
    head, prefix = (f'import = ["{module}.py"]', "") if form == "file" else ("", f"{module}.py:")
    path.write_text(EVERY_KIND.format(head=head, prefix=prefix))
    outcomes, actions = list_cells(load(path))
    assert type(outcomes.policy.index).__name__ == "Widest"
    assert outcomes.policy.index.scale == 2.0
    assert type(outcomes.policy.oracle).__name__ == "FirstOnes"
    assert type(outcomes.instance.environment).__name__ == "AlwaysOnes"
    assert type(actions.instance.problem.actions).__name__ == "Pairs"


def test_an_edited_component_is_another_cell(module, tmp_path):
    spec = _write(tmp_path, f'import = ["{module}"]')
    before = [cell.digest for cell in list_cells(load(spec))]
    (tmp_path / f"{module}.py").write_text(MODULE.replace("self.shift)", "self.shift + 1)"))
    after = [cell.digest for cell in list_cells(load(spec))]
    assert not set(before) & set(after)
    shipped = sa.Experiment("x", {"r": sa.instances.random_coverage(4, 2, 2)}, {"CUCB": sa.cucb()}).cells()[0]
    assert digest_sources([shipped.policy, shipped.instance.problem]) == {}


@pytest.mark.parametrize(
    ("head", "prefix", "told"),
    [
        ('import = "mine"', "", r"spec.toml:3: import: 'mine' is not a list"),
        ('import = ["nowhere"]', "", r"spec.toml:3: import: there is no module 'nowhere'"),
        ('import = ["nowhere.py"]', "", r"import: there is no file nowhere.py"),
        ("", "numpy:", r"instances.two.generator: numpy has no function or component 'two_arms'"),
        ("", "", r"instances.two.generator: unknown generator 'two_arms'"),
    ],
)
def test_mistakes_name_the_line_and_the_key(tmp_path, monkeypatch, head, prefix, told):
    monkeypatch.setattr(imports, "_imported", {})  # what other tests have imported
    with pytest.raises(InvalidSpec, match=told):
        load(_write(tmp_path, head, prefix))


def test_what_makes_no_policy_is_refused(module, tmp_path):
    spec = _write(tmp_path, f'import = ["{module}"]')
    spec.write_text(spec.read_text().replace('policy = "FirstArms"', 'policy = "nothing"'))
    with pytest.raises(InvalidSpec, match=r"policies.first.policy: nothing makes no policy"):
        list_cells(load(spec))


def test_a_file_with_the_name_of_a_loaded_module_is_refused(tmp_path):
    (tmp_path / "json.py").write_text("")
    with pytest.raises(InvalidSpec, match="another module 'json' is loaded from"):
        load(_write(tmp_path, 'import = ["json.py"]'))
