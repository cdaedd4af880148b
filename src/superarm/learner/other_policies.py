"""What another policy would choose, having seen what a learner has seen."""

from collections.abc import Iterable, Sequence

from superarm.actions import Actions
from superarm.arrays import Bools
from superarm.learner.learner import Learner
from superarm.policies import Policy, choose, prepare
from superarm.streams import Stream


def choose_by(
    learner: Learner,
    policy: Policy,
    t: int,
    eligible: Bools,
    streams: Iterable[Stream],
    actions: Actions | None = None,
    reserved: Sequence[int] = (),
) -> list[list[int]]:
    """The batches that ``policy`` chooses for round ``t`` from the learner's tally, one per stream, none pending.

    Arguments as those of ``Learner.choose``. The learner, its own policy included, is not changed. A policy that
    forgets sees the whole tally as one round.
    """
    task = learner.problem if actions is None else learner.problem._replace(actions=actions)
    fitted = policy.fit(task)
    current = learner.current_round(t, eligible, reserved=reserved)
    memory = prepare(fitted, task, current.tally)
    return [[int(j) for j in choose(fitted, task, current, memory, stream)] for stream in streams]
