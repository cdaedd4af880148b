"""Settings of pytest, for the tests and for the examples in docstrings."""

from hypothesis import settings

from tests.passes import pytest_addoption, pytest_collection_modifyitems, pytest_configure, pytest_ignore_collect

__all__ = ["pytest_addoption", "pytest_collection_modifyitems", "pytest_configure", "pytest_ignore_collect"]

settings.register_profile("superarm", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("superarm")
