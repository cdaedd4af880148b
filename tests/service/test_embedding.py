"""The service as one application of a process that has others."""

import asyncio
import gc
import signal

from superarm.service.application import application
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving


def process() -> tuple:
    """What belongs to the process, and not to one of its applications."""
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]
    return gc.get_threshold(), gc.get_freeze_count(), gc.isenabled(), handlers


def test_an_application_changes_nothing_of_the_process(tmp_path):
    async def live() -> None:
        before = process()
        app = application(Sqlite(tmp_path / "log.db"))
        async with serving(app) as http:
            assert (await http.get("/health")).status_code == 200
            assert process() == before

    asyncio.run(live())
