"""What the service warns of in a shop: its log is replayed on the state of a problem."""

from collections import Counter
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from dev.benchmarks.warned import Played
from dev.earnings.contest import ServedShop
from dev.earnings.report import SEPARATOR
from dev.earnings.shops import Shop
from superarm.core.arrays import Floats, Ints
from superarm.decisions import open_record
from superarm.service.domain.events import Armed, Created
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.spec import PolicySpec, ProblemSpec, RewardSpec, Settings, complete, to_problem
from superarm.service.domain.warnings import list_warnings
from superarm.service.runtime.ask import plan_decision
from superarm.service.schemas import AskBody

VIEWS, LATE, BEGINNING = 5_000, 300, 40
"""So many views are replayed, each finished so many views later; warnings are told apart by their first letters."""

LONGEST = 1_000
"""The longest list that the service takes."""

REFIT = 50
"""After so many views the policy of the replay is asked, so that it learns what all products have in common."""


class Replayed(Played):
    """A problem of the service that sees the log of one draw of a shop; products come and go for good."""

    def __init__(self, shop: Shop, draw: int) -> None:
        self.shown, self.draw, self.phase = shop, draw, 0
        self.life = shop.for_sale[draw]
        here = np.flatnonzero(self.life[0])
        self.places = {int(arm): n for n, arm in enumerate(here)}
        settings = Settings(
            policy=PolicySpec(baseline=[f"product {arm}" for arm in shop.known_ranking[:LONGEST]]),
            at_window_end=0.0,
            window_s=3600.0,
        )
        reward = RewardSpec("coverage" if shop.kind.reaches else "linear")
        spec: Any = {"items": ["click"], "k": shop.kind.k, "reward": reward, "settings": settings}
        arms = [f"product {arm}" for arm in here]
        made = msgspec.convert({"arms": arms, **msgspec.to_builtins(spec)}, ProblemSpec)
        self.state = ProblemState(Created(0, complete(made, to_problem(made)), f"key {draw}"))

    def replay(self, log: list[tuple[int, Ints, Floats]]) -> list[str]:
        """The warnings after the views of a log."""
        waiting: list[Any] = []
        for t, (phase, slates, outcome) in enumerate(log[:VIEWS]):
            if phase != self.phase:
                self._renew(phase)
            if t % REFIT == 0:
                page = plan_decision(self.state, "p", f"d{t}", AskBody(id=f"d{t}"), "", t)
            action = tuple(self.places[int(arm)] for arm in slates[self.draw])
            asked = replace(page, id=f"d{t}", t=self.state.t, at=t, action=action, version=len(self.state.versions))
            record = open_record(asked)
            self.state.move(None, record)
            waiting.append((record, outcome[self.draw]))
            if t >= LATE:
                self.finish(*waiting[t - LATE])
        self.state.flush()
        return list_warnings(self.state)

    def _renew(self, phase: int) -> None:
        """Products that are there for the first time are added, those that never come back are retired."""
        come = np.flatnonzero(self.life[phase] & ~self.life[:phase].any(0))
        gone = np.flatnonzero(self.life[phase - 1] & ~self.life[phase:].any(0))
        for arm in come.tolist():
            self.places[arm] = len(self.places)
        if len(come) or len(gone):
            self.state.apply(Armed(0, [f"product {arm}" for arm in come], [self.places[int(arm)] for arm in gone]))
        self.phase = phase


def say(served: ServedShop, draws: int) -> str:
    """What the service warns of, and in how many of some draws."""
    warned: Counter[str] = Counter()
    words: dict[str, str] = {}
    for draw in range(min(draws, len(served.shop))):
        for line in Replayed(served.shop, draw).replay(served.log):
            key = "".join(letter for letter in line if not letter.isdigit())[:BEGINNING]
            words.setdefault(key, line)
            warned[key] += 1
    return SEPARATOR.join(f"{number} of {draws}: {words[key]}" for key, number in warned.most_common())
