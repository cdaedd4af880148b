"""Publishing: the slates of a table, chosen at once from what is known now."""

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from superarm import tables
from superarm.agent.learner import Learner
from superarm.context.context import Contexts, EncodedContext
from superarm.context.models import Segments
from superarm.core.arrays import Ints, count
from superarm.core.errors import InvalidArgument
from superarm.core.tally import View
from superarm.policies.base import choose_batches
from superarm.tables import EVERYBODY, MAX_ROWS, Control, Table

AT_ONCE = 4_000_000
"""So many numbers of entries are looked at in one call of a policy."""

_NOTHING = np.zeros(0)


def publish(learner: Learner, key: int, rows: int, **said: Any) -> Table:
    """The table of what is known now; see ``Agent.publish``."""
    rows = count(rows, "rows", 1)
    if rows > MAX_ROWS or rows & (rows - 1):
        raise InvalidArgument("rows", f"{rows}", f"give a power of two, at most {MAX_ROWS}")
    pulls = learner.tally.pulls
    version = 1 + int(pulls.sum()) if said["version"] is None else count(said["version"], "version", 1)
    decisions = int(pulls.sum()) // learner.problem.k
    due = tables.lifetime(decisions)
    lives = due if said["lifetime"] is None else count(said["lifetime"], "lifetime", 1)
    if lives > due:
        wrong = f"{lives} decisions, after {decisions} that were learnt from"
        raise InvalidArgument("lifetime", wrong, f"give at most {due}: one that lives longer may lose money")
    names, segments = _segments(learner)
    learner = _up_to_date(learner)
    slates = {
        name: choose_rows(learner, np.random.SeedSequence([key, version, n]), rows, n) for n, name in enumerate(names)
    }
    if segments:
        slates[EVERYBODY] = _for_everybody(slates, pulls.sum(1))
    control = _control(learner, said["control"], said["present"])
    salt, arms = f"{said['problem']}.{version}", tuple(learner.arms.all)
    what = (said["problem"], version, salt, arms, learner.problem.k)
    return Table(*what, slates, segments, control, lives, said["expires"]).signed()


def _up_to_date(learner: Learner) -> Learner:
    """A learner whose memory has taken the fit that is due, as after its next decision."""
    plan = learner.memory.plan(learner.t + 1)
    if plan is None:
        return learner
    own = deepcopy(learner, {id(learner.problem): learner.problem})
    own.memory.accept(plan)
    return own


def _segments(learner: Learner) -> tuple[list[str], str]:
    """The names of the segments as events have them, and the features that make them."""
    context = learner.problem.context
    if context is None:
        return [EVERYBODY], ""
    if not isinstance(context.model, Segments) or context.pairs:
        wrong = "the problem's context is no segment"
        raise InvalidArgument("context", wrong, "cut the features into segments, or ask for each decision")
    by = list(context.model.names(context.features))
    if len(by) == 1 and EVERYBODY in context.features.levels[by[0]]:
        remedy = "give the level another name: a table has the slates of everybody else under it"
        raise InvalidArgument("context", f'feature {by[0]!r} has a level ""', remedy)
    return list(context.features.levels[by[0]]) if len(by) == 1 else context.segment_names, ", ".join(by)


def choose_rows(learner: Learner, seed: Any, rows: int, segment: int) -> list[list[int]]:
    """So many slates for the next decision of a segment.

    A policy that draws is asked once for all of them; another one row by row, each as if those before it were pending.
    """
    if not learner.policy.random:
        return _one_by_one(learner, seed, rows, segment)
    keys, size = seed.generate_state(rows, np.uint64), max(1, AT_ONCE // learner.problem.n_entries)
    parts = [_choose(learner, keys[n : n + size], segment) for n in range(0, rows, size)]
    return [[j for j in slate if j >= 0] for slate in np.concatenate(parts).tolist()]


def _choose(learner: Learner, keys: Any, segment: int) -> Ints:
    """A slate for each of some keys."""
    view = see(learner, keys, segment)
    found = choose_batches(learner.policy, learner.problem, view, learner.memory.at(view.t))
    if (found[:, :1] < 0).any():
        raise InvalidArgument("arms", "no batch can be formed", "retire fewer")
    return found


def see(learner: Learner, keys: Any, segment: int) -> View:
    """What a policy sees when it chooses for the next decision of a segment, once for each of some keys."""
    n, encoded = len(keys), _encoded(learner, segment)
    view = learner.view(learner.t + 1, keys, context=encoded)
    parts: dict[str, Any] = {name: np.repeat(getattr(view, name), n, 0) for name in ("counts", "eligible", "pinned")}
    if encoded is not None:
        clock = np.repeat(view.context.t, n)
        parts["context"] = Contexts.of([encoded] * n, clock, learner.problem.n_arms, view.context.frame)
    return replace(view, **parts)


def _one_by_one(learner: Learner, seed: Any, rows: int, segment: int) -> list[list[int]]:
    own, key, found = deepcopy(learner, {id(learner.problem): learner.problem}), seed.generate_state(1, np.uint64), []
    encoded = _encoded(learner, segment)
    for t in range(own.t + 1, own.t + 1 + rows):
        view = own.view(t, key, context=encoded)
        action = own.choose(view)
        if not len(action):
            raise InvalidArgument("arms", "no batch can be formed", "retire fewer")
        own.pend(action, t, own.weigh(view, action, encoded))
        found.append(action.tolist())
    return found


def _encoded(learner: Learner, segment: int) -> EncodedContext | None:
    return None if learner.contexts is None else EncodedContext(segment, _NOTHING, _NOTHING)


def _for_everybody(slates: dict[str, list[list[int]]], pulls: Any) -> list[list[int]]:
    """Rows for visitors of no known segment: those of "other", or of all segments by how many decisions they had."""
    if "other" in slates:
        return slates["other"]
    shares = np.cumsum(pulls + 1.0) / (pulls + 1.0).sum()
    rows = len(next(iter(slates.values())))
    own = np.searchsorted(shares, (np.arange(rows) + 0.5) / rows)
    return [list(slates.values())[s][n] for n, s in enumerate(own.tolist())]


def _control(learner: Learner, share: float, present: Any) -> Control:
    """The control slate: the arms that are shown at present, or those that the policy starts from."""
    listed = list(getattr(learner.policy, "baseline", ()))
    slate = listed[: learner.problem.k] if present is None else learner.arms.numbers(present).tolist()
    if not slate:
        if share:
            raise InvalidArgument("control", "nothing is known to be shown at present", "name its arms: present=[…]")
        return Control()
    if not 0.0 <= share <= 1.0:
        raise InvalidArgument("control", f"{share}", "give a share in [0, 1]")
    return Control(float(share), {EVERYBODY: [learner.problem.action(slate).tolist()]})
