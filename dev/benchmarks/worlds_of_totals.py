"""Ten worlds of which only totals of sets are seen, in most of which arms do not add up; each draw has its own truth.

They were written before the policy was tuned, and it was tuned on others. Random numbers of a draw follow from the
seed, the world and the draw, so that another seed gives fresh worlds.
"""

import itertools
import zlib
from functools import cached_property
from typing import Any

import numpy as np

from superarm.core.arrays import Floats
from superarm.core.streams import normal, shared_uniform, uniform
from superarm.environments import Answer, Environment

VISITORS, TESTED, SEGMENTS, PLACES = 2000, 20, 3, 80
Truth = dict[str, Any]


def sigmoid(x: Any) -> Any:
    """The inverse of the logit."""
    return 1.0 / (1.0 + np.exp(-x))


class World(Environment):
    """A world: replication r is a draw of its own. Subclasses say what is true, and what sets are worth."""

    seed: int = 911
    draws: int = 10
    totals = own_reward = True
    kind, n_arms, k, noise = "", 0, 0, 0.0

    def make(self, rng: np.random.Generator) -> Truth:
        """What is true in one draw."""
        raise NotImplementedError

    def value(self, rows: Any, sets: Any) -> Floats:
        """The expected totals (m,) of ``sets`` (m, k), padded with -1, in the draws ``rows`` (m,)."""
        return self.of_sets(np.asarray(rows), sets >= 0, np.maximum(sets, 0))

    def of_sets(self, rows: Any, there: Any, arms: Any) -> Floats:
        """The same, with sets as arms and whether they are ``there``."""
        raise NotImplementedError

    @cached_property
    def truth(self) -> Truth:
        """What is true, with a leading axis for draws."""
        root = zlib.crc32(self.kind.encode())
        made = [self.make(np.random.default_rng([self.seed, root, r])) for r in range(self.draws)]
        return {name: np.stack([one[name] for one in made]) for name in made[0]}

    def expected(self, problem: Any, action: Any, t: int) -> Floats:
        return self.value(np.arange(len(action)), action)

    def means(self, problem: Any, t: int) -> Floats:
        return np.zeros((1, 1, self.n_arms))

    def draw(self, problem: Any, action: Any, t: int, keys: Any) -> Answer:
        total = self.total(np.arange(len(action)), action, t, keys)
        return Answer(np.zeros((*action.shape, 1)), total=np.clip(total, 0.0, 1.0))

    def total(self, rows: Any, action: Any, t: int, keys: Any) -> Floats:
        """The totals of one round: a coin flip, unless the world has ``noise``."""
        value, u = self.value(rows, action), shared_uniform(keys, t, 64)[:, 0]
        return value + self.noise * normal(u) if self.noise else (u < value).astype(float)

    def reference(self) -> tuple[Floats, Floats]:
        """The mean of random sets, and the best set found by greedy and exchanges, of each draw."""
        found = [self._reference(r, np.random.default_rng([5, r])) for r in range(self.draws)]
        low, high = np.array(found).T
        return low, high

    def _reference(self, r: int, rng: np.random.Generator) -> tuple[float, float]:
        some = np.array([rng.permutation(self.n_arms)[: self.k] for _ in range(400)])
        worth, own = self.value(np.full(400, r), some), np.zeros((1, 0), np.int64)
        starts = [some[worth.argmax()], *some[: 2 if self.kind != "digits" else 0]]
        for _ in range(self.k):
            rest = np.setdiff1d(np.arange(self.n_arms), own)
            tried = np.concatenate([np.repeat(own, len(rest), 0), rest[:, None]], 1)
            own = tried[[self.value(np.full(len(tried), r), tried).argmax()]]
        return float(worth.mean()), max(self._climb(r, start.copy(), rng) for start in [own[0], *starts])

    def _climb(self, r: int, own: Any, rng: np.random.Generator) -> float:
        best, better = float(self.value([r], own[None])[0]), True
        while better:
            better = False
            for place in rng.permutation(len(own)):
                rest = np.setdiff1d(np.arange(self.n_arms), own)
                tried = np.repeat(own[None], len(rest), 0)
                tried[:, place] = rest
                worth = self.value(np.full(len(rest), r), tried)
                if worth.max() > best + 1e-12:
                    best, better, own = float(worth.max()), True, tried[worth.argmax()]
        return best


