"""Decisions with contexts that arrive together: one compiled call chooses their slates."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from superarm.context import EncodedContext
from superarm.service.domain.control import digest_unit
from superarm.service.domain.decision_contexts import ChosenInContexts
from superarm.service.domain.events import Asked
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import assign_slots
from superarm.service.runtime.planning import UNRESTRICTED, encode_context, find_items, find_slots, find_window
from superarm.service.schemas import AskBody


class ContextRequest(NamedTuple):
    """A request for a decision in a context that restricts nothing; what ``plan_decision`` takes."""

    id: str
    body: AskBody
    digest: str


def plan_in_contexts(
    learner: ProblemState, name: str, requests: Sequence[ContextRequest], now: int
) -> list[Asked | Exception] | None:
    """What ``plan_decision`` gives for each request, or its error; all decisions are reserved.

    None, and nothing is reserved, if one of them has no slate. Each decision is pending for the next, as if they were
    planned one by one. The mode is ``online``, without an exploration or a control share.
    """
    contexts = learner.contexts
    assert contexts is not None
    encoded = [_try_to_encode(learner, request.body) for request in requests]
    sound = [n for n, one in enumerate(encoded) if isinstance(one, EncodedContext)]
    planned: list[Asked | Exception] = [one for one in encoded if isinstance(one, Exception)]
    if not sound:
        return planned
    keys = np.array([learner.word("mind", requests[n].id) for n in sound], np.uint64)
    givens = [requests[n].body.context for n in sound]
    learner.flush()
    chosen = contexts.choose_each(learner.t, keys, [one for one in encoded if isinstance(one, EncodedContext)], givens)
    if not all(chosen.slates):
        return None
    events = _make_events(learner, name, [requests[n] for n in sound], now, chosen)
    contexts.take_pending(chosen.pending)
    for event in events:
        learner.reserve(event, counted=True)
    made, refused = iter(events), iter(planned)
    return [next(made) if isinstance(one, EncodedContext) else next(refused) for one in encoded]


def _try_to_encode(learner: ProblemState, body: AskBody) -> EncodedContext | Exception | None:
    try:
        return encode_context(learner, body)
    except Exception as error:
        return error


def _make_events(
    learner: ProblemState, name: str, requests: Sequence[ContextRequest], now: int, chosen: ChosenInContexts
) -> list[Asked]:
    first, names, seen = learner.t, learner.slot_names, dict(learner.seen)
    n_items, version, born, window = learner.problem.n_items, len(learner.versions), learner.born, find_window(learner)
    table, random = find_slots(learner, None, is_baseline=False), learner.is_random
    return [
        Asked(
            now,
            name,
            id,
            digest,
            first + n,
            action,
            n_items,
            version,
            window,
            body.deferred,
            propensities=None if random else (1.0,) * len(action),
            slots=assign_slots(names, table, action) if names else (),
            widths=learner.widths(action),
            items=find_items(learner, body),
            allowed=UNRESTRICTED,
            seen=seen,
            unit=digest_unit(learner, body.unit),
            context=stored,
            born=born,
        )
        for n, ((id, body, digest), action, stored) in enumerate(
            zip(requests, chosen.slates, chosen.stored, strict=True)
        )
    ]
