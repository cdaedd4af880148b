"""Instance: a problem with its environment; families of instances; and the named instances of the literature."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from superarm.actions import Explicit, Paths, Subsets
from superarm.core.arrays import Floats, count
from superarm.core.component import Component
from superarm.core.errors import InvalidArgument
from superarm.environments import (
    Bernoulli,
    Blocks,
    Cascade,
    Comonotone,
    DependentClick,
    Environment,
    FreeSamples,
    Scores,
    Switching,
    Totals,
)
from superarm.problem import Problem
from superarm.rewards import Coverage, Linear, Total
from superarm.thresholds import Thresholds


class Instance(Component):
    """A problem and the environment that generates its outcomes; policies see the problem only.

    >>> from superarm.environments import Bernoulli
    >>> problem = Problem(n_arms=3, n_items=1, reward=Coverage(), actions=Subsets(2))
    >>> instance = Instance(problem, Bernoulli([[0.1], [0.2], [0.3]]))
    >>> round(instance.value([1, 2]), 12)
    0.44
    """

    problem: Problem
    environment: Environment

    def check(self) -> None:
        self.require_family("problem", Problem, "Problem(...)")
        self.require_family("environment", Environment, "environments.Bernoulli(p)")
        if not self.problem.reward.additive and not self.environment.own_reward:
            wrong = f"it does not know what batches are worth, and {self.problem.reward!r} is no sum over items"
            raise InvalidArgument("environment", wrong, "give one with own_reward, as diffusion.IndependentCascade(p)")
        if self.environment.n_contexts and self.problem.context is None:
            wrong = "the environment has contexts and the problem none"
            raise InvalidArgument("problem", wrong, "give Problem(…, context=Context(…))")
        if self.problem.reward.totals != self.environment.totals:
            wrong = "its answers are totals of batches" if self.environment.totals else "it says what each arm did"
            remedy = (
                "declare reward=Total()" if self.environment.totals else "wrap it: environments.Totals(…, Coverage())"
            )
            raise InvalidArgument("environment", wrong, remedy)
        self.environment.validate(self.problem)

    def __repr__(self) -> str:
        return f"<Instance: {type(self.environment).__name__} outcomes on {self.problem!r}>"

    @cached_property
    def p(self) -> Floats:
        """The true parameters of the first round, (n_arms, n_items), or (n_entries,) if the problem is sparse."""
        return self.problem.support.to_user(self.environment.means(self.problem, 1)[0])

    def value(self, action: Any) -> float:
        """The expected reward of ``action``: r(action; p) at the true p, unless the environment defines its own."""
        return float(self.environment.expected(self.problem, self.problem.action(action)[None], 1)[0])

    def as_totals(self) -> "Instance":
        """The same instance, of which only totals are told: the realised reward of a batch, as a share of the most.

        >>> random_coverage(n_arms=6, n_items=4, k=2).as_totals().problem.reward
        Total()
        """
        own = self.problem
        environment = Totals(self.environment, own.reward, own.n_items, own.weights)
        return Instance(Problem(own.n_arms, reward=Total(), actions=own.actions), environment)


@dataclass(frozen=True, repr=False)
class InstanceFamily:
    """Instances of one generator that differ in their seed: the first has ``seed``, the next one ``seed + 1``.

    Made by :func:`family`. ``family[0]`` is an instance, ``len(family)`` the number of draws.
    """

    generator: Callable[..., Instance]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    draws: int = 50
    seed: int = 0

    def __len__(self) -> int:
        return self.draws

    def __getitem__(self, draw: int) -> Instance:
        if not 0 <= draw < self.draws:
            raise IndexError(f"the family has draws 0 to {self.draws - 1}")
        return self._instances[draw]

    def __iter__(self) -> Iterator[Instance]:
        return iter(self._instances)

    @cached_property
    def _instances(self) -> list[Instance]:
        return [self.generator(**self.parameters, seed=self.seed + draw) for draw in range(self.draws)]

    def __repr__(self) -> str:
        given = "".join(f"{key}={value!r}, " for key, value in self.parameters.items())
        return f"family({self.generator.__name__}, {given}draws={self.draws}, seed={self.seed})"


def family(generator: Callable[..., Instance], draws: int = 50, seed: int = 0, **parameters: Any) -> InstanceFamily:
    """Random instances that ``generator`` makes with ``parameters`` and a seed of its own for each draw.

    :func:`superarm.simulate` plays policies on all of them: means are over instances, and so are their intervals. If
    the generator draws from a prior, mean regret is the Bayesian regret.

    Parameters
    ----------
    generator
        A function with a parameter ``seed`` that returns an instance, such as ``instances.random_coverage``.
    draws, seed
        How many instances, and the seed of the first; the next ones have the seeds after it.
    parameters
        The other arguments of the generator.

    Examples
    --------
    >>> import superarm as sa
    >>> small = sa.instances.family(sa.instances.random_coverage, n_arms=8, n_items=3, k=2, draws=5)
    >>> results = sa.simulate(small, {"CTS": sa.cts()}, horizon=100, progress=False)
    >>> results.regret["CTS"].shape[0]
    5
    """
    if not callable(generator):
        raise InvalidArgument("generator", f"{generator!r} is not a function", "give e.g. instances.random_coverage")
    try:
        inspect.signature(generator).bind(seed=seed, **parameters)
    except TypeError as error:
        remedy = "give the parameters of a generator that has a seed"
        raise InvalidArgument("generator", f"{generator.__name__}: {error}", remedy) from None
    return InstanceFamily(generator, parameters, count(draws, "draws", 1), seed)


def random_coverage(
    n_arms: int = 100, n_items: int = 50, k: int = 10, low: float = 0.0, high: float = 0.3, seed: int = 0
) -> Instance:
    """Probabilistic maximum coverage with parameters drawn uniformly from [low, high], independent outcomes.

    >>> random_coverage(n_arms=6, n_items=4, k=2).problem.k
    2
    """
    p = np.random.default_rng(seed).uniform(low, high, (n_arms, n_items))
    return Instance(Problem(n_arms, n_items, Coverage(), Subsets(k)), Bernoulli(p))


def dependent_coverage(
    n_arms: int = 20,
    n_items: int = 10,
    k: int = 3,
    dependence: str = "independent",
    high: float = 0.3,
    weights: str = "equal",
    seed: int = 0,
) -> Instance:
    """Coverage with parameters drawn uniformly from [0, high], and items that depend on one another within each arm.

    Parameters
    ----------
    n_arms, n_items, k
        The size of the problem; all k-subsets may be played.
    dependence
        ``independent``; ``comonotone`` (one number per arm and round decides all items); ``half`` (every second arm is
        comonotone); ``blocks`` (of three items); ``opposed`` (two comonotone halves that move against each other);
        ``shock`` (one round in 1,000 is comonotone for the arm); ``rare`` (most of each mean is constant, the rest
        comes from outcomes of 1 with probability 0.02, for all items at once); ``leading`` (the first sixth of the
        items is comonotone, the others are independent).
    high
        The largest parameter.
    weights
        ``equal``; ``zipf``; ``heavy`` (the first sixth of the items weigh 1, the others 0.05); ``retired`` (the first
        sixth weigh 1, the others 0).
    seed
        The seed of the parameters.

    Examples
    --------
    >>> dependent_coverage(n_arms=4, n_items=3, k=2, dependence="half").environment.block.tolist()
    [[1, 1, 1], [0, 0, 0], [1, 1, 1], [0, 0, 0]]
    """
    mean, items = np.random.default_rng(seed).uniform(0.0, high, (n_arms, n_items)), np.arange(n_items)
    patterns = {
        "independent": np.zeros(n_items),
        "comonotone": np.ones(n_items),
        "half": np.ones(n_items),
        "blocks": 1 + items // 3,
        "opposed": np.where(items % 2, -1, 1),
        "shock": np.zeros(n_items),
        "rare": np.ones(n_items),
        "leading": items < max(1, n_items // 6),
    }
    loads = {
        "equal": np.ones(n_items),
        "zipf": 1.0 / (1.0 + items),
        "heavy": np.where(items < max(1, n_items // 6), 1.0, 0.05),
        "retired": np.where(items < max(1, n_items // 6), 1.0, 0.0),
    }
    for name, value, known in (("dependence", dependence, patterns), ("weights", weights, loads)):
        if value not in known:
            raise InvalidArgument(name, f"{value!r}", f"give one of {', '.join(known)}")
    block = np.tile(patterns[dependence], (n_arms, 1))
    if dependence == "half":
        block[1::2] = 0
    rare = np.minimum(mean, 0.02) if dependence == "rare" else mean
    shock = np.full(n_arms, 0.001 if dependence == "shock" else 0.0)
    problem = Problem(n_arms, n_items, Coverage(), Subsets(k), loads[weights])
    return Instance(problem, Blocks(rare, block, shock, (mean - rare) / (1.0 - rare)))


def many_items(n_items: int, n_arms: int = 4, gap: float = 0.02, dependence: str = "independent") -> Instance:
    """One arm per batch, ``n_items`` items of weight 1: the first arm has p = 1/2, the others 1/2 - gap.

    ``dependence`` is ``independent``, ``comonotone``, or ``shock``: one round in ten is comonotone for the arm. The gap
    between the arms' values is ``n_items * gap``. The comonotone instance is that of the paper's lower bound,
    [MerlisMannor2019]_ (section Lower Bounds), with k = 1.

    >>> round(many_items(16).value([0]) - many_items(16).value([1]), 12)
    0.32
    """
    if dependence not in ("independent", "comonotone", "shock"):
        raise InvalidArgument("dependence", f"{dependence!r}", "give independent, comonotone or shock")
    p = np.full((n_arms, n_items), 0.5 - gap)
    p[0] = 0.5
    block = np.full((n_arms, n_items), 1 if dependence == "comonotone" else 0)
    shock = np.full(n_arms, 0.1 if dependence == "shock" else 0.0)
    return Instance(Problem(n_arms, n_items, Coverage(), Subsets(1)), Blocks(p, block, shock))


def changing_coverage(
    n_arms: int = 20, n_items: int = 10, k: int = 3, phases: int = 4, every: int = 5000, seed: int = 0
) -> Instance:
    """Coverage whose parameters are drawn from [0, 0.3] in each of ``phases`` phases of ``every`` rounds.

    >>> changing_coverage(n_arms=4, n_items=2, k=2, phases=3, every=100).environment.changes(1000).tolist()
    [1, 101, 201]
    """
    p = np.random.default_rng(seed).uniform(0.0, 0.3, (phases, n_arms, n_items))
    environment = Switching(p, 1 + every * np.arange(phases))
    return Instance(Problem(n_arms, n_items, Coverage(), Subsets(k)), environment)


def disjoint_batches(k: int, c: float = 0.1, c_best: float = 1.6, suboptimal_arms: int = 128) -> Instance:
    r"""A family that shows the effect of the batch size: disjoint batches of ``k`` arms, one item, one best batch.

    Arms of the best batch (the last) have :math:`p = c_{best}/k`, all others :math:`p = c/k`, so that the expected
    number of hits in a batch, the gap and the sum over suboptimal arms in the regret bound hardly change with
    ``k``. ``k`` must divide ``suboptimal_arms``.

    >>> disjoint_batches(4).problem.n_arms
    132
    """
    if k < 1 or suboptimal_arms % k:
        raise InvalidArgument("k", f"{k} does not divide {suboptimal_arms}", "give a divisor of suboptimal_arms")
    n_arms = suboptimal_arms + k
    p = np.full((n_arms, 1), c / k)
    p[-k:] = c_best / k
    batches = np.arange(n_arms).reshape(-1, k)
    return Instance(Problem(n_arms, 1, Coverage(), Explicit(batches)), Bernoulli(p))


def constant_gap_batches(
    k: int, bad: float = 0.1, good: float = 0.5, bad_arms: int = 128, good_arms: int = 64
) -> Instance:
    r"""Disjoint batches of ``k`` arms, one item; the batch size changes neither the gap nor the share of good batches.

    A batch of good arms is worth ``good`` and one of bad arms ``bad``, whatever ``k``: every arm has
    :math:`p = 1 - (1 - value)^{1/k}`. The number of arms does not depend on ``k`` either, and uniform play has the same
    regret for every ``k``. What does depend on ``k``: a round shows ``k`` arms, so that fewer rounds show all of them.
    ``k`` must divide ``bad_arms`` and ``good_arms``.

    >>> [round(constant_gap_batches(k).value(range(k)), 12) for k in (1, 8, 64)]
    [0.1, 0.1, 0.1]
    """
    if k < 1 or bad_arms % k or good_arms % k:
        what = f"{k} does not divide {bad_arms} and {good_arms}"
        raise InvalidArgument("k", what, "give a divisor of bad_arms and good_arms")
    n_arms = bad_arms + good_arms
    p = 1.0 - (1.0 - np.repeat([bad, good], [bad_arms, good_arms])[:, None]) ** (1.0 / k)
    batches = np.arange(n_arms).reshape(-1, k)
    return Instance(Problem(n_arms, 1, Coverage(), Explicit(batches)), Bernoulli(p))


def rare_hits(k: int, n_arms: int = 100, seed: int = 0) -> Instance:
    r"""All ``k``-subsets of ``n_arms`` arms, one item, hits of probability about 1/k.

    :math:`p \sim U[2/(3k), 1/k]` for the ``k`` good arms, :math:`U[0, 1/(3k)]` for the others.

    >>> rare_hits(5).problem.n_items
    1
    """
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.0, 1.0 / (3.0 * k), n_arms)
    p[:k] = rng.uniform(2.0 / (3.0 * k), 1.0 / k, k)
    return Instance(Problem(n_arms, 1, Coverage(), Subsets(k)), Bernoulli(p[:, None]))


def cascade(n_arms: int = 16, k: int = 2, p: float = 0.2, gap: float = 0.15, free_samples: int = 1) -> Instance:
    r"""The synthetic cascade of the literature: ``k`` arms attract with probability ``p``, all others with ``p - gap``.

    B(L, K, p, Δ) of [KvetonEtAl2015]_ (section 5.1); the first ``k`` arms are the good ones. ``free_samples`` of every
    arm are observed before the first round: 1 in the literature, 0 to start without data. Regret is exact: the
    difference in the probability of a click between the best list and the one played.

    >>> round(cascade().value([0, 1]), 12), round(cascade().value([0, 2]), 12)
    (0.36, 0.24)
    """
    if not 1 <= k < n_arms:
        raise InvalidArgument("k", f"{k} of {n_arms} arms", "give 1 <= k < n_arms")
    if not 0.0 <= p - gap <= p <= 1.0:
        raise InvalidArgument("gap", f"{gap} at p = {p}", "give 0 <= gap <= p <= 1")
    attraction = np.full((n_arms, 1), p - gap)
    attraction[:k] = p
    environment = Cascade(attraction)
    problem = Problem(n_arms, 1, Coverage(), Subsets(k))
    return Instance(problem, FreeSamples(environment, free_samples) if free_samples else environment)


def best_of(arms: Any, k: int, low: float = 0.0, high: float = 1.0, bins: int = 20, rho: float = 0.0) -> Instance:
    """Batches of ``k`` arms that are worth the best of their scores, told on a scale from ``low`` to ``high``.

    ``arms`` and ``rho`` are those of ``environments.Scores``. Regret is against the true worth of the best batch.

    >>> bold = best_of([{"beta": [50, 50]}, {"beta": [0.4, 0.6]}, {"beta": [48, 52]}], k=2)
    >>> round(bold.value([0, 1]), 3), round(bold.value([0, 2]), 3)
    (0.614, 0.519)
    """
    arms = tuple(arms)
    problem = Problem(n_arms=len(arms), items=Thresholds(low, high, bins), actions=Subsets(k))
    return Instance(problem, Scores(arms, rho))


def dependent_clicks(
    n_arms: int = 16, k: int = 4, p: float = 0.2, gap: float = 0.15, leave: float = 0.8, free_samples: int = 1
) -> Instance:
    """As :func:`cascade`, but after a click the user leaves with probability ``leave`` and reads on otherwise.

    B(L, K, p, Δ, γ) of [KatariyaEtAl2016]_ (section 5.1): only clicks are logged.

    >>> round(dependent_clicks(leave=1.0).value(range(4)), 12) == round(cascade(k=4).value(range(4)), 12)
    True
    """
    plain = cascade(n_arms, k, p, gap, 0)
    clicks = DependentClick(plain.p, [leave] * k, "clicks")
    return Instance(plain.problem, FreeSamples(clicks, free_samples) if free_samples else clicks)


def top_arms(p: Any, k: int) -> Instance:
    """The ``k`` best of the arms with the means ``p``: independent Bernoulli outcomes that add up, multiple plays.

    >>> round(top_arms([0.7, 0.6, 0.5, 0.4, 0.3], 2).value([0, 1]), 12)
    1.3
    """
    means = np.array(p, float).reshape(-1, 1)
    return Instance(Problem(len(means), 1, Linear(), Subsets(k)), Bernoulli(means))


def grid_paths(m: int = 2, sigma: float = 0.8) -> Instance:
    """Paths from the upper left to the lower right corner of a grid of m × m squares, along 2m of 2m(m+1) edges.

    Edges on the left side and at the bottom have mean 1/2 + ``sigma``/2, all others 1/2 - ``sigma``/2; their Bernoulli
    outcomes add up. The instance of [KvetonEtAl2015c]_ (section 7).

    >>> grid_paths(3).problem.n_arms
    24
    """
    nodes = [(row, column) for row in range(m + 1) for column in range(m + 1)]
    right = [(row, column, row, column + 1, row == m) for row, column in nodes if column < m]
    down = [(row, column, row + 1, column, column == 0) for row, column in nodes if row < m]
    edges = [((m + 1) * a + b, (m + 1) * c + d) for a, b, c, d, _ in right + down]
    good = np.array([[edge[-1]] for edge in right + down])
    paths = Paths((m + 1) ** 2, edges, 0, (m + 1) ** 2 - 1)
    p = np.where(good, 0.5 + sigma / 2.0, 0.5 - sigma / 2.0)
    return Instance(Problem(len(edges), 1, Linear(), paths), Bernoulli(p))


def two_sets(n_arms: int = 10, low: float = 0.7, high: float = 0.9) -> Instance:
    """Two batches without a common arm: the arms of the first have mean ``low``, those of the second ``high``.

    Bernoulli outcomes add up. The instance on which Beta posteriors lock in, [ZhangCombes2024]_.

    >>> round(two_sets(10).value(range(5, 10)), 12)
    4.5
    """
    if n_arms < 2 or n_arms % 2:
        raise InvalidArgument("n_arms", f"{n_arms!r}", "give an even number of arms")
    p = np.repeat([[low], [high]], n_arms // 2, 0)
    return Instance(Problem(n_arms, 1, Linear(), Explicit(np.arange(n_arms).reshape(2, -1))), Bernoulli(p))


def lower_bound(n_arms: int, k: int, n_items: int = 1, epsilon: float = 0.1) -> Instance:
    r"""The instance of the paper's lower bound: a Bernoulli bandit written as a coverage problem.

    Arms 0 to k-2 cover nothing; batch :math:`A_j` consists of them and one further arm, whose items are
    identical. The last arm has :math:`p = 1/2`, the others :math:`1/2 - \epsilon`. Implements
    [MerlisMannor2019]_ (section Lower Bounds).

    >>> lower_bound(5, 3).problem.actions.table.tolist()
    [[0, 1, 2], [0, 1, 3], [0, 1, 4]]
    """
    if not 1 <= k < n_arms:
        raise InvalidArgument("k", f"{k} of {n_arms} arms", "give 1 <= k < n_arms")
    if not 0.0 < epsilon <= 0.5:
        raise InvalidArgument("epsilon", f"{epsilon}", "give a number in (0, 1/2]")
    p = np.full((n_arms, n_items), 0.5 - epsilon)
    p[: k - 1] = 0.0
    p[-1] = 0.5
    batches = [[*range(k - 1), j] for j in range(k - 1, n_arms)]
    return Instance(Problem(n_arms, n_items, Coverage(), Explicit(batches)), Comonotone(p))
