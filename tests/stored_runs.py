"""Fixed histories of agents, simulations and the service, with which tests/fixtures/v0 is checked.

The expected values were written by the same histories on the sources of version 0.1.0, under the names of its time
(``tests/fixtures/v0/make.py``).
"""

import dataclasses
import hashlib
import itertools
import json

import numpy as np
from scipy import sparse

import superarm as sa

CONTINUED_ROUNDS = 10
HORIZON, REPLICATIONS = 60, 1
ROUNDS = [1, 5, 10, 20, 40, 60]


def outcome_of(t, arm, item):
    """The deterministic outcome of an entry: one of 0, 0.1, …, 1; zeros and ones are most common."""
    word = (7919 * t + 104729 * arm + 1299709 * item) % 101
    return min(max((word % (arm + 5)) / 4.0 - 0.5, 0.0), 1.0)


def digest(*arrays):
    """The SHA-256 of the arrays' bytes (little-endian): equal only if every bit is equal."""
    parts = [np.ascontiguousarray(array, np.asarray(array).dtype.newbyteorder("<")).tobytes() for array in arrays]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def feedback(agent, decision, widths):
    """Outcome and mask of a decision: every fifth round hides some entries. Sparse problems have ``widths``."""
    rows = [
        [outcome_of(decision.t, int(j), i) for i in range(widths[j] if widths else len(agent.items))]
        for j in decision.action
    ]
    hidden = [
        [decision.t % 5 == 0 and (int(j) + i) % 3 == 0 for i in range(len(row))]
        for j, row in zip(decision.action, rows, strict=True)
    ]
    seen = [[not h for h in row] for row in hidden]
    if widths is not None:
        rows, seen = list(itertools.chain(*rows)), list(itertools.chain(*seen))
    return rows, seen


def play(agent, rounds, widths=None, late=True, eligible=False):
    """Ask and tell so many times; feedback arrives one decision late, so that some decisions are pending.

    With ``eligible``, two fifths of the arms may be played, others in every round.
    """
    actions, waiting = [], []
    for _ in range(rounds):
        some = [j for j in range(len(agent.arms)) if (7 * j + agent.t * agent.t) % 5 < 2] if eligible else None
        waiting.append(agent.ask(some))
        actions.append(waiting[-1].action.tolist())
        if len(waiting) > late:
            decision = waiting.pop(0)
            agent.tell(decision, *feedback(agent, decision, widths))
    return actions


def continue_agent(state, widths, eligible):
    """What the agent of ``state`` does next: its actions, its estimates as a digest, and its pending decisions."""
    agent = sa.Agent.from_state(state)
    for decision in agent.pending[::2]:  # the history left these without their feedback
        agent.tell(decision, *feedback(agent, decision, widths))
    actions = play(agent, CONTINUED_ROUNDS * (3 if eligible else 1), widths, eligible=eligible)
    return {
        "actions": actions,
        "t": agent.t,
        "estimates": digest(*(np.nan_to_num(x) for x in agent.estimates()), agent.tally.pulls),
        "pulls": agent.tally.pulls.reshape(-1).tolist(),
        "pending": [[decision.id, decision.action.tolist()] for decision in agent.pending],
    }


def catalogue():
    """Every policy of the catalogue, several with other parameters than the default, and wrappers around some."""
    return {
        "bc_ucb": sa.bc_ucb(),
        "bc_ucb rho=0.5": sa.bc_ucb(0.5),
        "kl_ucb": sa.kl_ucb(),
        "kl_ucb c=0": sa.kl_ucb(0.5, 0.0),
        "cucb": sa.cucb(),
        "ucb_v": sa.policies.ucb_v(),
        "kl_moss": sa.kl_moss(),
        "cts": sa.cts(),
        "angle_ts": sa.policies.angle_ts(),
        "cucb_t": sa.policies.cucb_t(),
        "bcucb_t": sa.policies.bcucb_t(0.5),
        "escb_delta": sa.policies.escb_delta(),
        "least_played": sa.policies.least_played(0.1),
        "epsilon_greedy": sa.policies.epsilon_greedy(),
        "epsilon_greedy decay": sa.policies.epsilon_greedy(0.9, 0.5),
        "follow_the_leader": sa.policies.follow_the_leader(),
        "sliding_window kl_ucb": sa.policies.sliding_window(sa.kl_ucb(), 24, blocks=4),
        "sliding_window cts": sa.policies.sliding_window(sa.cts(), 16, blocks=2),
        "sliding_window epsilon_greedy": sa.policies.sliding_window(sa.policies.epsilon_greedy(0.3), 20, blocks=5),
        "discounted bc_ucb": sa.policies.discounted(sa.bc_ucb(0.3), 9),
        "uniform": sa.uniform(),
        "oracle exhaustive": sa.kl_ucb(oracle=sa.oracles.Exhaustive()),
        "oracle stochastic": sa.cts(oracle=sa.oracles.StochasticGreedy()),
    }


