"""Contextual policies decide as recorded, round by round."""

import numpy as np
import pytest

from superarm import contextual as new
from superarm import indices
from superarm.core.errors import InvalidArgument
from superarm.core.tally import Feedback
from superarm.oracles.base import GREEDY
from superarm.policies import IndexPolicy
from superarm.policies.forgetting import Forgetting
from superarm.simulation import contextual_instances, simulate
from tests.contexts import COUNTRIES, LEVELS, N_ARMS, USERS, grid, problem_of, replay
from tests.recorded import recorded, write

KINDS = [{"shared": True}, {"shared": "arms"}, {"shared": False}, {"shared": True, "intercept": False}]
LINEAR = {
    "c2_ucb": new.c2_ucb(0.3),
    "vac2_ucb": new.vac2_ucb(0.05),
    "comb_lin_ts": new.comb_lin_ts(0.7, ridge=2.0),
}
OPTIONS = [{}, {"interactions": False}, {"sparse": True}, {"n_items": 1}]
CASES = [
    (name, k, n) for n in range(4) for k in range(4) for m, name in enumerate(LINEAR) if (n + k + m) % 3 == 0 or n == 0
]


@pytest.mark.parametrize(("name", "kind", "options"), [(name, KINDS[k], OPTIONS[n]) for name, k, n in CASES], ids=str)
def test_linear_policies_decide_as_recorded(name, kind, options, request):
    problem = problem_of("Linear", kind, **options)
    sparse = options.get("sparse", False)
    replay(problem, LINEAR[name], list(USERS), recorded(request), 40, sparse, cascade=name == "c2_ucb")


LOGISTIC = {"logistic_kl_ucb": new.logistic_kl_ucb(0.2, 0.1, 0.02), "logistic_ts": new.logistic_ts(0.7, 0.02)}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    ("name", "options"), [("logistic_kl_ucb", {}), ("logistic_ts", {"interactions": False, "sparse": True})], ids=str
)
def test_logistic_policies_decide_and_refit_as_recorded(name, kind, options, request):
    problem = problem_of("Logistic", kind | {"prior_mean": 0.2, "kept": 130}, **options)
    run = replay(problem, LOGISTIC[name], list(USERS), recorded(request), 40, options.get("sparse", False))
    for kept in run.memory.logits.kept:
        assert (kept.until > 0).any()
        assert len(kept.rows) <= 130


