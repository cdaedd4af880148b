r"""Latent classes of visitors, fitted to incomplete rows of answers by EM.

A visitor belongs to class c with probability :math:`w_c` (``shares``), and likes arm j with probability
:math:`p_{jc}`, independently of the other arms given the class. Each class has a level :math:`b_c`, by which it likes
everything more or less:

.. math:: p_{jc} \sim Beta(s\,C_{jc},\ s(1 - C_{jc})), \quad C_{jc} = \sigma(\operatorname{logit} m_j + b_c), \quad
          b_c \sim N(0, 1), \quad w \sim Dirichlet(2)

with the arm's own rate :math:`m_j`. Without the level, classes that only like everything more or less are found too
late, and what a slate is said to be worth is too much. EM is that of [DempsterLairdRubin1977]_.

Where features x of visitors are known, the shares depend on them, and are fitted in the same EM:
:math:`w_c(x) \propto e^{(1, x)\,\theta_c}`, :math:`\theta \sim N(0, 1)`, with x standardised.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from superarm.actions.base import Actions
from superarm.actions.subsets import Subsets
from superarm.core.arrays import Floats, Ints, floats
from superarm.core.errors import InvalidArgument
from superarm.core.numeric import decay, log, sigmoid
from superarm.core.tally import GRID, Tally, round_to_grid
from superarm.oracles import Default, solve
from superarm.output.table import ResultTable
from superarm.problem import Problem

CLASSES = (1, 2, 3, 4, 6, 8)
"""The numbers of classes that are compared."""
STRENGTH = 10.0
"""How many answers the prior of a rate counts for: 3, 30 and 100 gave worse slates or claims on MovieLens."""
HELD_OUT, MIN_Z = 0.2, 2.0
"""The share of units that decide on the number of classes, and by how many standard errors these must beat one."""
MIN_HELD_OUT = 10
"""With fewer held-out units there is one class: a standard error of so few is no measure."""
TOLERANCE = 1.0
"""Fewer classes are taken if they are within so many standard errors of the best number, on held-out units."""
MAX_PASSES, MIN_GAIN = 100, 1e-6
"""EM ends after so many passes, or when a pass gains less log likelihood per answer."""
EFFECT_STEPS = 3
"""How often the effects of features are moved in a pass: with one step they lag behind the classes."""
FEW_ROWS = 5_000
"""Below so many rows EM is started four times instead of twice, and the claim is shown with the crossed one."""
_EDGE = 1e-4


class Rows(NamedTuple):
    """Answers as two sparse matrices (units, arms): 1 where an arm was seen, and the mean answer.

    ``features`` (units, 1 + d) are a constant and standardised features, if there are any.
    """

    seen: Any
    answer: Any
    features: Floats | None = None

    def take(self, rows: Any) -> "Rows":
        """Some units."""
        return Rows(self.seen[rows], self.answer[rows], None if self.features is None else self.features[rows])

    @classmethod
    def of(cls, unit: Ints, arm: Ints, answer: Floats, n_arms: int) -> "Rows":
        """One row per unit; an arm that a unit saw several times counts once, with the mean answer."""
        shape = (int(unit.max(initial=-1)) + 1, n_arms)
        place, at = np.unique(unit * n_arms + arm, return_inverse=True)
        mean = np.bincount(at, answer) / np.bincount(at)
        pairs = (place // n_arms, place % n_arms)
        return cls(*(sparse.csr_matrix((values, pairs), shape) for values in (np.ones(len(place)), mean)))


class Fit(NamedTuple):
    """Shares (M,), rates (n_arms, M) and levels (M,) of classes, the log likelihood, and the effects of features.

    ``effects`` (1 + d, M) are those of ``Rows.features`` on the logarithms of the shares.
    """

    shares: Floats
    p: Floats
    level: Floats
    likelihood: float
    effects: Floats | None = None

    def log_shares(self, features: Floats | None) -> Floats:
        """The logarithms of the shares (M,), or of those of visitors with ``features``, (n, M)."""
        if features is None or self.effects is None:
            return np.log(self.shares)
        score = features @ self.effects
        score = score - score.max(axis=1, keepdims=True)
        return np.asarray(score - np.log(np.exp(score).sum(axis=1, keepdims=True)))


def arm_rates(rows: Rows) -> Floats:
    """The rate of each arm, shrunk towards the mean over arms: a policy shows good arms more, so shows do not count."""
    n, total = np.asarray(rows.seen.sum(0)).ravel(), np.asarray(rows.answer.sum(0)).ravel()
    trust, mean = n / (n + 4.0), total / np.maximum(n, 1.0)
    centre, often = (float(trust @ mean) + 0.5) / (float(trust.sum()) + 1.0), n >= 5.0
    strength = 4.0
    if often.sum() >= 5:
        noise = float((centre * (1.0 - centre) / n[often]).mean())
        spread = float(((mean[often] - centre) ** 2).mean()) - noise
        strength = float(np.clip(centre * (1.0 - centre) / max(spread, 1e-4) - 1.0, 2.0, 100.0))
    return np.clip((total + strength * centre) / (n + strength), 1e-3, 1.0 - 1e-3)


def log_likelihoods(rows: Rows, fit: Fit) -> tuple[Floats, Floats]:
    """The log likelihood of each unit (n,), and the probabilities of its classes given its answers (n, M)."""
    never = np.log1p(-fit.p)
    joint = fit.log_shares(rows.features) + rows.seen @ never + rows.answer @ (np.log(fit.p) - never)
    most = joint.max(axis=1, keepdims=True)
    weight = np.exp(joint - most)
    total = weight.sum(axis=1, keepdims=True)
    return (most + np.log(total))[:, 0], weight / total


def centres(rates: Floats, level: Floats) -> Floats:
    """The prior means of rates (n_arms, M): the arm's own rate moved by the level of the class."""
    return 1.0 / (1.0 + np.exp(-(np.log(rates / (1.0 - rates))[:, None] + level)))


