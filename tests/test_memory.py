"""What a policy knows, one property for all: it follows from what it was told, whichever way that came."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import superarm as sa
from superarm import contextual, policies, testing
from superarm.core.errors import InvalidArgument
from superarm.core.ops import engine

FEATURES = sa.Features(categorical={"country": ["NO", "SE", "DK"]})
AGE = sa.Features(numeric={"age": (0.0, 1.0)}, categorical={"country": ["NO", "SE", "DK"]})
ARMS = np.linspace(0.0, 1.0, 10).reshape(5, 2)
CONTEXTS = {
    "": None,
    "segments": sa.Context(FEATURES),
    "pooled segments": sa.Context(FEATURES, model=sa.models.Segments(pooling=5.0)),
    "features of arms": sa.Context(sa.Features(), ARMS),
    "linear": sa.Context(AGE, model=sa.models.Linear()),
    "linear, standardised": sa.Context(sa.Features(numeric=["age"]), ARMS, sa.models.Linear(shared=True)),
    "logistic": sa.Context(AGE, model=sa.models.Logistic()),
    "logistic, standardised": sa.Context(sa.Features(numeric=["age"]), model=sa.models.Logistic()),
    "logistic, one-hot": sa.Context(FEATURES, model=sa.models.Logistic(intercept=False)),
}
USERS = [{"age": n % 7 / 7.0, "country": ["NO", "SE", "DK"][n % 3]} for n in range(21)]


@pytest.fixture(autouse=True)
def _without_kernels():
    """Problems are small: compiling kernels would take longer than all tests."""
    with engine("numpy"):
        yield


def count_wins(problem, memory, feedback, sign):
    won = feedback.outcome.any(axis=2)
    wins = memory.setdefault("wins", np.zeros((len(won), problem.n_arms)))
    np.add.at(wins, (np.arange(len(won))[:, None], feedback.action), sign * won)


def most_wins(problem, view, memory):
    wins = memory.get("wins", np.zeros_like(view.counts))
    return problem.actions.heaviest((wins + 1.0) / (view.counts + 1.0), view)


class Wins(policies.Memory):
    by_row = ("wins",)

    def __init__(self, policy, problem, rows=1, partial=False):
        self.wins = np.zeros((rows, problem.n_arms))
        super().__init__(policy, problem, rows, partial)

    def note(self, feedback, weight):
        count_wins(self.problem, vars(self), feedback, weight)


class MostWins(sa.Policy):
    remembers = Wins

    def choose(self, problem, view, memory):
        return most_wins(problem, view, vars(memory))


POLICIES = {
    "kl_ucb": sa.kl_ucb(),
    "cts": sa.cts(),
    "gaussian_cts": policies.gaussian_cts(),  # it flips coins
    "pooled": policies.pooled_thompson(),
    "pooled, list": policies.pooled_thompson(baseline=[3, 1, 2]),
    "directional": policies.directional_kl_moss(),
    "directional, covariance": policies.directional_kl_ucb(spread=policies.Covariance()),
    "escb_c": policies.escb_c(),
    "escb": policies.escb(),
    "escb_delta": policies.escb_delta(),
    "functions": sa.policy(most_wins, count_wins),
    "class": MostWins(),
}
WRAPPERS = {
    "": lambda policy: policy,
    "window of ": lambda policy: policies.sliding_window(policy, 12, 4),
    "discount of ": lambda policy: policies.discounted(policy, 5),
    "epsilon ": lambda policy: policies.EpsilonGreedy(policy, 0.2),
    "epsilon window of ": lambda policy: policies.EpsilonGreedy(policies.sliding_window(policy, 12, 4), 0.2),
}
REGRESSIONS = {
    "linear": ("vac2_ucb", "c2_ucb", "comb_lin_ts"),
    "linear, standardised": ("vac2_ucb", "comb_lin_ts"),
    "logistic": ("logistic_ts", "logistic_kl_ucb"),
    "logistic, standardised": ("logistic_ts",),
    "logistic, one-hot": ("logistic_ts", "logistic_kl_ucb"),
}


def cases():
    some, most = ("", "window of "), ("", "window of ", "epsilon window of ")
    in_contexts = {"": WRAPPERS, "segments": most, "pooled segments": some, "features of arms": some}
    for context, wrappers in in_contexts.items():
        for name, policy in POLICIES.items():
            for wrapper, wrap in ((one, WRAPPERS[one]) for one in wrappers):
                yield pytest.param(wrap(policy), context, False, id=f"{wrapper}{name}, {context}")
    for name in ("kl_ucb", "pooled", "directional", "functions", "class"):
        for context in ("", "segments"):
            yield pytest.param(POLICIES[name], context, True, id=f"{name}, sparse, {context}")
    for context, names in REGRESSIONS.items():
        for name in names:
            yield pytest.param(getattr(contextual, name)(), context, False, id=f"{name}, {context}")
            if "standardised" not in context:
                policy = WRAPPERS["window of "](getattr(contextual, name)())
                yield pytest.param(policy, context, False, id=f"window of {name}, {context}")


def make_problem(policy, context, sparse=False):
    """A problem that the policy applies to."""
    support = csr_array(np.array([[1, 1], [1, 0], [0, 1], [1, 1], [0, 1]], float)) if sparse else None
    for reward in (sa.Coverage(), sa.Linear()):
        problem = sa.Problem(5, 2, reward, sa.Subsets(2), support=support, context=CONTEXTS[context])
        try:
            sa.Agent(problem, policy)
        except InvalidArgument as error:
            refused = error
        else:
            return problem
    raise refused


@pytest.mark.parametrize(("policy", "context", "sparse"), list(cases()))
def test_memory_follows_from_what_was_told(policy, context, sparse):
    problem = make_problem(policy, context, sparse)
    names = [] if problem.context is None else problem.context.features.names
    users = [{name: user[name] for name in names} or None for user in USERS]
    testing.check_memory(policy, problem, users, rounds=18)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_rows_learn_alone_what_they_learn_together(wrapper, name):
    policy = WRAPPERS[wrapper](POLICIES[name])
    testing.check_split(policy, make_problem(policy, ""))


@pytest.mark.parametrize("name", POLICIES)
def test_past_data_add_up(name):
    """Two halves of the data, one as a warm start of the other, are the sums of all."""
    policy = POLICIES[name]
    problem, rng = make_problem(policy, ""), np.random.default_rng(2)
    arms, outcomes = rng.integers(0, 5, 20), rng.integers(0, 2, (20, 2)).astype(float)
    agents = [sa.Agent(problem, policy, seed=1) for _ in range(2)]
    agents[0].warm_start(problem.past(arms, outcomes))
    for half in (slice(12), slice(12, 20)):
        agents[1].warm_start(problem.past(arms[half], outcomes[half]))
    testing.require_equal_memories(agents[0].learner.memory, agents[1].learner.memory, "in two halves")
    assert agents[0].ask().action.tolist() == agents[1].ask().action.tolist()


class Forgetful(Wins):
    def beside(self):
        return {}

    def take_beside(self, arrays):
        pass


class Wasteful(Wins):
    def note(self, feedback, weight):
        super().note(feedback, abs(weight))


class Sequential(Wins):
    def note(self, feedback, weight):
        self.wins *= 0.5
        super().note(feedback, weight)


class Glued(Wins):
    def put(self, rows, part):
        self.tally.put(rows, part.tally)

    def take(self, rows):
        part = super().take(rows)
        part.wins = part.wins.copy()
        return part


@pytest.mark.parametrize("memory", [Forgetful, Wasteful, Sequential, Glued])
def test_memories_that_break_the_contract_are_told_so(memory):
    class Broken(MostWins):
        remembers = memory

    with pytest.raises(testing.ContractViolation, match=r"a memory is the same|the same history"):
        testing.check(Broken())


def test_what_cannot_be_saved_is_named():
    def learn(problem, memory, feedback, sign):
        memory["seen"] = {"a": feedback}

    agent = sa.Agent(make_problem(sa.kl_ucb(), ""), sa.policy(most_wins, learn), seed=0)
    agent.tell(agent.ask(), np.ones((2, 2)))
    with pytest.raises(InvalidArgument, match="under 'seen'; keep arrays and numbers"):
        agent.learner.memory.to_arrays()


def _count_pairs(problem, memory, feedback, sign):
    there = (feedback.action[:, :, None] == np.arange(problem.n_arms)).any(1).astype(float)
    memory["pairs"] = memory.get("pairs", 0.0) + sign * there[:, :, None] * there[:, None]


def _fewest_pairs(problem, view, memory):
    pairs = memory.get("pairs", np.zeros((len(view), problem.n_arms, problem.n_arms)))
    return problem.actions.heaviest(1.0 / (1.0 + pairs.sum(2)), view)


def test_a_matrix_of_a_function_s_memory_grows_along_both_axes():
    policy = sa.policy(_fewest_pairs, _count_pairs)
    sa.testing.check(policy)
    agent = sa.Agent(sa.Problem(4, 2, sa.Coverage(), sa.Subsets(3)), policy, seed=0)
    for _ in range(2):
        decision = agent.ask()
        agent.tell(decision, np.zeros((3, 2)))
        before = agent.learner.memory.own["pairs"]
        agent.add_arms(2)
    after = agent.learner.memory.own["pairs"]
    assert after.shape == (1, 8, 8)
    assert (after[:, :6, :6] == before).all()
    assert after.sum() == before.sum() == 18.0


def test_a_matrix_is_refused_new_arms_where_its_axes_may_be_items():
    agent = sa.Agent(sa.Problem(4, 4, sa.Coverage(), sa.Subsets(2)), sa.policy(_fewest_pairs, _count_pairs), seed=0)
    agent.tell(agent.ask(), np.zeros((2, 4)))
    with pytest.raises(sa.InvalidArgument, match=r"'pairs' has shape .* write a class of memory"):
        agent.add_arms(1)


class ReadsTotals(sa.Policy):
    """A policy that reads the model of totals, and says no more than that it learns from them."""

    learns_totals = True

    def choose(self, problem, view, memory):
        return problem.actions.heaviest(view.tally.model.mean - view.tally.model.mean.min(1, keepdims=True), view)


def _add_totals(problem, memory, feedback, sign):
    memory["sum"] = memory.get("sum", 0.0) + sign * feedback.joint.total.sum(1)


def test_policies_that_learn_from_totals_are_checked_on_totals():
    sa.testing.check(ReadsTotals())
    told = sa.policy(_fewest_pairs, _add_totals, totals=True)
    assert repr(told) == "policy(_fewest_pairs, _add_totals, totals=True)"
    sa.testing.check(told)
    problem = sa.Problem(4, reward=sa.Total(), actions=sa.Subsets(2))
    with pytest.raises(sa.InvalidArgument, match="say that it learns totals"):
        sa.Agent(problem, sa.policy(_fewest_pairs, _add_totals))
    with pytest.raises(sa.InvalidArgument, match="totals: 1 is neither True nor False"):
        sa.policy(_fewest_pairs, totals=1)
