"""The precision of pending decisions: added late, and the same as if it was added at once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import superarm as sa
from superarm.context.sums import add_precision
from superarm.learner import pending_precision
from superarm.learner.pending_precision import PendingPrecision

N_ARMS, N_ITEMS, D = 6, 2, 3


def make_agent(shared):
    arms = np.linspace(-1, 1, N_ARMS)[:, None] if shared is True else None
    context = sa.Context(sa.Features(d=D), arms=arms, model=sa.models.Linear(shared=shared))
    problem = sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(2), context=context)
    return sa.Agent(problem, sa.vac2_ucb(0.01), seed=1)


def sum_pending(agent):
    """The sum over the pending decisions of an agent, one after the other."""
    learner, contexts = agent.learner, agent.learner.contexts
    total = np.zeros_like(learner.tally.precision)
    for entry in agent._decisions.pending.values():
        made, action = entry.context, entry.decision.action.copy()
        seen = np.ones(len(made.weights), bool)
        feedback = sa.context.observations.ContextFeedback(
            0, action, np.zeros(len(seen)), seen, made.encoded, made.weights, made.shifts
        )
        add_precision(total, contexts.design, learner.problem.support, feedback, 1.0)
    return total


@pytest.mark.parametrize("shared", [True, "arms", False])
@given(steps=st.lists(st.tuples(st.sampled_from("atucr"), st.integers(0, 5)), max_size=25))
@settings(max_examples=15, deadline=None)
def test_pending_precision_is_that_of_the_pending_decisions(shared, steps):
    agent, told, outcome = make_agent(shared), [], np.array([[1.0, 0.0], [0.0, 0.0]])
    for step, which in steps:
        pending = list(agent.pending)
        if step == "a":
            agent.ask(context=np.full(D, which / 8.0))
        elif step == "t" and pending:
            told.append(pending[which % len(pending)])
            agent.tell(told[-1], outcome)
        elif step == "u" and told:
            agent.untell(told.pop(which % len(told)), outcome)
        elif step == "c" and pending:
            agent.cancel(pending[which % len(pending)])
        elif step == "r":
            assert agent.learner.contexts.pending.tolist() == sum_pending(agent).tolist()
    contexts = agent.learner.contexts
    assert contexts._pending.empty == (not agent.pending)
    assert contexts.pending.tolist() == sum_pending(agent).tolist()


def test_decisions_that_are_told_at_once_are_never_added(monkeypatch):
    added = []
    monkeypatch.setattr(pending_precision, "add_precision", lambda *args: added.append(args))
    agent = make_agent(True)
    for _ in range(5):
        decision = agent.ask(context=np.zeros(D))
        agent.tell(decision, np.zeros((2, N_ITEMS)))
    assert not added
    agent.ask(context=np.zeros(D))
    agent.ask(context=np.zeros(D))
    assert len(added) == 1  # the first of the two, for the choice of the second


def test_few_decisions_wait_to_be_added():
    agent = make_agent(True)
    pending = agent.learner.contexts._pending
    assert isinstance(pending, PendingPrecision)
    made = [agent.ask(context=np.full(D, n / 256.0)) for n in range(3)]
    for n in range(200):
        learner, entry = agent.learner, agent._decisions.pending[made[n % 3].id]
        decided = entry.decision.action, entry.context._replace(weights=entry.context.weights + 0.25 * n)
        learner.contexts.count_pending(learner, decided, entry.decision.action, 1.0)
        assert len(pending._waiting) <= pending_precision._MAX_WAITING
