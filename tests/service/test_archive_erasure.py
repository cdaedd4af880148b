"""A person whose decisions were archived is erased: from the files, and from the counters, exactly."""

import asyncio

import pytest

from superarm.core.errors import SuperarmError
from superarm.service.application import application
from superarm.service.domain.ledger import fold
from superarm.service.http.service import ServiceLimits
from superarm.service.storage import compaction as archive_erasure
from superarm.service.storage.archive import read_archive
from superarm.service.storage.compaction import compact, erase_archived
from superarm.service.storage.snapshot import encode_counters, restore_ledger, verify
from superarm.service.storage.sqlite import Sqlite

from .inprocess import serving
from .running import invoke
from .test_compaction import LATER, Interrupted, interrupt, use_more
from .test_erasure import ASK, SETTINGS, use

PROBLEM = ("default", "p")


@pytest.fixture
def on_sqlite(tmp_path):
    """Opens the same file again and again: for a service (the default), or for reading."""
    return lambda reading=False: Sqlite(tmp_path / "log.db", lock=not reading)


def archive_all(reopen, directory, settings, n=40) -> tuple[set[str], list, set[str]]:
    """Serve decisions and archive those that ended: the ids of unit 1, all events, and the ids that were archived."""

    async def live() -> set[str]:
        async with serving(application(reopen(), ServiceLimits(snapshot_every=25))) as http:
            return await use(http, settings, n)

    ids = asyncio.run(live())
    store = reopen(reading=True)
    events = [read.entry for read in store.tail({})]
    done = compact(store, directory, LATER)
    store.close()
    archived = {read.entry.stream for read in read_archive(done.archive)}
    assert ids & archived
    assert archived - ids
    return ids, events, archived


def ids_in(directory) -> set[str]:
    return {read.entry.stream for path in directory.iterdir() for read in read_archive(path)}


def assert_counters_without(store, events, gone) -> None:
    """The state is that of the events without those of some decisions."""
    want = fold([entry for entry in events if entry.kind != "decision" or entry.stream not in gone])
    have = restore_ledger(store)[0]
    expected, found = (encode_counters("", "", one.problems[PROBLEM]) for one in (want, have))
    assert found.tally == expected.tally
    assert found.blocks == expected.blocks
    assert found.pending == expected.pending
    assert have.pending.keys() == want.pending.keys()
    for one in (have, want):
        one.problems[PROBLEM].history.flush(want.problems[PROBLEM].problem)
    for name in ("slots", "explored", "complete", "expired"):
        assert getattr(have.problems[PROBLEM].history, name) == getattr(want.problems[PROBLEM].history, name), name


@pytest.mark.parametrize("kind", SETTINGS)
def test_files_and_counters_are_without_the_person(on_sqlite, tmp_path, kind):
    directory = tmp_path / "archive"
    ids, events, archived = archive_all(on_sqlite, directory, SETTINGS[kind])
    store = on_sqlite(reading=True)
    done = erase_archived(store, directory, PROBLEM, unit="unit-1", by="somebody")
    assert done.erased == len(ids & archived)
    assert verify(store).faults == []
    assert ids_in(directory) == archived - ids
    assert not any(f'"id":"{id}"'.encode() in path.read_bytes() for id in ids for path in directory.iterdir())
    assert_counters_without(store, events, ids & archived)
    assert erase_archived(store, directory, PROBLEM, unit="unit-1").erased == 0
    store.close()


def test_on_every_store_it_is_noted_and_the_service_goes_on(reopen, tmp_path):
    directory = tmp_path / "archive"
    ids, events, archived = archive_all(reopen, directory, SETTINGS["plain"], 25)
    one = min(archived - ids)
    store = reopen(reading=True)
    first = erase_archived(store, directory, PROBLEM, unit="unit-1", by="somebody")
    second = erase_archived(store, directory, PROBLEM, decision=one, by="somebody else")
    assert second.erased == 1
    assert first.replaced.keys() != second.replaced.keys()
    assert verify(store).faults == []
    assert ids_in(directory) == archived - ids - {one}
    assert_counters_without(store, events, ids & archived | {one})
    store.close()

    async def on() -> None:
        async with serving(application(reopen())) as http:
            audit = (await http.get("/v1/audit?problem=p")).json()["entries"]
            notes = [(entry["by"], entry["details"]) for entry in audit if entry["what"] == "erasure"]
            assert notes == [
                ("somebody else", {"decisions": 1, "archives": list(second.replaced)}),
                ("somebody", {"decisions": first.erased, "archives": list(first.replaced)}),
            ]
            await use_more(http)
            assert (await http.post(ASK, json={"id": one})).status_code == 201  # the id is free again

    asyncio.run(on())
    store = reopen(reading=True)
    assert verify(store).faults == []
    store.close()


@pytest.mark.parametrize("step", ["before the files", "before the transaction", "before the former files go"])
def test_an_interrupted_erasure_is_finished_by_the_next(on_sqlite, tmp_path, monkeypatch, step):
    """Nothing is taken from the counters twice."""
    directory = tmp_path / "archive"
    ids, events, archived = archive_all(on_sqlite, directory, SETTINGS["plain"], 25)
    store = on_sqlite(reading=True)
    with monkeypatch.context() as patch:
        if step == "before the files":
            patch.setattr(archive_erasure, "rewrite_archive", interrupt)
        elif step == "before the transaction":
            patch.setattr(archive_erasure, "make_bases", interrupt)
        else:
            patch.setattr(archive_erasure.Path, "unlink", interrupt)
        with pytest.raises(Interrupted):
            erase_archived(store, directory, PROBLEM, unit="unit-1")
    store.close()
    store = on_sqlite(reading=True)
    assert verify(store).faults == []
    erase_archived(store, directory, PROBLEM, unit="unit-1")
    assert verify(store).faults == []
    assert ids_in(directory) == archived - ids
    assert_counters_without(store, events, ids & archived)
    store.close()


def test_a_copy_of_a_replaced_file_elsewhere_is_refused(on_sqlite, tmp_path):
    directory, elsewhere = tmp_path / "archive", tmp_path / "copy"
    archive_all(on_sqlite, directory, SETTINGS["plain"], 25)
    (file,) = directory.iterdir()
    elsewhere.mkdir()
    (elsewhere / file.name).write_bytes(file.read_bytes())
    store = on_sqlite(reading=True)
    erase_archived(store, directory, PROBLEM, unit="unit-1")
    with pytest.raises(SuperarmError, match="was replaced by"):
        erase_archived(store, elsewhere, PROBLEM, unit="unit-1")
    store.close()


def test_the_command_erases_and_explains_what_is_missing(on_sqlite, tmp_path):
    directory = tmp_path / "archive"
    ids, _, archived = archive_all(on_sqlite, directory, SETTINGS["plain"], 25)
    words = ["erase", "--db", str(tmp_path / "log.db"), "--archive", str(directory), "--problem", "p"]
    assert "give --unit UNIT, or --decision ID" in invoke(*words).output
    assert "there is no problem 'q'" in invoke(*words[:-1], "q", "--unit", "unit-1").output
    done = invoke(*words, "--unit", "unit-1")
    assert f"{len(ids & archived)} decisions erased from {directory}" in done.output
    assert "was replaced by superarm-" in done.output
    for id in sorted(archived - ids):
        last = invoke(*words, "--decision", id)
    assert "was removed: nothing else was in it" in last.output
    assert list(directory.iterdir()) == []
    assert "sound" in invoke("verify", "--db", str(tmp_path / "log.db")).output
