"""One problem as it stands: names, settings, counters, and the policy that reads them.

The kernels are the library's own: ``choose`` and ``learn``. A decision's randomness is a function of the problem's
key and the decision's id, so feedback may come in any order and be taken back exactly.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from superarm.actions import Ranks
from superarm.arrays import Bools, Floats
from superarm.intake import Exact
from superarm.learner.batch import choose_each
from superarm.learner.growth import tally_with_arms, tally_with_items, with_arms, with_items
from superarm.learner.names import Names
from superarm.noise import Noise
from superarm.policies import Moment, Policy, learn, prepare, traits
from superarm.problem import Problem
from superarm.service.events import UNSEEN, Armed, Asked, Changed, Created, Itemed, Told, Warmed
from superarm.service.history import History
from superarm.service.record import Record, Row, advanced, counted, opened, waiting
from superarm.service.spec import Settings, to_policy, to_problem
from superarm.tally import Feedback, Tally, allow_missing, empty, merge, record

MANY = 4_096
"""So many rows wait to be counted at most."""


class Learner:
    """The state of one problem; changed only by ``apply`` and ``move``."""

    def __init__(self, created: Created) -> None:
        self.created = created
        self.arms, self.items = Names(created.spec.arms, "arms"), Names(created.spec.items, "items")
        self.problem = to_problem(created.spec)
        self.versions: list[Settings] = [created.spec.settings]
        self.retired: Bools = np.zeros(self.problem.n_arms, bool)
        self.retired_items: set[int] = set()
        self.warmed: dict[str, str] = {}
        self.asked = 0
        self.step = 0
        self._tally = empty(self.problem.support)
        # Added first, then taken back: counts that are negative in between are outside of what policies can read.
        self._rows: dict[float, list[tuple[int, Row]]] = {1.0: [], -1.0: []}
        self.pending: Floats = np.zeros(self.problem.n_arms)
        self.in_flight: dict[int, tuple[int, ...]] = {}
        self.claimed = 0
        self.history = History()
        self._intakes: list[Any] = []
        self._settle()

    def _settle(self) -> None:
        """Derive from problem, settings and tally all that is derived."""
        self.k = self.problem.k
        self.policy: Policy = to_policy(self.settings.policy).fit(self.problem)
        self._intakes += [traits.intake(to_policy(version.policy)) for version in self.versions[len(self._intakes) :]]
        self.refresh()

    def refresh(self) -> None:
        """Bring what is derived from the tally up to one that was replaced."""
        self.rounds = int(self.tally.pulls.max())  # an arm has at most one pull a round: past outcomes tell the time
        self.memory: Any = prepare(self.policy, self.problem, self.tally)

    @property
    def tally(self) -> Tally:
        """The counters, with everything counted that is due."""
        self._flush()
        return self._tally

    @property
    def settings(self) -> Settings:
        return self.versions[-1]

    @property
    def t(self) -> int:
        """The round that the next decision belongs to."""
        return max(self.asked, self.claimed, self.rounds) + 1

    def choose(self, ids: Sequence[str], eligible: Bools) -> list[list[int]]:
        """The policy's slates for decisions made one after the other, each in the order of picking."""
        tally = self.tally
        pulls = tally.pulls + self.pending
        under_way = [j for action in self.in_flight.values() for j in action]
        np.add.at(pulls, np.array(under_way, np.int64), 1.0)
        moment = Moment(self.t, tally, Ranks(pulls, eligible))
        words = np.array([self._word("mind", id) for id in ids], np.uint64)
        batches = choose_each(self.policy, self.problem, moment, self.memory, words).tolist()
        return [batch if batch[-1] >= 0 else [j for j in batch if j >= 0] for batch in batches]

    def reserve(self, t: int, action: tuple[int, ...]) -> None:
        """A decision is on its way to the log: until it is there, its pulls are seen by further ones."""
        self.claimed = max(self.claimed, t)
        self.in_flight[t] = action

    def release(self, t: int) -> None:
        """The decision is in the log, or will never be."""
        del self.in_flight[t]

    def noise(self, stream: str, id: str) -> Noise:
        """The stream of chance that belongs to a decision."""
        word = np.array([self._word(stream, id)], np.uint64)
        return Noise(word, word.copy())

    def _word(self, stream: str, id: str) -> int:
        digest = hashlib.sha256(f"{self.created.key}/{stream}/{id}".encode()).digest()
        return int.from_bytes(digest[:8], "little")

    def apply(self, event: Any) -> None:
        """Take in one event of the problem's own."""
        self._flush()
        self.step += 1
        if isinstance(event, Changed):
            self.versions.append(event.settings)
        elif isinstance(event, Armed):
            self._rearm(event)
        elif isinstance(event, Itemed):
            self._reitem(event)
        elif isinstance(event, Warmed):
            self._warm(event)
        self._settle()

    def _rearm(self, event: Armed) -> None:
        if event.add:
            grown = with_arms(self.problem, len(event.add), None, None)
            self.arms.extend(event.add)
            self.retired = np.concatenate([self.retired, np.zeros(len(event.add), bool)])
            self.pending = np.concatenate([self.pending, np.zeros(len(event.add))])
            self._tally, self.problem = tally_with_arms(self.tally, self.problem, grown), grown
        self.retired[event.retire] = True

    def _reitem(self, event: Itemed) -> None:
        if event.add:
            grown = with_items(self.problem, event.weights)
            self.items.extend(event.add)
            self._tally, self.problem = tally_with_items(self.tally, self.problem, grown), grown
        if event.retire:
            self.retired_items |= set(event.retire)
            weights = self.problem.weights.copy()
            weights[event.retire] = 0.0
            same = self.problem
            self.problem = Problem(same.n_arms, same.n_items, same.reward, same.actions, weights)

    def _warm(self, event: Warmed) -> None:
        self.warmed[event.id] = event.body
        rows = np.array([[*row, *[UNSEEN] * (self.problem.n_items - len(row))] for row in event.rows], float)
        seen = rows != UNSEEN
        self._tally = merge(self.tally, self.problem.past(event.arms, np.where(seen, rows, 0.0), seen))

    def move(self, before: Record | None, after: Record) -> None:
        """A decision went from ``before`` to ``after``: counters follow, exactly."""
        if before is None:
            self.asked = max(self.asked, after.asked.t)
            _add(self.pending, after.action, 1.0)
            self.history.asked(after.asked.propensities, self.versions[after.asked.version - 1].explore)
            return
        self.history.moved(before, after, self.problem)
        _add(self.pending, waiting(before), -1.0)
        _add(self.pending, waiting(after), 1.0)
        old, new = counted(before), counted(after)
        if old != new:
            self._count(after, {arm: row for arm, row in old.items() if new.get(arm) != row}, -1.0)
            self._count(after, {arm: row for arm, row in new.items() if old.get(arm) != row}, 1.0)

    def _count(self, decision: Record, rows: dict[int, Row], sign: float) -> None:
        asked = decision.asked
        more = (UNSEEN,) * (self.problem.n_items - asked.n_items)  # items added since: of this pull they were not seen
        wide = [(arm, row + more) for arm, row in rows.items()]
        intake = self._intakes[asked.version - 1]
        if isinstance(intake, Exact) and isinstance(self._intakes[-1], Exact):
            self._rows[sign] += wide  # sums are exact: many decisions are counted by one call
            if len(self._rows[sign]) >= MANY:
                self._flush()
        elif wide:
            self._record(asked, wide, intake, sign)

    def _flush(self) -> None:
        for sign, rows in self._rows.items():
            if rows:
                self._rows[sign] = []
                self._record(None, rows, self._intakes[-1], sign)

    def _record(self, asked: Asked | None, rows: list[tuple[int, Row]], intake: Any, sign: float) -> None:
        values = np.array([row for _, row in rows], float).reshape(-1)
        seen = values != UNSEEN
        if not self._tally.missed.size and not seen.all():
            self._tally = allow_missing(self._tally)
        action = np.array([arm for arm, _ in rows], np.int64)
        feedback = Feedback(asked.t if asked else 0, action, np.where(seen, values, 0.0), seen)
        coin = self.noise("coin", asked.id if asked else "")
        if type(intake) is type(self._intakes[-1]):
            learn(self.policy, self.problem, self._tally, self.memory, feedback, coin, sign)
        else:  # asked for under a policy that wrote outcomes down otherwise
            record(self._tally, self.problem.support, feedback, intake, coin, sign)
            self.refresh()

    def restore(self, tally: Tally, pending: Floats, asked: int, history: History) -> None:
        """Take over counters from a snapshot."""
        self._tally, self.pending, self.asked, self.history = tally, pending, asked, history
        self.refresh()


def rehearse(created: Created) -> None:
    """Choose and learn on a small problem with the policy of the whole one, so that all kernels are compiled."""
    spec = created.spec
    arms = spec.arms if spec.batches is not None else spec.arms[: spec.k + 1]
    small = replace(spec, arms=arms, items=spec.items[:2], weights=None)
    trial = Learner(replace(created, spec=small))
    trial.policy = to_policy(spec.settings.policy).fit(to_problem(spec))  # a large problem may have one of its own
    trial.refresh()
    n_items = len(small.items)
    for t in (1, 2, 3):  # unsampled arms first, then by the index
        action = tuple(trial.choose([str(t)], ~trial.retired)[0])
        before = opened(Asked(0, "", str(t), "", t, action, n_items, 1))
        trial.move(None, before)
        units = [(arm, item, 1.0) for arm in action for item in range(n_items)]
        trial.move(before, advanced(before, Told(0, units)))
        trial.history.flush(trial.problem)
        trial.pending[:] += 1.0


def _add(counts: Floats, arms: tuple[int, ...], sign: float) -> None:
    for j in arms:  # for a handful of arms quicker than indexing with a list
        counts[j] += sign
