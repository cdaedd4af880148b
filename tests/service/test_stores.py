"""Every store keeps the contract of stores, and the check of it notices stores that do not."""

import pytest

from superarm.testing import ContractViolation, check_store

from .memory_store import MemoryStore


def test_the_stores_of_the_service_keep_the_contract(reopen):
    check_store(reopen)


def test_the_least_that_a_store_has_to_be_is_enough():
    store = MemoryStore()
    check_store(lambda: store)


class Forgetful(MemoryStore):
    """A store that loses what its process did not read again."""

    def stream(self, tenant, kind, stream):
        return super().stream(tenant, kind, stream)[:1]


class Repeating(MemoryStore):
    """A store that writes an event twice."""

    def commit(self, lines):
        self._taken.clear()
        return super().commit(lines)


class Unordered(MemoryStore):
    """A store that gives its oldest snapshot first."""

    def snapshots(self):
        yield from self.saved

    def save(self, saved):
        self.saved += [saved._replace(digest=""), saved]


@pytest.mark.parametrize("kind", [Forgetful, Repeating, Unordered])
def test_a_store_that_does_not_is_noticed(kind):
    store = kind()
    with pytest.raises(ContractViolation):
        check_store(lambda: store)


def test_what_a_store_need_not_do_is_refused_in_a_sentence(tmp_path):
    with pytest.raises(Exception, match="a log in MemoryStore cannot be copied by superarm"):
        MemoryStore().backup(tmp_path / "copy")