def for_lists():
    """The policies for one item and lists."""
    return {
        "cascade_ucb1": sa.policies.cascade_ucb1(),
        "cascade_ucb1 reversed": sa.policies.cascade_ucb1(oracle=sa.oracles.Reversed()),
        "cascade_kl_ucb": sa.policies.cascade_kl_ucb(),
        "cascade_ucb_v": sa.policies.cascade_ucb_v(),
        "ts_cascade": sa.policies.ts_cascade(),
    }


def for_sums():
    """The policies for modular rewards."""
    return {"escb": sa.policies.escb(), "escb c=0": sa.policies.escb(0.0)}


def instances():
    """Small instances with the policies that are played on them: name, instance, policies."""
    weights = [1.0, 0.5, 2.0]
    p = np.random.default_rng(5).uniform(0.0, 0.6, (6, 3))
    linear = sa.Problem(6, 3, sa.Linear(), sa.actions.PartitionMatroid("aabbcc", {"a": 1, "b": 2, "c": 1}), weights)
    logistic = sa.Problem(6, 3, sa.Logistic(1.5), sa.Knapsack([1.0, 2.0, 1.5, 1.0, 2.5, 0.5], 3.0), weights)
    graph = sparse.csr_array(np.where(np.random.default_rng(1).random((7, 7)) < 0.3, 0.4, 0.0) * (1 - np.eye(7)))
    spread = sa.Problem(7, 7, sa.diffusion.Spread(20), sa.Subsets(2), support=graph)
    listed = {name: catalogue()[name] for name in ("kl_ucb", "cts", "cucb_t", "bcucb_t", "uniform")}
    few = {name: catalogue()[name] for name in ("kl_ucb", "cts", "angle_ts", "least_played")}
    partitions = {name: policy for name, policy in catalogue().items() if name != "oracle stochastic"}
    worlds = sa.environments
    yield "coverage", sa.instances.random_coverage(7, 3, 2, seed=3), catalogue()
    yield "linear", sa.Instance(linear, worlds.Bernoulli(p)), partitions | for_sums()
    yield "logistic knapsack", sa.Instance(logistic, worlds.Beta(p, 3.0)), few
    covered = dataclasses.replace(linear, reward=sa.Coverage())
    yield "correlated", sa.Instance(covered, worlds.Copula(p, 0.2, 0.3, 0.4)), few
    yield "listed batches", sa.instances.disjoint_batches(2, suboptimal_arms=6), few
    yield "cascade", sa.instances.cascade(6, 3), for_lists() | listed
    yield "switching", sa.instances.changing_coverage(6, 3, 2, phases=3, every=25), catalogue()
    yield (
        "influence",
        sa.Instance(spread, sa.diffusion.IndependentCascade(graph, samples=200)),
        {"bcucb_t": sa.policies.bcucb_t(0.2)},
    )


def simulate(instance, policies):
    """Pulls and regret of every policy on the instance."""
    settings = {"horizon": HORIZON, "replications": REPLICATIONS, "seed": 11, "rounds": ROUNDS, "threads": 1}
    results = sa.simulate(instance, policies, **settings, progress=False)
    return {
        name: {"pulls": results.pulls[name].astype(int).tolist(), "regret": results.regret[name].tolist()}
        for name in policies
    }


