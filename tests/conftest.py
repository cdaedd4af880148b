import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.left_out import Record, reason_to_skip

settings.register_profile("superarm", derandomize=True, deadline=None, max_examples=60, database=None)
settings.load_profile("superarm")


def pytest_configure(config: pytest.Config) -> None:
    path = os.environ.get("TEST_RECORD")
    if path and not hasattr(config, "workerinput"):  # xdist's workers report to the process that started them
        config.pluginmanager.register(Record(Path(path)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if reason := reason_to_skip(item):
            item.add_marker(pytest.mark.skip(reason=reason))