def exact_centres(rates: Floats, level: Floats) -> Floats:
    """The same with the same bits on every machine, at ten times the price."""
    return np.asarray(sigmoid(log(rates / (1.0 - rates))[:, None] + level))


def fit_classes(rows: Rows, rates: Floats, strength: float, start: Fit) -> Fit:
    """Maximise the posterior density from ``start`` on, nearly: by EM, where the level moves by a Newton step a pass.

    The step of the level leaves out the prior of rates, and that of rates takes the mean of another one: the density
    can fall by about a thousandth in a pass.
    """
    fit, before = start, -np.inf
    step = None if rows.features is None or start.effects is None else _effect_step(rows.features)
    for done in range(MAX_PASSES):
        each, weight = log_likelihoods(rows, fit)
        total = float(each.sum())
        if total - before < MIN_GAIN * rows.seen.nnz and done > 10:
            break
        before = total
        n, s, centre = rows.seen.T @ weight, rows.answer.T @ weight, centres(rates, fit.level)
        slope, bend = (s - n * centre).sum(0) - fit.level, 1.0 + (n * centre * (1.0 - centre)).sum(0)
        level = fit.level + np.clip(slope / bend, -1.0, 1.0)
        p = np.clip((s + strength * centres(rates, level)) / (n + strength), _EDGE, 1.0 - _EDGE)
        shares, effects = weight.sum(0) + 1.0, fit.effects
        if step is not None and rows.features is not None:
            effects = _move_effects(rows.features, weight, fit, step)
        fit = Fit(shares / shares.sum(), p, level, before, effects)
    return fit._replace(likelihood=before)


def _effect_step(features: Floats) -> Floats:
    r"""What turns a gradient into a step that never overshoots: the inverse of a bound on the curvature.

    That of the log likelihood of multinomial regression is at most :math:`\frac12 X^T X` for each class [Bohning1992]_;
    the prior adds 1.
    """
    return np.asarray(np.linalg.inv(0.5 * features.T @ features + np.eye(features.shape[1])))


def _move_effects(features: Floats, weight: Floats, fit: Fit, step: Floats) -> Any:
    effects: Any = fit.effects
    for _ in range(EFFECT_STEPS):
        expected = np.exp(fit._replace(effects=effects).log_shares(features))
        effects = effects + step @ (features.T @ (weight - expected) - effects)
    return effects


def _start(rng: np.random.Generator, rates: Floats, classes: int, features: Floats | None) -> Fit:
    logit = np.log(rates / (1.0 - rates))[:, None]
    moved = logit + rng.standard_normal(classes) + 0.3 * rng.standard_normal((len(rates), classes))
    effects = None if features is None else np.zeros((features.shape[1], classes))
    return Fit(np.full(classes, 1.0 / classes), 1.0 / (1.0 + np.exp(-moved)), np.zeros(classes), -np.inf, effects)


def _one_class(rates: Floats) -> Fit:
    return Fit(np.ones(1), rates[:, None], np.zeros(1), -np.inf)


class Choice(NamedTuple):
    """The fit that was chosen on held-out units, its gain over one class in standard errors, and all gains."""

    fit: Fit
    z: float
    gains: dict[int, float]


