"""Contextual policies decide as those of the compiled engine, round by round."""

import numpy as np
import pytest

import superarm as old
from superarm import contextual as new
from superarm import indices
from superarm.core.tally import Feedback
from superarm.policies import IndexPolicy
from superarm.policies.directional import directional_kl_moss
from superarm.policies.forgetting import Forgetting
from superarm.simulation import contextual_instances
from superarm.simulation.replicate import simulate
from superarm.simulation import contextual_instances as old_instances
from tests.next.contexts import LEVELS, N_ARMS, USERS, compare, grid, problems

KINDS = [{"shared": True}, {"shared": "arms"}, {"shared": False}, {"shared": True, "intercept": False}]
LINEAR = {
    "c2_ucb": (lambda: old.c2_ucb(0.3), lambda: new.c2_ucb(0.3)),
    "vac2_ucb": (lambda: old.vac2_ucb(0.05), lambda: new.vac2_ucb(0.05)),
    "comb_lin_ts": (lambda: old.comb_lin_ts(0.7, prior=0.5), lambda: new.comb_lin_ts(0.7, ridge=2.0)),
}


def same_sums(runs, run):
    for r, theirs in enumerate(runs):
        np.testing.assert_array_equal(run.tally.moments.precision[r], theirs.tally.precision)
        np.testing.assert_array_equal(run.tally.moments.response[r], theirs.tally.response)


OPTIONS = [{}, {"interactions": False}, {"sparse": True}, {"n_items": 1}]
CASES = [
    (name, k, n) for n in range(4) for k in range(4) for m, name in enumerate(LINEAR) if (n + k + m) % 3 == 0 or n == 0
]


@pytest.mark.parametrize(("name", "kind", "options"), [(name, KINDS[k], OPTIONS[n]) for name, k, n in CASES], ids=str)
def test_linear_policies_decide_as_before(name, kind, options):
    before, after = problems("Linear", kind, **options)
    pair = [make() for make in LINEAR[name]]
    same_sums(*compare(before, after, pair, list(USERS), horizon=40, cascade=name == "c2_ucb"))