class Sum(World):
    """The mean of ten coin flips."""

    kind, n_arms, k = "sum", 100, 10

    def make(self, rng: np.random.Generator) -> Truth:
        n = self.n_arms
        return {"p": np.where(rng.random(n) < 0.7, rng.beta(2.0, 20.0, n), rng.beta(4.0, 8.0, n))}

    def of_sets(self, rows: Any, there: Any, arms: Any) -> Floats:
        return np.asarray(np.where(there, self.truth["p"][rows[:, None], arms], 0.0).sum(1) / self.k)

    def total(self, rows: Any, action: Any, t: int, keys: Any) -> Floats:
        arms = np.maximum(action, 0)
        hits = (uniform(keys, t, arms)[:, :, 0] < self.truth["p"][rows[:, None], arms]) & (action >= 0)
        return np.asarray(hits.sum(1) / self.k)


class Hidden(World):
    """Whether one of twelve hidden items is covered."""

    kind, n_arms, k = "hidden", 60, 6
    items, chance, most = 12, 2.0, 0.5

    def make(self, rng: np.random.Generator) -> Truth:
        n, items = self.n_arms, self.items
        p = rng.uniform(0.05, self.most, (n, items)) * (rng.random((n, items)) < self.chance / items)
        return {"p": p * rng.beta(1.0, 1.5, (n, 1)), "w": rng.dirichlet(np.full(items, 1.5))}

    def of_sets(self, rows: Any, there: Any, arms: Any) -> Floats:
        t = self.truth
        miss = np.prod(1.0 - np.where(there[:, :, None], t["p"][rows[:, None], arms], 0.0), 1)
        return np.asarray(((1.0 - miss) * t["w"][rows]).sum(1))


class Many(Hidden):
    """The same with 500 arms and forty items."""

    kind, n_arms, k = "many", 500, 20
    items, chance, most = 40, 3.0, 0.35


class Logit(World):
    """A coin flip whose logit is a sum."""

    kind, n_arms, k = "logit", 200, 8

    def make(self, rng: np.random.Generator) -> Truth:
        return {"b": np.array(np.log(0.08 / 0.92)), "beta": rng.normal(0.0, 0.35, self.n_arms)}

    def of_sets(self, rows: Any, there: Any, arms: Any) -> Floats:
        t = self.truth
        return np.asarray(sigmoid(t["b"][rows] + np.where(there, t["beta"][rows[:, None], arms], 0.0).sum(1)))


class Pairs(World):
    """A sum with strong, sparse interactions of pairs."""

    kind, n_arms, k, noise = "pairs", 30, 5, 0.1

    def make(self, rng: np.random.Generator) -> Truth:
        n = self.n_arms
        pair = np.triu(rng.normal(0.0, 0.12, (n, n)) * (rng.random((n, n)) < 0.15), 1)
        return {"b": np.array(0.25), "beta": rng.normal(0.0, 0.03, n), "pair": pair + pair.T}

    def of_sets(self, rows: Any, there: Any, arms: Any) -> Floats:
        t = self.truth
        out = t["b"][rows] + np.where(there, t["beta"][rows[:, None], arms], 0.0).sum(1)
        for i, j in itertools.combinations(range(arms.shape[1]), 2):
            out = out + np.where(there[:, i] & there[:, j], t["pair"][rows, arms[:, i], arms[:, j]], 0.0)
        return np.clip(out, 0.0, 1.0)


class Digits(World):
    """The accuracy of a 1-NN classifier with the chosen exemplars on twenty random digits of scikit-learn."""

    kind, n_arms, k = "digits", 200, 10

    def make(self, rng: np.random.Generator) -> Truth:
        from sklearn.datasets import load_digits  # type: ignore[import-untyped]

        data = load_digits()
        x, y = data.data / 16.0, data.target
        order = rng.permutation(len(x))
        arms, pool = order[: self.n_arms], order[self.n_arms :]
        distance = ((x[pool][:, None] - x[arms][None]) ** 2).sum(2).astype(np.float32)
        return {"distance": distance, "label": y[arms], "truth": y[pool]}

    def of_sets(self, rows: Any, there: Any, arms: Any) -> Floats:
        tests = slice(None)
        return np.array([self._right(r, own[here], tests) for r, own, here in zip(rows, arms, there, strict=True)])

    def total(self, rows: Any, action: Any, t: int, keys: Any) -> Floats:
        u = shared_uniform(keys, t, 64)[:, :TESTED]
        tests = (u * self.truth["truth"].shape[1]).astype(int)
        return np.array([self._right(r, own[own >= 0], tests[r]) for r, own in zip(rows, action, strict=True)])

    def _right(self, r: int, own: Any, tests: Any) -> float:
        t = self.truth
        nearest = own[t["distance"][r][tests][:, own].argmin(1)]
        return float((t["label"][r][nearest] == t["truth"][r][tests]).mean())


