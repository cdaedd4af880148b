"""The load of the crash harness: clients that ask, tell, change the problem, and remember what was acknowledged."""

import asyncio
import random
from collections import Counter
from typing import Any, NamedTuple

import httpx

ARMS, ITEMS, K = 6, 2, 2
VALUES = (0.0, 0.25, 0.5, 1.0)
ENDS = ("ignore", 0.0, 0.5)


class Subject(NamedTuple):
    """A problem that clients use: its policies, its context if it has one, and how many clients there are.

    ``learns`` says that it learns its items.
    """

    name: str
    policies: tuple[str, ...] = ("bc_ucb", "kl_ucb", "cucb")
    context: dict[str, Any] | None = None
    n_clients: int = 4
    learns: bool = False

    @property
    def items(self) -> list[str]:
        """The items of feedback."""
        return ["value"] if self.learns else [f"i{i}" for i in range(ITEMS)]


CONTEXT = {
    "features": {"numeric": {"age": [0, 100], "basket": None}, "categorical": {"country": ["NO", "SE"]}},
    "model": {"name": "linear"},
}
SUBJECTS = (
    Subject("p"),
    Subject("c", ("c2_ucb", "vac2_ucb"), CONTEXT, 2),
    Subject("l", ("kl_moss", "kl_ucb"), None, 2, learns=True),
)
"""A problem without contexts, one with a regression whose standardised feature changes its scale, one that learns."""


class Stopped(Exception):
    """The round is over."""


class Acknowledged:
    """What was sent, and what was answered."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.asked: dict[str, list[str]] = {}
        self.told: dict[str, list[tuple[str, str, float]]] = {}
        self.late: set[str] = set()
        self.added: set[str] = set()
        self.retired: set[str] = set()
        self.versions: dict[int, dict[str, Any]] = {}
        self.refused: Counter[str] = Counter()  # how often 503 was answered, by its words
        self.learnt = 0
        self.seen: Counter = Counter()


class Client:
    """One client of a round. It repeats what was not answered, under the same id, until ``over`` is set."""

    def __init__(
        self, http: httpx.AsyncClient, book: Acknowledged, rng: random.Random, over: asyncio.Event, subject: Subject
    ) -> None:
        self._http, self._book, self._rng, self._over, self._subject = http, book, rng, over, subject
        self._path = f"/v1/problems/{subject.name}"

    async def run(self) -> None:
        """Ask and tell until the round is over."""
        try:
            while True:
                if self._rng.random() < 0.06:
                    changes = (self._add, self._retire, self._change, *[self._learn] * 3 * self._subject.learns)
                    await self._rng.choice(changes)()
                else:
                    await self._decide()
        except Stopped:
            return

    async def _send(self, method: str, path: str, body: Any, expected: tuple[int, ...] = (200,)) -> Any:
        while not self._over.is_set():
            try:
                reply = await self._http.request(method, path, json=body)
            except httpx.TransportError:
                await asyncio.sleep(0.05)
                continue
            if reply.status_code in (502, 503, 504):
                assert reply.status_code != 503 or reply.headers["retry-after"], reply.text
                if "starting" not in reply.text:  # of several workers, one may come later
                    self._book.refused[reply.text] += 1
                await asyncio.sleep(0.1)
                continue
            assert reply.status_code in expected, (method, path, body, reply.status_code, reply.text)
            return reply.json()
        raise Stopped

    def _request(self, id: str) -> tuple[dict[str, Any], list[str]]:
        """The request for a decision, and the items that it is about: sometimes one only."""
        rng, items = self._rng, self._subject.items
        asked: dict[str, Any] = {"id": id}
        if self._subject.learns:
            asked["unit"] = f"u{rng.randrange(400)}"
        elif rng.random() < 0.25:
            items = asked["items"] = [rng.choice(items)]
        if self._subject.context is not None:
            asked["context"] = {
                "age": rng.randint(0, 100),
                "basket": rng.expovariate(0.01),
                "country": rng.choice(("NO", "SE")),
            }
        return asked, items

    async def _decide(self) -> None:
        book, rng = self._book, self._rng
        id = f"d{rng.getrandbits(60):x}"
        book.sent.add(id)
        asked, items = self._request(id)
        reply = await self._send("POST", f"{self._path}/decisions", asked, (201, 200))
        arms = book.asked[id] = reply["arms"]
        if rng.random() < 0.2:
            return  # nothing is ever told: its window ends
        units = [(arm, item, rng.choice(VALUES)) for arm in arms for item in items]
        if self._subject.learns and rng.random() < 0.9:  # of two tastes
            units = [(arm, item, float((int(asked["unit"][1:]) + int(arm[1:], 16)) % 2)) for arm, item, _ in units]
        body = {"feedback": [{"arm": a, "item": i, "value": v} for a, i, v in units]}
        if rng.random() < 0.1:
            await asyncio.sleep(rng.uniform(0.0, 0.6))  # perhaps after the window
        for n in range(rng.choice((1, 1, 2))):  # sometimes twice: it must count once
            reply = await self._send("POST", f"{self._path}/decisions/{id}/feedback", body)
            book.seen["repeats"] += n
            if reply["late"]:
                book.late.add(id)
            else:
                book.told[id] = units

    async def _add(self) -> None:
        arm = f"b{self._rng.getrandbits(40):x}"
        await self._send("POST", f"{self._path}/arms", {"add": [arm]})
        self._book.added.add(arm)
        self._book.seen["arms added"] += 1

    async def _retire(self) -> None:
        if self._book.added:
            arm = self._rng.choice(sorted(self._book.added))
            await self._send("POST", f"{self._path}/arms", {"retire": [arm]})
            self._book.retired.add(arm)
            self._book.seen["arms retired"] += 1

    async def _change(self) -> None:
        rng = self._rng
        change: dict[str, Any] = {
            "policy": {"name": rng.choice(self._subject.policies)},
            "explore": rng.choice((0.0, 0.25)),
        }
        change |= {"window_s": rng.choice((0.2, 0.5, 3600.0)), "at_window_end": rng.choice(ENDS)}
        reply = await self._send("PATCH", f"{self._path}/settings", change)
        self._book.versions[reply["version"]] = reply["settings"]
        self._book.seen["settings changed"] += 1

    async def _learn(self) -> None:
        known, goes_back = self._book.learnt, self._rng.random() < 0.3
        wanted = {"version": self._rng.randint(1, known)} if known and goes_back else {}
        reply = await self._send("POST", f"{self._path}/items/learn", wanted)
        self._book.learnt = max(self._book.learnt, len(reply["versions"]))
        self._book.seen[f"items with {min(2, len(reply['classes']))} groups"] += 1


async def load(url: str, books: dict[str, Acknowledged], rng: random.Random, over: asyncio.Event) -> None:
    """Clients at work until ``over`` is set; an ``AssertionError`` if the service answered what it must not."""
    users = [subject for subject in SUBJECTS for _ in range(subject.n_clients)]
    limits = httpx.Limits(max_connections=len(users), max_keepalive_connections=len(users))
    async with httpx.AsyncClient(base_url=url, timeout=20.0, limits=limits) as http:
        await asyncio.gather(*(Client(http, books[user.name], rng, over, user).run() for user in users))
