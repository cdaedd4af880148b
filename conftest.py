"""Settings of pytest, for the tests and for the examples in docstrings."""

import io
from pathlib import Path

import pytest
from hypothesis import settings

from tests.tiers import Tiers

settings.register_profile("superarm", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("superarm")

BLANK = '<svg width="1pt" viewBox="0 0 1 1"></svg>'


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--budget", type=float, default=0.0, help="fail if a file takes more seconds of processor time")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Tiers(config))


@pytest.fixture
def blank_figures(monkeypatch):
    """Figures are composed, but written blank, for tests that do not look at them: most time goes into drawing."""

    def write(_, file, **__):
        if isinstance(file, io.StringIO):
            file.write(BLANK)
        elif isinstance(file, io.BytesIO):
            file.write(BLANK.encode())
        else:
            Path(file).write_text(BLANK)

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", write)