class Revenue(World):
    """The price of the one product that is bought: a mixed logit of three segments."""

    kind, n_arms, k = "revenue", 50, 5
    bend, shift = 1.5, 2.0

    def make(self, rng: np.random.Generator) -> Truth:
        n = self.n_arms
        taste = rng.normal(0.0, 0.8, (n, SEGMENTS)) + rng.normal(0.0, 0.6, (n, 1))
        price = rng.uniform(0.2, 1.0, n) if self.bend else np.ones(n)
        shares = rng.dirichlet([4.0, 3.0, 2.0])
        return {"v": np.exp(taste - self.bend * price[:, None] - self.shift), "price": price, "w": shares}

    def of_sets(self, rows: Any, there: Any, arms: Any) -> Floats:
        t = self.truth
        v = np.where(there[:, :, None], t["v"][rows[:, None], arms], 0.0)
        bought = v / (1.0 + v.sum(1, keepdims=True))
        return np.asarray(((bought * t["price"][rows[:, None], arms][:, :, None]).sum(1) * t["w"][rows]).sum(1))

    def total(self, rows: Any, action: Any, t: int, keys: Any) -> Floats:
        truth, u = self.truth, shared_uniform(keys, t, 64)
        there, arms = action >= 0, np.maximum(action, 0)
        segment = (u[:, :1] > np.cumsum(truth["w"], 1)[:, :-1]).sum(1)
        v = np.where(there, truth["v"][rows[:, None], arms, segment[:, None]], 0.0)
        sold = np.cumsum(v / (1.0 + v.sum(1, keepdims=True)), 1)
        price = np.concatenate([truth["price"][rows[:, None], arms], np.zeros((len(rows), 1))], 1)
        return np.asarray(price[rows, (u[:, 1:2] > sold).sum(1)])


class Page(Revenue):
    """One conversion of a page: the same without prices."""

    kind, n_arms, k = "page", 100, 4
    bend, shift = 0.0, 4.2

    def total(self, rows: Any, action: Any, t: int, keys: Any) -> Floats:
        return World.total(self, rows, action, t, keys)


class Tastes(World):
    """Whether a visitor with tastes of their own likes any of the films."""

    kind, n_arms, k = "tastes", 300, 8

    def make(self, rng: np.random.Generator) -> Truth:
        n = self.n_arms
        films = rng.normal(0.0, 0.7, (n, 6)) * (rng.random((n, 6)) < 0.5)
        centre = rng.normal(0.0, 1.2, (5, 6))
        people = centre[rng.choice(5, VISITORS, p=rng.dirichlet(np.full(5, 3.0)))]
        people = people + rng.normal(0.0, 0.5, (VISITORS, 6))
        return {"like": sigmoid(films @ people.T + rng.normal(-4.5, 0.5, (n, 1))).astype(np.float32)}

    def of_sets(self, rows: Any, there: Any, arms: Any) -> Floats:
        out = np.empty(len(rows))
        for part in np.array_split(np.arange(len(rows)), -(-len(rows) // 256)):
            miss = np.ones((len(part), VISITORS))
            for c in range(arms.shape[1]):
                miss *= np.where(there[part, c : c + 1], 1.0 - self.truth["like"][rows[part], arms[part, c]], 1.0)
            out[part] = 1.0 - miss.mean(1)
        return out


class Sensors(World):
    """How much of eighty places sensors reach."""

    kind, n_arms, k, noise = "sensors", 100, 10, 0.05

    def make(self, rng: np.random.Generator) -> Truth:
        places, where = rng.random((PLACES, 2)), rng.random((self.n_arms, 2))
        far = np.linalg.norm(where[:, None] - places[None], axis=2)
        reach = np.exp(-((far / rng.uniform(0.06, 0.2, (self.n_arms, 1))) ** 2))
        return {"reach": reach, "w": rng.dirichlet(np.full(PLACES, 0.8))}

    def of_sets(self, rows: Any, there: Any, arms: Any) -> Floats:
        seen = np.where(there[:, :, None], self.truth["reach"][rows[:, None], arms], 0.0)
        return np.asarray((seen.max(1) * self.truth["w"][rows]).sum(1))


WORLDS = {one.kind: one for one in (Sum, Hidden, Many, Logit, Pairs, Digits, Revenue, Page, Tastes, Sensors)}
