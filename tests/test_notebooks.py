"""Results, studies, agents and progress bars in a real kernel, as a notebook shows them; the notebooks of examples."""

import base64
import io
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

from dev.tools.package_examples import drop_times
from superarm.simulation.plots import COLOURS

pytestmark = pytest.mark.filterwarnings("default")  # of Jupyter's own packages

SIMULATION = """
import superarm as sa
instance = sa.instances.random_coverage(n_arms=6, n_items=3, k=2)
results = sa.simulate(instance, {"CUCB": sa.cucb(), "uniform": sa.uniform()}, horizon=40, replications=3, seed=0)
"""
STUDY = """
experiment = sa.Experiment(
    name="small",
    instances={"random": {"generator": "random_coverage", "n_arms": 6, "n_items": 3, "k": 2}},
    policies={"CUCB": {"policy": "cucb"}, "uniform": {"policy": "uniform"}},
    horizon=40,
    replications=3,
)
study = experiment.run("small")
"""
WITHOUT_WIDGETS = "import sys\nsys.modules['ipywidgets'] = None\n" + SIMULATION
OWN = """
import numpy as np
class Bold(sa.Index):
    c: float = 0.5
    def level(self, pulls, t, share):
        return self.c / pulls
    def score(self, mean, deviation, level, chance):
        return np.minimum(1.0, mean + np.sqrt(level))
sa.testing.check(Bold())
agent = sa.Agent(instance.problem, sa.IndexPolicy(Bold(0.25)), seed=0)
agent.tell(agent.ask(), np.zeros((2, 3)))
print(sa.Agent.from_state(agent.to_state()).policy.index)
"""
ROUNDS = 2 * 3 * 40
"""Of two policies, three replications and 40 rounds."""


CELLS = {
    "simulate": SIMULATION,
    "results": "results",
    "plot": "results.plot()",
    "experiment": STUDY,
    "study": "study",
    "agent": "sa.Agent(instance.problem, sa.kl_ucb(), seed=0)",
    "own component": OWN,
    "without widgets": WITHOUT_WIDGETS,
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """The outputs of the cells in a kernel of its own, by name, and the state of the widgets."""
    written = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS.values()])
    place = {"metadata": {"path": tmp_path_factory.mktemp("notebook")}}
    client = NotebookClient(written, timeout=120, kernel_name="python3", resources=place)
    client.execute()
    return dict(zip(CELLS, (cell.outputs for cell in written.cells), strict=True)), client.widget_state


def _shown(outputs, kind):
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


def _colours(png):
    """The colours of a picture with the number of their pixels."""
    with Image.open(io.BytesIO(png)) as picture:
        counted = picture.convert("RGB").getcolors(2**24)
    return {f"#{r:02x}{g:02x}{b:02x}": n for n, (r, g, b) in counted}


def _check_lines(png, n):
    """The first ``n`` policies have lines in their colours."""
    colours = _colours(png)
    for colour in COLOURS[:n]:
        assert colours.get(colour, 0) > 100, colour


def test_results_are_a_table_and_a_figure(notebook):
    (page,) = _shown(notebook[0]["results"], "text/html")
    assert "CUCB" in page
    assert "after 40 rounds, 3 replications" in page
    _check_lines(base64.b64decode(page.partition("base64,")[2].partition('"')[0]), 2)


def test_a_plot_is_shown_once_in_a_fresh_kernel(notebook):
    (picture,) = _shown(notebook[0]["plot"], "image/png")
    _check_lines(base64.b64decode(picture), 2)


def test_a_study_is_a_figure_and_a_table(notebook):
    (page,) = _shown(notebook[0]["study"], "text/html")
    assert "<td>CUCB</td>" in page
    _check_lines(base64.b64decode(page.partition("base64,")[2].partition('"')[0]), 2)


def test_an_agent_is_a_table(notebook):
    (page,) = _shown(notebook[0]["agent"], "text/html")
    assert "<table" in page


def test_a_component_that_is_defined_in_a_cell_works_and_is_stored_with_an_agent(notebook):
    (printed,) = notebook[0]["own component"]
    assert printed["text"] == "Bold(c=0.25)\n"


@pytest.mark.parametrize("cell", ["simulate", "experiment"])
def test_a_progress_bar_is_a_widget_that_reaches_the_end(notebook, cell):
    outputs, widgets = notebook
    (shown,) = _shown(outputs[cell], "application/vnd.jupyter.widget-view+json")
    boxes = [widgets[part.removeprefix("IPY_MODEL_")] for part in widgets[shown["model_id"]]["children"]]
    (bar,) = [box for box in boxes if box["_model_name"] == "FloatProgressModel"]
    assert bar["value"] == bar["max"] == ROUNDS
    assert bar["bar_style"] == "success"


def test_without_widgets_a_progress_bar_is_text(notebook):
    outputs = notebook[0]["without widgets"]
    assert _shown(outputs, "application/vnd.jupyter.widget-view+json") == []
    assert "100%" in "".join(output["text"] for output in outputs if output.output_type == "stream")


BOOKS = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))


def _read(path):
    return nbformat.read(path, nbformat.NO_CONVERT)


def _printed(cell):
    """What a cell printed, without times, and the kinds of its other outputs."""
    texts = [drop_times(output["text"]) for output in cell.outputs if output.output_type == "stream"]
    return "".join(texts), [sorted(output.data) for output in cell.outputs if "data" in output]


def test_the_notebooks_are_few_short_and_lead_on():
    books = {path.stem: _read(path) for path in BOOKS}
    assert list(books) == ["decide", "experiment", "prove"]
    assert sum(len(book.cells) for book in books.values()) <= 60
    for book in books.values():
        text = "\n".join(cell.source for cell in book.cells if cell.cell_type == "markdown")
        links = re.findall(r"\]\(([^)#]+)", text)
        assert links
        assert [link for link in links if not (BOOKS[0].parent / link).exists()] == []


@pytest.mark.slow("the notebooks")
@pytest.mark.parametrize("path", BOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_shows(path, tmp_path):
    shown, run = _read(path), _read(path)
    NotebookClient(run, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    for before, after in zip(shown.cells, run.cells, strict=True):
        if before.cell_type == "code":
            assert _printed(after) == _printed(before), before.source