def numbers():
    """Levels and scores of every index that draws no random numbers, and values of every reward."""
    kinds = sa.indices
    indices = [kinds.Bernstein(0.7), kinds.Hoeffding(0.7), kinds.KL(0.7, 1.0), kinds.KLMoss(), kinds.Mean()]
    indices += [kinds.UCB1(0.7), kinds.UCBV()]
    rewards = [sa.Coverage(), sa.Linear(), sa.Logistic(1.5), sa.rewards.ClippedLinear(1.5, 0.2)]
    rewards += [sa.rewards.Conjunctive()]
    grid = itertools.product([1.0, 30.0, 4000.0], [2, 1000, 10**6], [0.1, 1.0], [0.0, 0.03, 0.4, 1.0])
    p = np.random.default_rng(8).random((4, 3))
    found = {f"{type(index).__name__}.{part}": [] for index in indices for part in ("level", "score")}
    for (pulls, t, share, mean), index in itertools.product(grid, indices):
        entry = (np.full((1, 1, 1), x) for x in (mean, (mean * (1.0 - mean)) ** 0.5))
        level = index.level(np.full((1, 1, 1), pulls), t, share)
        found[f"{type(index).__name__}.level"].append(float(level[0, 0, 0]))
        found[f"{type(index).__name__}.score"].append(float(index.score(*entry, level, None)[0, 0, 0]))
    for reward in rewards:
        problem = sa.Problem(4, 3, reward, sa.Subsets(3), [1.0, 0.5, 2.0])
        values = [problem.value(p, batch) for batch in ([0, 1, 2], [1, 2, 3], [3, 0, 1])]
        found[type(reward).__name__] = [*values, *problem.gradient(p, [0, 2, 3]).reshape(-1).tolist()]
    return found


class Api:
    """The calls that the service's history consists of: ``http`` is an ``httpx.Client``."""

    def __init__(self, http, keys):
        self._http, self._keys = http, keys

    def call(self, tenant, method, path, body=None, content=None):
        """The answer; an error status fails at once."""
        headers = {"Authorization": f"Bearer {self._keys[tenant]}"}
        if content is not None:
            headers["Content-Type"] = "application/x-ndjson"
        answer = self._http.request(method, f"/v1{path}", json=body, content=content, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json() if content is None else answer.text


SETTINGS_OF_0_1_0 = ("policy", "mode", "explore", "window_s", "at_window_end", "late", "max_pending")


def as_then(settings):
    """Settings without those that version 0.1.0 did not have."""
    return {name: settings[name] for name in SETTINGS_OF_0_1_0}


def seen_of(api, problems, decisions):
    """What the service says of its problems and decisions: counters to the last bit, settings, slates."""
    known = {"problems": {}, "decisions": {}}
    for tenant, name in problems:
        about = api.call(tenant, "GET", f"/problems/{name}")
        for new in ("warnings", "t"):  # which version 0.1.0 did not give
            about.pop(new, None)
        about["settings"] = as_then(about["settings"])
        arms = api.call(tenant, "GET", f"/problems/{name}/arms?limit=1000")
        versions = api.call(tenant, "GET", f"/problems/{name}/versions")
        text = json.dumps([arms["arms"], [as_then(one) for one in versions["versions"]]], sort_keys=True)
        known["problems"][f"{tenant}/{name}"] = about | {
            "pulls": [arm["pulls"] for arm in arms["arms"]],
            "pending_pulls": [arm["pending"] for arm in arms["arms"]],
            "retired": [arm["arm"] for arm in arms["arms"] if arm["retired"]],
            "counters": hashlib.sha256(text.encode()).hexdigest(),
        }
    for tenant, problem, id in decisions:
        known["decisions"][f"{tenant}/{id}"] = api.call(tenant, "GET", f"/problems/{problem}/decisions/{id}")
    return known


def next_slates(api, problems):
    """The slates of further decisions, with feedback between them."""
    slates = {}
    for tenant, name in problems:
        found = []
        for n in range(6):
            decision = api.call(tenant, "POST", f"/problems/{name}/decisions", {"id": f"{name}-next-{n}"})
            found.append([decision["t"], decision["action"], decision.get("propensities")])
            if n % 3 != 1:
                rows = [{"arm": arm, "value": outcome_of(n, j, 0)} for j, arm in enumerate(decision["arms"])]
                api.call(tenant, "POST", f"/problems/{name}/decisions/{decision['id']}/feedback", {"feedback": rows})
        slates[f"{tenant}/{name}"] = found
    return slates
