"""A log that was stored, with every kind of event: this code reads it, finds it sound and goes on from it."""

import sqlite3
import zlib
from pathlib import Path

import pytest

from superarm.service.domain.events import ARRAYS, Event
from superarm.service.storage.base import TABLES_VERSION
from superarm.service.storage.snapshot import begin_ledger, restore_ledger, verify
from superarm.service.storage.sqlite import Sqlite, connect
from tests.recorded import stored

from .stored import NAME, counters, dump, load, next_slates

STORED = stored(NAME)
OF_PAGE = """stream = 'page' AND CAST(body AS TEXT) LIKE '{"type":"fitted"%'"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    load(tmp_path / "log.db", STORED["script"])
    return tmp_path / "log.db"


def test_it_has_every_kind_of_event_a_base_and_a_snapshot(log):
    store = Sqlite(log)
    kinds = {type(read.entry.event) for read in store.tail({})}
    assert {kind.__name__ for kind in Event.__subclasses__()} == {kind.__name__ for kind in kinds}
    assert begin_ledger(store)[1] != {}
    assert len(list(store.snapshots())) > 0
    store.close()


@pytest.mark.parametrize("snapshots", [True, False])
def test_it_is_sound_and_has_the_counters_that_it_had(log, snapshots):
    store = Sqlite(log)
    if not snapshots:
        store.drop_snapshots()
    assert verify(store).faults == []
    assert counters(store) == STORED["counters"]
    store.close()


def test_it_goes_on_with_the_same_slates(log):
    slates = next_slates(log)
    assert {name: len(made) for name, made in slates.items()} == dict.fromkeys(STORED["next"], 6)
    for name in ("page", "guarded"):  # of fits, other machines may compute other last digits
        assert slates[name] == STORED["next"][name]


def test_a_fit_of_a_later_version_closes_its_problem_alone(log):
    """As after a return to this version: one of arrays in a new form ended the service."""
    with sqlite3.connect(log) as connection:
        ((seq, body),) = connection.execute(f"SELECT seq, body FROM events WHERE {OF_PAGE} ORDER BY seq DESC LIMIT 1")
        later = body[:-1] + b',"arrays":%d}' % (ARRAYS + 1)
        connection.execute("UPDATE events SET body = ?, crc = ? WHERE seq = ?", (later, zlib.crc32(later), seq))
    connection.close()
    store = Sqlite(log)
    ledger = restore_ledger(store)[0]
    store.close()
    assert {key[1]: str(error) for key, error in ledger.broken.items()} == {
        "page": "a later version of superarm has fitted its policy; serve it with that version"
    }
    assert len(ledger.problems) > 2


def test_its_tables_are_those_of_a_new_log(tmp_path, log):
    Sqlite(tmp_path / "new.db").close()

    def tables(path: Path) -> list:
        connection = connect(path)
        found = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name").fetchall()
        connection.close()
        return found

    assert tables(log) == tables(tmp_path / "new.db")
    assert dump(log).endswith(f"PRAGMA user_version = {TABLES_VERSION};\n")