def choose_classes(rows: Rows, classes: Sequence[int], strength: float, rng: np.random.Generator) -> Choice:
    """The fewest classes within a standard error of the best on held-out units, if they are clearly above one."""
    n = rows.seen.shape[0]
    held = rng.random(n) < HELD_OUT
    if held.sum() < MIN_HELD_OUT or held.all():
        return Choice(_one_class(arm_rates(rows)), 0.0, {1: 0.0})
    inside, outside = rows.take(np.flatnonzero(~held)), rows.take(np.flatnonzero(held))
    rates, times = arm_rates(inside), 4 if n < FEW_ROWS else 2
    one = _one_class(rates)
    found = {1: one}
    for m in sorted(set(classes) - {1}):
        tries = [fit_classes(inside, rates, strength, _start(rng, rates, m, rows.features)) for _ in range(times)]
        found[m] = max(tries, key=lambda fit: fit.likelihood)
    each = {m: log_likelihoods(outside, fit)[0] for m, fit in found.items()}
    gains = {m: float(own.mean() - each[1].mean()) for m, own in each.items()}
    best = max(gains, key=lambda m: gains[m])
    behind = {m: _mean_and_error(each[best] - each[m]) for m in sorted(found)}
    chosen = next(m for m, (mean, error) in behind.items() if mean <= TOLERANCE * error)
    z = 0.0
    if chosen > 1:
        gain, error = _mean_and_error(each[chosen] - each[1])
        z = gain / max(error, 1e-12)
    return Choice(found[chosen] if z > MIN_Z else one, z, gains)


def _mean_and_error(values: Floats) -> tuple[float, float]:
    return float(values.mean()), float(values.std()) / math.sqrt(max(1, len(values)))


