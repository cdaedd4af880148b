"""Settings of pytest, for the tests and for the examples in docstrings."""

import io
from pathlib import Path

import pytest
from hypothesis import settings

from tests.passes import pytest_addoption, pytest_collection_modifyitems, pytest_configure, pytest_ignore_collect

__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure", "pytest_ignore_collect"]

settings.register_profile("superarm", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("superarm")

BLANK = '<svg width="1pt" viewBox="0 0 1 1"></svg>'


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
