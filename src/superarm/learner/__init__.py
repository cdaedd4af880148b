"""One problem being learnt: what ``Agent`` and the service have in common.

``learner`` holds :class:`Learner`; ``rounds`` says which round feedback counts for where the policy forgets; ``batch``
and ``context_batch`` choose several batches by one compiled call; ``growth`` adds arms and items to problems and
tallies; ``names`` maps the names of arms and items to their numbers; ``state`` turns learners and tallies into plain
data and back; ``contexts``, ``frames`` and ``pending_precision`` keep what contexts need; ``explanations`` tells
estimates and effects of features; ``other_policies`` says what another policy would choose.
"""

from superarm.learner.learner import Learner
from superarm.learner.names import Names

__all__ = ["Learner", "Names"]
