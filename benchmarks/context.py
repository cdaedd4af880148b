"""A round with a context: the compiled loop against the same policy in NumPy.

``python -m benchmarks.context`` prints milliseconds of processor time per round: choose, learn and add up, after a warm
start of some rounds, for VAC²-UCB with a shared model (1,000 arms, 10 items, 20 features, batches of 10) and with one
model per entry (16 features). The NumPy round does the same work with matrix products over all arms.
"""

import time

import numpy as np

import superarm as sa
from superarm.policies.contextual import for_context
from superarm.simulation import context_table
from superarm.simulation.contextual import advance_run, begin_run

N_ARMS, N_ITEMS, K, ROUNDS = 1000, 10, 10, 200


def instance(shared):
    """Coverage with a linear model: 20 features shared by all entries, or 16 of every entry's own."""
    rng = np.random.default_rng(0)
    d = 1 if shared else 15
    arms = rng.uniform(-1, 1, (N_ARMS, 4)) if shared else None
    context = sa.Context(sa.Features(d=d), arms, sa.models.Linear(shared=shared))
    problem = sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K), context=context)
    users = rng.uniform(-1, 1, (5, d))
    return sa.Instance(problem, context_table(problem, list(users), rng.uniform(0, 0.2, (5, N_ARMS, N_ITEMS))))


def compiled_round(shared):
    """Seconds per round of the compiled loop."""
    made = instance(shared)
    policy = for_context(sa.vac2_ucb(), made.problem).fit(made.problem)
    run = begin_run(made, policy, np.random.SeedSequence(0))
    advance_run(made, policy, run, np.array([0, 20]), np.zeros(1))
    started = time.process_time()
    advance_run(made, policy, run, np.array([20, 20 + ROUNDS]), np.zeros(1))
    return (time.process_time() - started) / ROUNDS, made.problem.context.dimension(N_ITEMS)


class NumpyRounds:
    """VAC²-UCB with greedy for coverage, vectorised over arms and items."""

    def __init__(self, shared):
        self.shared, self.made = shared, instance(shared)
        table = self.made.environment
        self.users, self.p = table.contexts, table.p.reshape(-1, N_ARMS, N_ITEMS)
        self.rng = np.random.default_rng(1)
        if shared:
            self.arms = np.concatenate([np.ones((N_ARMS, 1)), self.made.problem.context.arms], axis=1)
            self.own = self.arms.shape[1] * self.users.shape[1]
            d = self.own + N_ITEMS
            self.g, self.b = 10.0 * np.eye(d), np.zeros(d)
        else:
            d = self.users.shape[1]
            self.g = np.tile(16.0 * np.eye(d), (N_ARMS, N_ITEMS, 1, 1))
            self.inverse, self.theta = np.linalg.inv(self.g), np.zeros((N_ARMS, N_ITEMS, d))
            self.b = np.zeros((N_ARMS, N_ITEMS, d))

    def bounds(self, x):
        """Estimates and squared widths of all entries."""
        if not self.shared:
            return self.theta @ x, (self.inverse @ x) @ x
        u = (self.arms[:, :, None] * x).reshape(N_ARMS, -1)
        inverse = np.linalg.inv(self.g)
        theta, own = inverse @ self.b, self.own
        mean = (u @ theta[:own])[:, None] + theta[own:]
        square = np.einsum("ja,ja->j", u @ inverse[:own, :own], u)[:, None]
        return mean, square + 2.0 * u @ inverse[:own, own:] + np.diag(inverse)[own:]

    def play(self, radius=4.0):
        row = self.rng.integers(len(self.users))
        x = self.users[row]
        mean, square = self.bounds(x)
        width = radius * np.sqrt(np.maximum(square, 0.0))
        high, low = np.clip(mean + width, 0.0, 1.0), np.clip(mean - width, 0.0, 1.0)
        variance = np.where(high <= 0.5, high * (1 - high), np.where(low >= 0.5, low * (1 - low), 0.25))
        uncovered, action = np.ones(N_ITEMS), []
        gains = high @ uncovered
        for _ in range(K):
            j = int(np.argmax(gains))
            action.append(j)
            uncovered = uncovered * (1.0 - high[j])
            gains = high @ uncovered
            gains[action] = -1.0
        outcome = (self.rng.random((K, N_ITEMS)) < self.p[row, action]).astype(float)
        self.learn(x, action, outcome, 1.0 / np.maximum(variance[action], 1 / 4096))

    def learn(self, x, action, outcome, weight):
        if not self.shared:
            outer = np.multiply.outer(weight, np.outer(x, x))
            self.g[action] += outer
            self.b[action] += (weight * outcome)[:, :, None] * x
            self.inverse[action] = np.linalg.inv(self.g[action])
            self.theta[action] = (self.inverse[action] @ self.b[action][..., None])[..., 0]
            return
        u = (self.arms[action][:, :, None] * x).reshape(K, -1)
        phi = np.concatenate([np.repeat(u, N_ITEMS, axis=0), np.tile(np.eye(N_ITEMS), (K, 1))], axis=1)
        scaled = phi * weight.reshape(-1, 1)
        self.g += scaled.T @ phi
        self.b += scaled.T @ outcome.reshape(-1)


def numpy_round(shared):
    """Seconds per round in NumPy."""
    rounds = NumpyRounds(shared)
    for _ in range(5):
        rounds.play()
    n = ROUNDS // 4
    started = time.process_time()
    for _ in range(n):
        rounds.play()
    return (time.process_time() - started) / n


def main():
    print(f"{'model':<12} {'d':>3} {'superarm':>10} {'NumPy':>10} {'ratio':>6}   ms per round")
    for name, shared in (("shared", True), ("per entry", False)):
        ours, d = compiled_round(shared)
        theirs = numpy_round(shared)
        print(f"{name:<12} {d:>3} {1e3 * ours:>10.3f} {1e3 * theirs:>10.3f} {theirs / ours:>6.1f}")


if __name__ == "__main__":
    main()