@dataclass(frozen=True, repr=False)
class Items:
    """Items that were learnt from a log: classes of visitors, with their shares and what each of them likes.

    Attributes
    ----------
    shares
        The share of visitors in each class, (M,).
    p
        The probability with which a visitor of a class likes an arm, (n_arms, M).
    level, rates, strength
        The levels of the classes (M,), the arms' own rates (n_arms,), and how many answers the prior counts for.
    z
        The gain in the likelihood of held-out units over one class, in standard errors; 0 if one class was best.
    rows
        The answers that it was learnt from.
    arms
        The names of the arms.
    effects, scale
        How features change the shares (1 + d, M), and means and deviations of features (2, d); None without features.
    """

    shares: Floats
    p: Floats
    level: Floats
    rates: Floats
    strength: float
    z: float
    rows: Rows
    arms: tuple[str, ...]
    effects: Floats | None = None
    scale: Floats | None = None

    @property
    def n_classes(self) -> int:
        """How many classes there are; 1 if the log shows no groups."""
        return len(self.shares)

    @property
    def fit(self) -> Fit:
        """The parameters of the classes."""
        return Fit(self.shares, self.p, self.level, -np.inf, self.effects)

    def slate(self, actions: Actions | int, shares: Any = None) -> Ints:
        """The slate that is worth most, for all visitors together, or for one whose classes have ``shares``."""
        problem = Problem(items=self, actions=Subsets(actions) if isinstance(actions, int) else actions)
        return solve(problem if shares is None else problem.changed(weights=shares), self.p, Default())

    def worth(self, slate: Any, shares: Any = None) -> float:
        """The share of visitors who like at least one arm of ``slate``, as the model claims."""
        weights = self.shares if shares is None else shares
        return float(weights @ (1.0 - np.prod(1.0 - self.p[np.asarray(slate)], axis=0)))

    def crossed(self, actions: Actions | int, seed: int = 0) -> float:
        """What a slate of one half of the units is worth by the model of the other half; both ways, on average.

        The claim of a slate that was chosen by the same data is too high; this one is too low, by as many data as are
        missing. Below 5,000 rows show both.
        """
        rng, n = np.random.default_rng(seed), self.rows.seen.shape[0]
        half = rng.permutation(n) % 2 == 0
        models = [self._refitted(self.rows.take(np.flatnonzero(part))) for part in (half, ~half)]
        pairs = zip(models, reversed(models), strict=True)
        return float(np.mean([judge.worth(chooser.slate(actions)) for chooser, judge in pairs]))

    def _refitted(self, rows: Rows) -> "Items":
        rates = arm_rates(rows)
        fit = _one_class(rates) if self.n_classes == 1 else fit_classes(rows, rates, self.strength, self.fit)
        return replace(self, shares=fit.shares, p=fit.p, level=fit.level, rates=rates, rows=rows, effects=fit.effects)

    @cached_property
    def _logs(self) -> tuple[Floats, Floats, Floats]:
        """Logarithms of the shares and of the rates of likes and dislikes, (M,) and twice (n_arms, M), on the grid."""
        parts = (np.maximum(self.shares, 1.0 / GRID), self.p, 1.0 - self.p)
        return tuple(np.asarray(round_to_grid(log(part))) for part in parts)  # type: ignore[return-value]

    def posterior(self, arms: Any = (), answers: Any = (), features: Any = None) -> Floats:
        """The probabilities of a visitor's classes (M,), from what they answered, and from features if these are known.

        Without both, these are the shares. Multiples of 2^-24 whose sum is 1, with the same bits on every machine.
        """
        values, seen = floats(answers, "answers", low=0.0, high=1.0), np.asarray(arms, np.int64)
        given = None if features is None else floats(features, "features", low=-1e12, high=1e12)[None]
        return self.posteriors(np.zeros(len(seen), np.int64), seen, values, 1, given)[0]

    def posteriors(self, row: Ints, arm: Ints, answer: Floats, n: int, features: Floats | None = None) -> Floats:
        """The probabilities of the classes of ``n`` visitors, (n, M): ``row`` says whose an answer is.

        ``features`` are (n, d), NaN where they are not known.
        """
        prior, likes, dislikes = self._logs
        joint = np.tile(prior, (n, 1))
        if features is not None and self.scale is not None and self.effects is not None:
            if features.shape[1] != self.scale.shape[1]:
                raise InvalidArgument("features", f"{features.shape[1]} numbers", f"give {self.scale.shape[1]}")
            known = ~np.isnan(features).any(axis=1)
            x = (features[known] - self.scale[0]) / self.scale[1]
            joint[known] = round_to_grid(self.effects[0]) + round_to_grid(x[:, :, None] * self.effects[1:]).sum(axis=1)
        y = answer[:, None]
        np.add.at(joint, row, round_to_grid(y * likes[arm] + (1.0 - y) * dislikes[arm]))
        weight = round_to_grid(decay(joint.max(axis=1, keepdims=True) - joint))  # sums are exact, in any order
        share = np.floor(weight / weight.sum(axis=1, keepdims=True) * GRID) / GRID
        share[np.arange(n), share.argmax(axis=1)] += 1.0 - share.sum(axis=1)
        return np.asarray(share)

    def grown(self, arms: Sequence[str]) -> "Items":
        """The same classes with further arms, of which nothing is known: they have the mean rate of all arms."""
        more = len(arms) - len(self.p)
        mean = np.full(more, float(round_to_grid(self.rates).mean()))
        p = np.concatenate([self.p, np.clip(exact_centres(mean, self.level), _EDGE, 1.0 - _EDGE)])
        return replace(self, arms=tuple(arms), p=p, rates=np.concatenate([self.rates, mean])) if more else self

    @cached_property
    def tally(self) -> Tally:
        """Fractional answers of the log by class, with the prior: what a policy starts from."""
        weight = log_likelihoods(self.rows, self.fit)[1]
        n, s = self.rows.seen.T @ weight, self.rows.answer.T @ weight
        return prior_tally(self, n, s)

    def telling_arms(self, c: int, most: int = 5) -> list[str]:
        """The arms that tell a class from the others, by :math:`p_{jc} \\log(p_{jc} / m_j)`; the most telling first."""
        lift = self.p[:, c] * np.log(self.p[:, c] / self.rates)
        return [self.arms[j] for j in np.argsort(-lift)[:most]]

    def table(self, most: int = 5) -> ResultTable:
        """One row per class: its share, its mean rate, and the arms that tell it from the others."""
        rows = [
            {
                "class": str(c + 1),
                "share": float(self.shares[c]),
                "mean rate": float(self.p[:, c].mean()),
                "likes more than others": ", ".join(self.telling_arms(int(c), most)),
            }
            for c in np.argsort(-self.shares)
        ]
        return ResultTable(rows, f"{self.n_classes} classes of visitors")

    def __repr__(self) -> str:
        if self.n_classes == 1:
            return f"One item suffices: no groups found in {self.rows.seen.shape[0]} rows."
        head = f"{self.n_classes} groups of visitors in {self.rows.seen.shape[0]} rows (z = {self.z:.1f})"
        return f"{head}\n{self.table()}"