@pytest.mark.parametrize("pooling", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("options", [{}, {"sparse": True}, {"cascade": True}], ids=str)
@pytest.mark.parametrize("index", ["KL", "Bernstein"])
def test_policies_on_segments_decide_as_recorded(pooling, options, index, request):
    features = {"categorical": LEVELS | {"device": ["phone", "other"]}}
    sparse = options.get("sparse", False)
    problem = problem_of("Segments", {"pooling": pooling}, features, sparse=sparse)
    contexts = [context | {"device": "phone"} for context in COUNTRIES]
    policy = new.for_context(IndexPolicy(getattr(indices, index)(0.1)), problem)
    replay(problem, policy, contexts, recorded(request), 60, sparse, cascade=options.get("cascade", False))


@pytest.mark.parametrize("kind", [{"shared": False}, {"shared": "arms"}, {"shared": True}], ids=str)
def test_one_hot_logistic_models_decide_as_recorded(kind, request):
    features = {"categorical": {"country": ["NO", "SE", "DK"]}}
    hot = np.eye(N_ARMS) if kind["shared"] is True else None
    n_items = 1 if kind["shared"] else 3
    problem = problem_of("Logistic", kind | {"intercept": False}, features, n_items=n_items, arms=hot)
    policy = new.for_context(new.logistic_kl_ucb(), problem)
    assert isinstance(policy, new.GroupedPolicy)
    replay(problem, policy, COUNTRIES, recorded(request))
    sampled = new.for_context(new.logistic_ts(), problem)
    assert type(sampled.index).__name__ == "BetaPosterior"


FORGOTTEN = {
    "Linear": new.vac2_ucb(0.05),
    "Logistic": new.logistic_kl_ucb(0.2),
    "Segments": IndexPolicy(indices.KL(0.3)),
}


@pytest.mark.parametrize("model", FORGOTTEN)
def test_policies_that_forget_decide_as_recorded(model, request):
    segments = model == "Segments"
    features = {"categorical": LEVELS} if segments else None
    problem = problem_of(model, {} if segments else {"shared": True}, features)
    policy = new.for_context(Forgetting(FORGOTTEN[model], 7, [1.0, 0.5, 0.25]), problem)
    assert model != "Logistic" or not policy.policy.refits
    replay(problem, policy, COUNTRIES if segments else list(USERS), recorded(request))


def test_c3_ucb_learns_less_from_lower_positions(request):
    problem = problem_of("Linear", {"shared": True}, n_items=1)
    replay(problem, new.c3_ucb(0.3, discount=0.8), list(USERS), recorded(request), cascade=True)


class Agent:
    """An agent, as small as it can be."""

    def __init__(self, problem, policy):
        self.problem, self.policy = problem, new.for_context(policy, problem)
        self.policy.validate(problem)
        self.history, self.t, self.made = new.ContextHistory(problem), 0, []
        self.memory = self.policy.new_memory(problem, 1)
        self.waiting = np.zeros_like(self.memory.tally.pulls)

    def ask(self, given, pairs=None):
        self.t += 1
        encoded = self.history.encode(given, pairs)
        row = encoded.segment
        view = self.problem.view(self.memory.tally, self.t, np.zeros(1, np.uint64))
        view.counts, view.eligible = (view.tally.pulls + self.waiting)[row : row + 1], view.eligible[:1]
        view.context = self.history.contexts(encoded)
        action = self.policy.choose(self.problem, view, self.memory)
        made = self.history.decide(encoded, self.policy.weigh(self.problem, view, self.memory, action), action[0])
        made = type(made).from_plain(made.to_plain())
        self.history.pend(made, action[0], action[0])
        self.waiting[row, action[0]] += 1
        self.made.append((self.t, action[0], made))
        self.history.frames.count(given if isinstance(given, dict) else None)
        frame = self.history.frames.due()
        if frame is not None:
            self.history.begin_frame(self.memory, frame)
        plan = self.memory.plan(self.t)
        if plan is not None:
            self.memory.accept(plan)
        return action[0]

    def tell(self, n, outcome, sign=1.0):
        t, action, made = self.made[n]
        self.waiting[made.encoded.segment, action] -= sign
        self.history.pend(made, action, action, -sign)
        given = self.history.answer(made, action, action)
        self.memory.learn(Feedback(t, action[None], outcome[None], None, given), sign)


AGENTS = {
    "Linear": new.vac2_ucb(0.05),
    "Logistic": new.logistic_kl_ucb(0.2, 0.1, 0.02),
    "Segments": IndexPolicy(indices.KL(0.3)),
}


@pytest.mark.parametrize(("pairs", "standardised"), [(2, False), (0, True), (2, True)])
@pytest.mark.parametrize(
    "model", [("Linear", True), ("Linear", False), ("Logistic", True), ("Logistic", "arms"), ("Segments", 0)]
)
def test_an_agent_with_pending_decisions_decides_as_recorded(model, pairs, standardised, request):
    """Decisions wait for feedback, which comes late, in another order, and is taken back; frames change."""
    name, shared = model
    features = {"categorical": LEVELS, "numeric": ["age"] if standardised else {"age": (0, 100)}}
    more = {"prior_mean": 0.2, "kept": 5000} if name == "Logistic" else {}
    problem = problem_of(name, {} if name == "Segments" else {"shared": shared} | more, features, pairs=pairs)
    agent, rng, open_, told, made = Agent(problem, AGENTS[name]), np.random.default_rng(7), [], [], []
    for n in range(45):
        given = {"age": float(rng.integers(10, 90)), "country": str(rng.choice(["NO", "SE", "DK"]))}
        made.append(agent.ask(given, grid(rng.uniform(-1, 1, (N_ARMS, pairs))) if pairs else None))
        open_.append(n)
        while len(open_) > 3:
            m = open_.pop(int(rng.integers(len(open_))))
            x = (rng.random((2, 3)) < 0.4).astype(float)
            agent.tell(m, x)
            told.append((m, x))
        if n % 9 == 8:
            m, x = told.pop(int(rng.integers(len(told))))
            agent.tell(m, x, -1.0)
            open_.append(m)
    assert write(made) == recorded(request)
    if name == "Logistic":
        again = agent.policy.new_memory(problem, 1).from_arrays(agent.memory.to_arrays())
        np.testing.assert_array_equal(again.logits.more.precision, agent.memory.logits.more.precision)


@pytest.mark.parametrize("name", ["linear_cascade", "contextual_coverage", "segment_coverage", "logistic_coverage"])
def test_the_best_batch_of_each_context_is_the_best_of_all(name):
    sizes = {"n_arms": 6, "k": 2} | ({"n_segments": 3} if name == "segment_coverage" else {"n_contexts": 4})
    instance = getattr(contextual_instances, name)(**sizes)
    problem, table = instance.problem, instance.environment
    for p, best in zip(table.p, table.best_worth, strict=True):
        most = max(problem.value(p.reshape(6, -1), batch) for batch in problem.actions.batches(6))
        assert GREEDY * most - 1e-9 <= best <= most + 1e-9
    mean = problem.support.to_user(table.means(problem, 1)[0])
    np.testing.assert_allclose(mean.reshape(-1), table.p.mean(0), rtol=1e-12)


def test_simulate_measures_regret_against_the_best_batch_of_each_context():
    instance = contextual_instances.segment_coverage(n_arms=5, n_items=2, k=2, n_segments=3)
    policies = {"KL-UCB": IndexPolicy(indices.KL()), "window": Forgetting(IndexPolicy(indices.KL()), 9, [1.0, 0.5])}
    results = simulate(instance, policies, horizon=60, replications=2, progress=False)
    for name in policies:
        assert (results.regret[name][:, -1] > 0.0).all()


def test_policies_that_do_not_suit_the_model_are_refused():
    segments = problem_of("Segments", features={"categorical": LEVELS})
    linear = problem_of("Linear", {"shared": True})
    plain = segments.changed(context=None)
    standardised = problem_of("Linear", features={"numeric": ["age"]})
    window = Forgetting(new.vac2_ucb(), 5, [1.0])
    for policy, problem, match in (
        (new.vac2_ucb(), plain, "needs a context"),
        (new.vac2_ucb(), segments, "does not learn the model Segments"),
        (IndexPolicy(indices.KL()), linear, "does not read features"),
        (window, standardised, "standardised, and the policy forgets"),
    ):
        with pytest.raises(InvalidArgument, match=match):
            new.for_context(policy, problem)
