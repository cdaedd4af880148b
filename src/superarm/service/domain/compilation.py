"""Choosing and learning once, so that all kernels are compiled before a request needs them."""

import numpy as np
from msgspec.structs import replace

from superarm import learner as library
from superarm.actions import Actions, Pinned, Subsets
from superarm.policies import Policy, prepare
from superarm.problem import Problem
from superarm.service.domain.decision import advance_record, open_record
from superarm.service.domain.events import ALL, Asked, Created, Told
from superarm.service.domain.problem import ProblemState
from superarm.service.domain.slate import joinable_arms
from superarm.service.domain.spec import ProblemSpec, to_problem
from superarm.streams import Stream


def compile_kernels(created: Created) -> None:
    """Choose and learn with the policy of a problem, on a small one where that is possible."""
    spec = created.spec
    small = _shrunk(spec)
    trial = ProblemState(replace(created, spec=small))
    learner = trial.learner
    learner.fitted = learner.policy.fit(to_problem(spec))  # a large problem may have one of its own
    learner.memory = prepare(learner.fitted, learner.problem, learner.tally)
    for t in (1, 2, 3):  # unsampled arms first, then by the index
        action = tuple(trial.choose([str(t)], ~trial.retired)[0])
        asked = Asked(0, "", str(t), "", t, action, len(small.items), 1, widths=trial.widths(action))
        trial.move(None, open_record(asked))
        trial.move(open_record(asked), advance_record(open_record(asked), Told(0, [(arm, ALL, 1.0) for arm in action])))
        trial.history.flush(trial.problem)
        trial.pending[:] += 1.0


def _shrunk(spec: ProblemSpec) -> ProblemSpec:
    if spec.actions is not None or spec.batches is not None or spec.support is not None or spec.reward.name == "spread":
        return spec
    return replace(spec, arms=spec.arms[: spec.k + 1], items=spec.items[:2], weights=None)


def compile_actions(problem: Problem, policy: Policy, actions: Actions) -> None:
    """Choose once with an action set, on a learner of its own."""
    everyone, key = np.ones(problem.n_arms, bool), np.zeros(1, np.uint64)
    library.Learner(problem, policy).choose(1, everyone, Stream(key, key.copy()), actions)
    if actions.matroid and not isinstance(actions, Subsets):
        joinable_arms(actions.actions if isinstance(actions, Pinned) else actions, [], everyone)