def prior_tally(items: Items, n: Floats, s: Floats) -> Tally:
    """A tally of ``n`` fractional answers with the sums ``s`` (n_arms, M), and the prior's own on top, on the grid."""
    problem = Problem(items=items, actions=Subsets(1))
    n = np.floor((n + items.strength) * GRID + 0.5) / GRID
    s = np.floor((s + items.strength * exact_centres(items.rates, items.level)) * GRID + 0.5) / GRID
    tally = Tally(problem.support, 1, partial=True)
    pulls = np.ceil(n.max(axis=1))
    tally.pulls[0], tally.total[0], tally.square[0], tally.missed[0] = pulls, s.T, s.T, pulls - n.T
    tally.refresh()
    return tally


def learn(
    log: Any,
    units: Any = None,
    classes: Sequence[int] | int = CLASSES,
    strength: float = STRENGTH,
    seed: int = 0,
    features: Any = None,
) -> Items:
    """Find classes of visitors in a log of slates, and what each class likes.

    Parameters
    ----------
    log
        A :class:`superarm.offline.Log` of a problem with one item: what was shown, and what was liked or clicked.
    units
        Who saw each round, (n_rounds,), as any labels: rounds of one visitor are one row. By default every round is a
        visitor of its own.
    classes
        The numbers of classes to compare, by the likelihood of held-out visitors, or the number itself.
    strength
        How many answers the prior of every rate counts for.
    seed
        Of the starts of EM, and of who is held out.
    features
        Numbers that are known of who saw each round, (n_rounds, d): ``items.posterior(features=x)`` then says which
        classes a new visitor may belong to.

    Examples
    --------
    >>> import superarm as sa
    >>> rng = np.random.default_rng(0)
    >>> taste = rng.integers(0, 2, 2000)  # two tastes: each likes its own half of ten films
    >>> slates = np.array([rng.choice(10, 4, replace=False) for _ in taste])
    >>> liked = rng.random((2000, 4)) < np.where(slates // 5 == taste[:, None], 0.6, 0.05)
    >>> log = sa.offline.Log.from_arrays(sa.Problem(10, 1, sa.Coverage(), sa.Subsets(4)), slates, liked)
    >>> items = learn(log)
    >>> sorted((items.slate(2) // 5).tolist())  # one film for each taste
    [0, 1]
    """
    if log.problem.n_items != 1:
        raise InvalidArgument("log", f"it has {log.problem.n_items} items", "give a log of one item: what was liked")
    rows, own = log.rows, log.rows.seen[:, 0]
    labels = np.arange(log.n_rounds) if units is None else np.unique(np.asarray(units), return_inverse=True)[1]
    if len(labels) != log.n_rounds:
        raise InvalidArgument("units", f"{len(labels)} labels", f"give one for each of {log.n_rounds} rounds")
    _, first, at = np.unique(labels[rows.round[own]], return_index=True, return_inverse=True)
    found = Rows.of(at, rows.arm[own], rows.outcome[own, 0], log.problem.n_arms)
    given = None
    if features is not None:
        given = floats(features, "features", low=-1e12, high=1e12)
        if given.ndim != 2 or len(given) != log.n_rounds:
            raise InvalidArgument("features", f"shape {given.shape}", f"give ({log.n_rounds}, d): one row per round")
        given = given[rows.round[own]][first]  # of a unit, those of its first round
    return learn_rows(found, (classes,) if isinstance(classes, int) else classes, strength, seed, log.arms, given)


def learn_rows(
    rows: Rows,
    classes: Sequence[int] = CLASSES,
    strength: float = STRENGTH,
    seed: int = 0,
    arms: Sequence[str] = (),
    features: Floats | None = None,
) -> Items:
    """``learn`` on rows of answers."""
    rng, rates, scale = np.random.default_rng(seed), arm_rates(rows), None
    names = tuple(arms) or tuple(map(str, range(rows.seen.shape[1])))
    if features is not None:
        spread = features.std(axis=0)
        scale = np.stack([features.mean(axis=0), np.where(spread > 0.0, spread, 1.0)])
        rows = rows._replace(features=np.column_stack([np.ones(len(features)), (features - scale[0]) / scale[1]]))
    if len(classes) == 1:
        tries = [fit_classes(rows, rates, strength, _start(rng, rates, classes[0], rows.features)) for _ in range(4)]
        fit, z = max(tries, key=lambda one: one.likelihood), math.nan
        fit = _one_class(rates) if classes[0] == 1 else fit
    else:
        chosen = choose_classes(rows, classes, strength, rng)
        fit, z = chosen.fit, chosen.z
        fit = _one_class(rates) if len(fit.shares) == 1 else fit_classes(rows, rates, strength, fit)
    return Items(fit.shares, fit.p, fit.level, rates, strength, z, rows, names, fit.effects, scale)
