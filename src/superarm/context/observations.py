"""What a policy sees and learns from when decisions have a context."""

from typing import Any, NamedTuple

from superarm.arrays import Bools, Floats, Ints
from superarm.candidates import Candidates
from superarm.context.context import EncodedContext


class ContextTally(NamedTuple):
    r"""The tally of a problem with a regression model: counts as in ``Tally``, and the sums of the regression.

    Parameters
    ----------
    pulls, total, square, missed, joint, reference, moments, products
        As in :class:`superarm.tally.Tally`, over all contexts.
    precision
        :math:`\sum w\,\phi\phi^\top` of each parameter vector, (n_groups, d (d + 1) / 2): its lower triangle by rows.
    response
        :math:`\sum w\,\phi X`, (n_groups, d).
    """

    pulls: Floats
    total: Floats
    square: Floats
    missed: Floats
    joint: Floats
    reference: Floats
    moments: Floats
    products: Floats
    precision: Floats
    response: Floats


class ContextRound(NamedTuple):
    """What a policy sees when it chooses for a context: as :class:`superarm.policies.Round`, with the context.

    With a model of segments, ``t`` counts the decisions of the segment, ``tally`` holds all segments one after the
    other, and the counts of ``candidates`` are those of the segment. ``pending`` is the precision of decisions without
    feedback, in the shape of ``ContextTally.precision``, or empty. ``round`` counts the decisions of all segments.
    """

    t: int
    tally: Any  # Tally or ContextTally
    candidates: Candidates
    context: EncodedContext
    pending: Floats
    round: int


class ContextFeedback(NamedTuple):
    """Feedback to a decision with a context: as :class:`superarm.tally.Feedback`, with the context of the decision.

    ``weights`` are those of the observations in the sums of a regression, in the order of ``outcome``; they were fixed
    when the decision was made, and an observation of weight 0 does not enter the sums. For a logistic model ``shifts``
    are added to the outcomes, where a linear one multiplies them by the weight; empty for other models.
    """

    t: int
    action: Ints
    outcome: Floats
    seen: Bools
    context: EncodedContext
    weights: Floats
    shifts: Floats
