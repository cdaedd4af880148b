"""Synthetic instances of applications: recommendation, advertising, monitoring, sensors and influence.

Weights are in percent, so that the value of a batch is a percentage: of users reached, of traffic heard.
"""

import numpy as np
from scipy.sparse import csr_array

from superarm.actions import Subsets
from superarm.core.arrays import Floats
from superarm.core.errors import InvalidArgument
from superarm.environments import Bernoulli, Copula
from superarm.problem import Problem
from superarm.rewards import Coverage
from superarm.simulation.instances import Instance


def recommendation(n_films: int = 60, n_tastes: int = 12, k: int = 6, seed: int = 0) -> Instance:
    """Diverse recommendation: films are arms, tastes are items, weights are the shares of users of each taste.

    ``p[j, i]`` is the chance that a user of taste ``i`` likes film ``j``: each film suits one to three tastes.

    >>> float(recommendation().problem.weights.sum())
    100.0
    """
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.0, 0.04, (n_films, n_tastes))
    for row in p:
        suited = rng.choice(n_tastes, rng.integers(1, min(4, n_tastes + 1)), replace=False)
        row[suited] = rng.uniform(0.1, 0.6, len(suited))
    return _coverage_instance(p, _zipf(n_tastes), k)


def ads(n_places: int = 80, n_segments: int = 15, k: int = 5, seed: int = 0) -> Instance:
    """Ad placement: places on pages are arms, segments of visitors are items, weights are the worth of a segment.

    ``p[j, i]`` is the chance that a visitor of segment ``i`` comes by place ``j`` in a day: a page's popularity times
    the segment's interest in it.

    >>> ads(n_places=8, n_segments=3, k=2).problem.k
    2
    """
    rng = np.random.default_rng(seed)
    popularity = rng.beta(1.0, 6.0, (n_places, 1))
    interest = rng.gamma(0.5, 2.0, (n_places, n_segments))
    value = rng.lognormal(0.0, 0.7, n_segments)
    return _coverage_instance(np.clip(popularity * interest, 0.0, 0.95), value / value.sum(), k)


def channels(n_channels: int = 40, n_senders: int = 20, k: int = 4, hops: int = 3, seed: int = 0) -> Instance:
    """Channel monitoring: radio channels are arms, senders are items, weights are their shares of the traffic.

    ``p[j, i]`` is the chance that sender ``i`` transmits on channel ``j`` while it is listened to; every sender hops
    over ``hops`` channels that it prefers. A receiver listens to ``k`` channels at a time.

    >>> channels().problem.n_arms
    40
    """
    if not 1 <= hops <= n_channels:
        raise InvalidArgument("hops", f"{hops} of {n_channels} channels", "give 1 <= hops <= n_channels")
    rng = np.random.default_rng(seed)
    p = np.zeros((n_channels, n_senders))
    popularity = _zipf(n_channels)  # some channels are crowded
    for i in range(n_senders):
        preferred = rng.choice(n_channels, hops, replace=False, p=popularity)
        p[preferred, i] = rng.dirichlet(np.ones(hops)) * rng.uniform(0.2, 0.9)
    return _coverage_instance(p, _zipf(n_senders), k)


def sensors(
    side: int = 8, n_events: int = 30, k: int = 5, reach: float = 1.5, weather: float = 0.3, seed: int = 0
) -> Instance:
    """Sensor placement: the places of a ``side`` x ``side`` grid are arms, events are items, weights are their harm.

    ``p[j, i]`` is the chance that a sensor at place ``j`` detects event ``i``, which falls with distance over
    ``reach``. ``weather`` is how much the detections of one event depend on one another.

    >>> sensors(side=3).problem.n_arms
    9
    """
    rng = np.random.default_rng(seed)
    cells = np.array([(x, y) for x in range(side) for y in range(side)], float)
    events = rng.uniform(0.0, side - 1.0, (n_events, 2))
    distance = np.linalg.norm(cells[:, None] - events[None], axis=2)
    p = 0.9 * np.exp(-0.5 * (distance / reach) ** 2)
    harm = rng.exponential(1.0, n_events)
    problem = Problem(len(p), n_events, Coverage(), Subsets(k), weights=100.0 * harm / harm.sum())
    return Instance(problem, Copula(p, arms=weather))


def seeding(n_seeds: int = 60, n_people: int = 300, k: int = 5, friends: int = 12, seed: int = 0) -> Instance:
    """Influence seeding: candidate seeds are arms, people are items, all with the same weight.

    ``p[j, i]`` is the chance that seed ``j`` convinces person ``i`` directly. Seeds know ``friends`` people on average,
    a few know many, as in social networks; people whom a seed does not know are not in its support and cost nothing.

    >>> seeding(n_seeds=5, n_people=20, friends=4).problem.n_entries < 5 * 20
    True
    """
    rng = np.random.default_rng(seed)
    degree = np.clip(np.rint(friends * 0.5 * (1.0 + rng.pareto(2.0, n_seeds))), 1, n_people).astype(int)
    fame = _zipf(n_people)
    rows = [np.sort(rng.choice(n_people, d, replace=False, p=fame)) for d in degree]
    chance = [rng.beta(1.0, 5.0, d) for d in degree]
    start = np.concatenate([[0], np.cumsum(degree)])
    known = csr_array((np.concatenate(chance), np.concatenate(rows), start), shape=(n_seeds, n_people))
    weights = np.full(n_people, 100.0 / n_people)
    return Instance(Problem(n_seeds, n_people, Coverage(), Subsets(k), weights, support=known), Bernoulli(known))


def _coverage_instance(p: Floats, shares: Floats, k: int) -> Instance:
    n_arms, n_items = p.shape
    return Instance(Problem(n_arms, n_items, Coverage(), Subsets(k), weights=100.0 * shares), Bernoulli(p))


def _zipf(n: int) -> Floats:
    """Shares that fall like 1 / sqrt(rank)."""
    raw = 1.0 / np.sqrt(np.arange(1.0, n + 1.0))
    return np.asarray(raw / raw.sum())
