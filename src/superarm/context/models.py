"""Models: how the parameter of an entry depends on the context."""

from typing import TYPE_CHECKING, Any

from superarm.context.features import names_tuple, unknown
from superarm.core.component import Component
from superarm.core.errors import InvalidArgument

if TYPE_CHECKING:
    from superarm.context.features import Features

MAX_SHARED = 1024
"""The most coordinates of one parameter vector that all entries share."""

MAX_UNSHARED = 64
"""The most coordinates of a parameter vector of which every entry or every arm has its own."""

MAX_KEPT = 2**16
"""The most observations that a logistic model keeps for refits: sums over more would not be exact."""

MAX_SEGMENTS = 4096
"""The most segments of a ``Segments`` model."""

ENTRIES, ARMS, ALL = "entries", "arms", "all"


class Model(Component):
    """How the parameter of an entry depends on the context: a model of segments, or a regression."""

    intercept = True
    shared = ALL

    def validate(self, features: "Features", n_arm_features: int) -> None:
        """Refuse features that the model cannot use."""


class Segments(Model):
    """One tally per segment of users: every segment learns as an agent of its own does.

    The segments are the combinations of the levels of categorical features; without any, there is one. Features of arms
    say ``pooled_thompson`` what to expect of an arm, in all segments alike; other policies do not use them here.

    Parameters
    ----------
    by
        Names of the categorical features that make up the segments; all of them by default.
    pooling
        What other segments have observed of an arm counts as at most so many pulls. 0, the default, pools nothing:
        decisions are those of one agent per segment. With a larger number a new segment starts from what others like,
        and its own observations soon outweigh that.

    Examples
    --------
    >>> from superarm.context import Features
    >>> features = Features(categorical={"country": ["NO", "SE"], "device": ["phone", "other"]})
    >>> Segments().n_segments(features), Segments(by=["country"]).n_segments(features)
    (4, 2)
    """

    by: Any = ()
    pooling: float = 0.0

    def check(self) -> None:
        self.convert("by", names_tuple(self.by, "by"))
        self.require("pooling", self.pooling >= 0.0, "give a number >= 0")

    def names(self, features: "Features") -> list[str]:
        """The categorical features that make up the segments."""
        return list(self.by) or list(features.levels)

    def n_segments(self, features: "Features") -> int:
        """How many segments there are."""
        n = 1
        for name in self.names(features):
            n *= len(features.levels[name])
        return n

    def validate(self, features: "Features", n_arm_features: int) -> None:
        names = self.names(features)
        if not names and not n_arm_features:
            wrong, remedy = "there is no categorical feature", "declare one in Features, or give features of arms"
            raise InvalidArgument("by", wrong, remedy, "Segments")
        for name in names:
            if name not in features.levels:
                wrong = unknown(name, list(features.levels))
                raise InvalidArgument("by", wrong, "name categorical features", "Segments")
        if self.n_segments(features) > MAX_SEGMENTS:
            wrong = f"{self.n_segments(features)} segments"
            raise InvalidArgument("by", wrong, f"use at most {MAX_SEGMENTS}; name fewer features", "Segments")


class Regression(Model):
    """A model with parameter vectors, learnt by regression on the features of entries."""

    def check(self) -> None:
        given: Any = self.shared
        named = {False: ENTRIES, True: ALL}[given] if isinstance(given, bool) else given
        sharing = 'give False (one model per entry), "arms" (one per arm) or True'
        self.require("shared", named in (ENTRIES, ARMS, ALL), sharing)
        self.convert("shared", named)

    def validate(self, features: "Features", n_arm_features: int) -> None:
        if self.shared == ALL and not n_arm_features:
            wrong = "a model shared over all arms cannot tell them apart"
            raise InvalidArgument("arms", wrong, "give features of the arms, arms=Z", "Context")
        if features.standardised and not self.intercept:
            wrong = f"{features.standardised[0]!r} is standardised, which needs an intercept"
            raise InvalidArgument("intercept", wrong, "leave it True, or give the feature a range", type(self).__name__)


class LinearModel(Regression):
    r"""The parameter of an entry is linear in its features: :math:`p_{ij} = \langle\theta, \phi_{ij}\rangle`.

    Learnt by ridge regression, each observation weighted as the policy says.

    Parameters
    ----------
    shared
        Which entries have one :math:`\theta` in common: none (``False``), those of an arm (``"arms"``), or all
        (``True``), which needs features of the arms.
    intercept
        Whether there is a feature that is always 1.
    """

    shared: Any = False
    intercept: bool = True


class LogisticModel(Regression):
    r"""The log-odds of an entry are linear: :math:`p_{ij} = 1/(1 + e^{-o - \langle\theta, \phi_{ij}\rangle})`.

    Where all features of an entry are one-hot, the likelihood is exact (``superarm.logistic_kl_ucb``). Otherwise
    parameters are estimated by maximum likelihood with a ridge, and refitted when the trace of the information has
    doubled; in between, every observation enters by the quadratic approximation of its log-likelihood at the estimate
    of its decision. Differs from maximum likelihood: only the first ``kept`` observations take part in refits.

    Parameters
    ----------
    shared, intercept
        As in ``Linear``.
    prior_mean
        The mean that is expected before anything is observed; the offset o is its log-odds. A guess of the right order
        of magnitude makes the first approximations good.
    kept
        How many observations, those of the first rounds, are kept for refits, in 8 (n + 7) bytes each, where n is how
        many features user and pair have; 0 means no refits.
    """

    shared: Any = False
    intercept: bool = True
    prior_mean: float = 0.5
    kept: int = 16384

    def check(self) -> None:
        super().check()
        self.require("kept", 0 <= self.kept <= MAX_KEPT, f"give a number in 0 to {MAX_KEPT}")
        self.require("prior_mean", 0.0 < self.prior_mean < 1.0, "give a number inside (0, 1)")


Linear = LinearModel
Logistic = LogisticModel