LOGISTIC = {
    "logistic_kl_ucb": (lambda: old.logistic_kl_ucb(0.2, 0.1, 0.02), lambda: new.logistic_kl_ucb(0.2, 0.1, 0.02)),
    "logistic_ts": (lambda: old.logistic_ts(0.7, 0.02), lambda: new.logistic_ts(0.7, 0.02)),
}


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    ("name", "options"), [("logistic_kl_ucb", {}), ("logistic_ts", {"interactions": False, "sparse": True})], ids=str
)
def test_logistic_policies_decide_and_refit_as_before(name, kind, options):
    before, after = problems("Logistic", kind | {"prior_mean": 0.2, "kept": 130}, **options)
    pair = [make() for make in LOGISTIC[name]]
    runs, run = compare(before, after, pair, list(USERS), horizon=40)
    same_sums(runs, run)
    for theirs, ours in zip(runs, run.memory.kept, strict=True):
        kept = theirs.memory.kept
        n = kept.size[0]
        assert (kept.until > 0).any()
        np.testing.assert_array_equal(ours.until, kept.until)
        np.testing.assert_array_equal(ours.information, kept.information.T)
        np.testing.assert_allclose(ours.point, kept.point, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(ours.precision, kept.precision, atol=1e-8)
        assert (len(ours.rows), ours.limit) == (n, kept.size[1])


@pytest.mark.parametrize("pooling", [0.0, 0.5, 3.0])
@pytest.mark.parametrize("options", [{}, {"sparse": True}, {"cascade": True}], ids=str)
@pytest.mark.parametrize("index", ["KL", "Bernstein"])
def test_policies_on_segments_decide_as_before(pooling, options, index):
    of_problem = {name: value for name, value in options.items() if name == "sparse"}
    features = {"categorical": LEVELS | {"device": ["phone", "other"]}}
    before, after = problems("Segments", {"pooling": pooling}, features, **of_problem)
    contexts = [{"country": country, "device": "phone"} for country in ("NO", "SE", "DK")]
    theirs = old.IndexPolicy(getattr(old.indices, index)(0.1))
    ours = new.for_context(IndexPolicy(getattr(indices, index)(0.1)), after)
    runs, run = compare(before, after, (theirs, ours), contexts, 60, cascade=options.get("cascade", False))
    for r, one in enumerate(runs):
        np.testing.assert_array_equal(run.tally.pulls[6 * r : 6 * (r + 1)].reshape(-1), one.tally.pulls)


@pytest.mark.parametrize("kind", [{"shared": False}, {"shared": "arms"}, {"shared": True}], ids=str)
def test_one_hot_logistic_models_decide_as_kl_ucb(kind):
    hot = np.eye(N_ARMS)
    shared = kind["shared"] is True
    features = {"categorical": {"country": ["NO", "SE", "DK"]}}
    before, after = problems(
        "Logistic",
        kind | {"intercept": False},
        features,
        n_items=1 if kind["shared"] else 3,
        arms=hot if shared else None,
    )
    contexts = [{"country": country} for country in ("NO", "SE", "DK")]
    policy = new.for_context(new.logistic_kl_ucb(), after)
    assert isinstance(policy, new.GroupedPolicy)
    compare(before, after, (old.logistic_kl_ucb(), policy), contexts)
    sampled = new.for_context(new.logistic_ts(), after)
    assert type(sampled.index).__name__ == "BetaPosterior"


@pytest.mark.parametrize("model", ["Linear", "Logistic", "Segments"])
def test_policies_that_forget_decide_as_before(model):
    segments = model == "Segments"
    features = {"categorical": LEVELS} if segments else None
    before, after = problems(model, {} if segments else {"shared": True}, features)
    theirs, ours = {
        "Linear": (old.vac2_ucb(0.05), new.vac2_ucb(0.05)),
        "Logistic": (old.logistic_kl_ucb(0.2), new.logistic_kl_ucb(0.2)),
        "Segments": (old.IndexPolicy(old.indices.KL(0.3)), IndexPolicy(indices.KL(0.3))),
    }[model]
    contexts = [{"country": country} for country in ("NO", "SE", "DK")] if segments else list(USERS)
    weights = np.array([1.0, 0.5, 0.25])
    theirs = old.policies.Forgetting(theirs, 7, weights)
    ours = new.for_context(Forgetting(ours, 7, weights), after)
    assert isinstance(ours, new.ContextForgetting)
    compare(before, after, (theirs, ours), contexts, 60)


def test_c3_ucb_learns_less_from_lower_positions():
    before, after = problems("Linear", {"shared": True}, n_items=1, weights=[1.0])
    pair = (old.c3_ucb(0.3, discount=0.8), new.c3_ucb(0.3, discount=0.8))
    same_sums(*compare(before, after, pair, list(USERS), cascade=True))


class Agent:
    """An agent of the new engine, as small as it can be."""

    def __init__(self, problem, policy):
        self.problem, self.policy = problem, new.for_context(policy, problem)
        self.policy.validate(problem)
        self.history, self.t, self.made = new.ContextHistory(problem), 0, []
        self.tally = self.policy.new_tally(problem, 1)
        self.memory = self.policy.prepare(problem, self.tally)
        self.waiting = np.zeros_like(self.tally.pulls)

    def ask(self, given, pairs=None):
        self.t += 1
        encoded = self.history.encode(given, pairs)
        row = encoded.segment
        view = self.problem.view(self.tally, self.t, np.zeros(1, np.uint64))
        view.counts, view.eligible = (self.tally.pulls + self.waiting)[row : row + 1], view.eligible[:1]
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
            self.memory = self.history.begin_frame(self.policy, self.tally, self.memory, frame)
        plan = getattr(self.policy, "plan_refit", lambda *a: None)(self.problem, self.memory, self.t)
        if plan is not None:
            self.policy.take_refit(self.problem, self.memory, plan)
        return action[0]

    def tell(self, n, outcome, sign=1.0):
        t, action, made = self.made[n]
        self.waiting[made.encoded.segment, action] -= sign
        self.history.pend(made, action, action, -sign)
        given = self.history.answer(made, action, action)
        feedback = Feedback(t, action[None], outcome[None], None, given)
        self.policy.learn(self.problem, self.tally, self.memory, feedback, sign)


AGENTS = {
    "Linear": (lambda: old.vac2_ucb(0.05), lambda: new.vac2_ucb(0.05)),
    "Logistic": (lambda: old.logistic_kl_ucb(0.2, 0.1, 0.02), lambda: new.logistic_kl_ucb(0.2, 0.1, 0.02)),
    "Segments": (lambda: old.IndexPolicy(old.indices.KL(0.3)), lambda: IndexPolicy(indices.KL(0.3))),
}


@pytest.mark.parametrize(("pairs", "standardised"), [(2, False), (0, True), (2, True)])
@pytest.mark.parametrize(
    "model", [("Linear", True), ("Linear", False), ("Logistic", True), ("Logistic", "arms"), ("Segments", 0)]
)
def test_an_agent_with_pending_decisions_decides_as_before(model, pairs, standardised):
    """Decisions wait for feedback, which comes late, in another order, and is taken back; frames change."""
    name, shared = model
    features = {"categorical": LEVELS, "numeric": ["age"] if standardised else {"age": (0, 100)}}
    more = {"prior_mean": 0.2, "kept": 5000} if name == "Logistic" else {}
    before, after = problems(name, {} if name == "Segments" else {"shared": shared} | more, features, pairs=pairs)
    theirs, ours = AGENTS[name]
    agent, mine = old.Agent(before, theirs(), seed=3), Agent(after, ours())
    rng, open_, told, handles = np.random.default_rng(7), [], [], []
    for n in range(45):
        given = {"age": float(rng.integers(10, 90)), "country": str(rng.choice(["NO", "SE", "DK"]))}
        table = grid(rng.uniform(-1, 1, (N_ARMS, pairs))) if pairs else None
        handles.append(agent.ask(context=given, pairs=table))
        assert mine.ask(given, table).tolist() == handles[-1].action.tolist(), n
        open_.append(n)
        while len(open_) > 3:
            m = open_.pop(int(rng.integers(len(open_))))
            x = (rng.random((2, 3)) < 0.4).astype(float)
            agent.tell(handles[m], x)
            mine.tell(m, x)
            told.append((m, x))
        if n % 9 == 8:
            m, x = told.pop(int(rng.integers(len(told))))
            agent.untell(handles[m], x)
            mine.tell(m, x, -1.0)
            open_.append(m)
    learner = agent.learner
    if name != "Segments":
        np.testing.assert_array_equal(mine.tally.moments.precision[0], learner.tally.precision)
        np.testing.assert_array_equal(mine.tally.moments.response[0], learner.tally.response)
        np.testing.assert_array_equal(mine.history.pending[0], learner.contexts.pending)
    assert mine.history.clock.tolist() == learner.contexts.clock.tolist()
    if name == "Logistic":
        held, kept = mine.policy.save_state(mine.memory), learner.state.kept
        for part in ("rows", "bounds"):
            np.testing.assert_array_equal(held[part], getattr(kept, part))
        np.testing.assert_allclose(held["marks"], kept.marks, atol=1e-9)
        np.testing.assert_allclose(held["point"], kept.point, atol=1e-9)
        again = mine.policy.prepare(after, mine.tally)
        mine.policy.restore_state(again, held)
        np.testing.assert_array_equal(again.more.precision, mine.memory.more.precision)


@pytest.mark.parametrize("name", ["linear_cascade", "contextual_coverage", "segment_coverage", "logistic_coverage"])
def test_named_instances_are_those_of_before(name):
    sizes = {"n_arms": 6, "k": 2} | ({"n_segments": 3} if name == "segment_coverage" else {"n_contexts": 4})
    theirs, ours = (getattr(module, name)(**sizes) for module in (old_instances, contextual_instances))
    table, before = ours.environment, theirs.environment
    for part, of_before in (("vectors", "contexts"), ("segments", "segments"), ("p", "p")):
        np.testing.assert_array_equal(getattr(table, part), getattr(before, of_before))
    np.testing.assert_allclose(table.best_worth, before.best, rtol=1e-12)
    p, problem = table.means(ours.problem, 1), ours.problem
    np.testing.assert_allclose(problem.support.to_user(p[0]).reshape(-1), before.means(1), rtol=1e-12)


def test_simulate_measures_regret_against_the_best_batch_of_each_context():
    instance = contextual_instances.segment_coverage(n_arms=5, n_items=2, k=2, n_segments=3)
    policies = {"KL-UCB": IndexPolicy(indices.KL()), "window": Forgetting(IndexPolicy(indices.KL()), 9, [1.0, 0.5])}
    results = simulate(instance, policies, horizon=60, replications=2, progress=False)
    for name in policies:
        assert (results.regret[name][:, -1] > 0.0).all()


def test_policies_that_do_not_suit_the_model_are_refused():
    _, segments = problems("Segments", features={"categorical": LEVELS})
    _, linear = problems("Linear", {"shared": True})
    plain = segments.changed(context=None)
    standardised = problems("Linear", features={"numeric": ["age"]})[1]
    window = Forgetting(new.vac2_ucb(), 5, [1.0])
    for policy, problem, match in (
        (new.vac2_ucb(), plain, "needs a context"),
        (new.vac2_ucb(), segments, "does not learn the model Segments"),
        (IndexPolicy(indices.KL()), linear, "does not read features"),
        (directional_kl_moss(), segments, "which segments do not keep"),
        (window, standardised, "standardised, and the policy forgets"),
    ):
        with pytest.raises(old.InvalidArgument, match=match):
            new.for_context(policy, problem)
