"""Learning the items of problems anew: fitted in a thread while decisions go on, then written as a version."""

import asyncio
import logging
from functools import partial

from msgspec.structs import replace

from superarm.items.counts import learn_answers
from superarm.items.latent import Items
from superarm.service.domain.events import Learnt
from superarm.service.domain.learnt import LearntItems
from superarm.service.domain.ledger import Key
from superarm.service.domain.problem import ProblemState
from superarm.service.errors import RequestError, invalid, unknown
from superarm.service.runtime.coordinator import Coordinator, now_ms
from superarm.service.storage.base import StoreUnavailable

log = logging.getLogger("superarm.learning")

LOOK_SECONDS = 0.5
"""How often it is looked whether items are due to be learnt."""


async def learn_regularly(coordinator: Coordinator) -> None:
    """Learn the items of each problem when they are due, as long as the process runs, one problem at a time."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        for key, state in list(coordinator.ledger.problems.items()):
            if state.learnt is None or not state.learnt.due:
                continue
            try:
                await learn_items(coordinator, key)
            except (RequestError, StoreUnavailable) as error:
                log.warning("items of problem %r could not be learnt now: %s", key[1], error)
            except Exception:
                log.exception("items of problem %r could not be learnt", key[1])


async def learn_items(coordinator: Coordinator, key: Key, by: str = "") -> bool:
    """Learn the items of a problem anew, and write them as a version; False if another one came in between."""

    def begin(state: ProblemState) -> tuple[int, partial[Items]]:
        learnt = learnt_of(state)
        told, version = list(learnt.counts.told.values()), len(learnt.versions)
        return version, partial(learn_answers, told, learnt.counts.items.arms, version + 1)

    version, learn = await coordinator.read(*key, begin)
    items = await asyncio.to_thread(learn)

    def plan(state: ProblemState) -> Learnt | None:
        learnt = learnt_of(state)
        return learnt.next_version(items, now_ms(), by) if len(learnt.versions) == version else None

    return await coordinator.change(*key, plan)


async def restore_items(coordinator: Coordinator, key: Key, version: int, by: str) -> bool:
    """The items of an earlier version, as a new one."""

    def plan(state: ProblemState) -> Learnt:
        learnt = learnt_of(state)
        if not 1 <= version <= len(learnt.versions):
            raise unknown("version", str(version))
        made = {"at": now_ms(), "version": len(learnt.versions) + 1, "n": len(learnt.counts.told), "by": by}
        return replace(learnt.versions[version - 1], **made, since=learnt.counts.since, of=version)

    return await coordinator.change(*key, plan)


def learnt_of(state: ProblemState) -> LearntItems:
    """The items that a problem learns, or 422."""
    if state.learnt is None:
        raise invalid("items", "those of this problem are given", 'create one with items: "learn"')
    return state.learnt
