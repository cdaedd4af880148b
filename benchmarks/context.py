"""A round with a context: the compiled loop against the same policy in NumPy.

``python -m benchmarks.context`` prints milliseconds of processor time per round: choose, learn and add up, for VAC²-UCB
with a shared model (1,000 arms, 10 items, 20 features, batches of 10) and with one model per entry (16 features), in
the first rounds and after 3,000. The NumPy round does the same work with matrix products over all arms, on one thread;
its time does not depend on what was learnt. Both are measured in turns, and the medians are printed.
"""

import statistics
import time

import numpy as np

import superarm as sa
from superarm.policies.contextual import for_context
from superarm.simulation import context_table
from superarm.simulation.contextual import advance_run, begin_run

N_ARMS, N_ITEMS, K = 1000, 10, 10
TURNS, ROUNDS = 15, 20
WARM = (20, 3000)


def instance(shared):
    """Coverage with a linear model: 20 features shared by all entries, or 16 of every entry's own."""
    rng = np.random.default_rng(0)
    d = 1 if shared else 15
    arms = rng.uniform(-1, 1, (N_ARMS, 4)) if shared else None
    context = sa.Context(sa.Features(d=d), arms, sa.models.Linear(shared=shared))
    problem = sa.Problem(N_ARMS, N_ITEMS, sa.Coverage(), sa.Subsets(K), context=context)
    users = rng.uniform(-1, 1, (5, d))
    return sa.Instance(problem, context_table(problem, list(users), rng.uniform(0, 0.2, (5, N_ARMS, N_ITEMS))))


class CompiledRounds:
    """The compiled loop of the simulation, after ``warm`` rounds."""

    def __init__(self, shared, warm):
        self.made = instance(shared)
        self.policy = for_context(sa.vac2_ucb(), self.made.problem).fit(self.made.problem)
        self.run, self.t = begin_run(self.made, self.policy, np.random.SeedSequence(0)), 0
        self.play(warm)

    def play(self, n):
        advance_run(self.made, self.policy, self.run, np.array([self.t, self.t + n]), np.zeros(1))
        self.t += n


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
            d = len(x)
            mean = (self.theta.reshape(-1, d) @ x).reshape(N_ARMS, N_ITEMS)
            rows = (self.inverse.reshape(-1, d) @ x).reshape(-1, d)
            return mean, (rows @ x).reshape(N_ARMS, N_ITEMS)
        u = (self.arms[:, :, None] * x).reshape(N_ARMS, -1)
        inverse = np.linalg.inv(self.g)
        theta, own = inverse @ self.b, self.own
        mean = (u @ theta[:own])[:, None] + theta[own:]
        square = np.einsum("ja,ja->j", u @ inverse[:own, :own], u)[:, None]
        return mean, square + 2.0 * u @ inverse[:own, own:] + np.diag(inverse)[own:]

    def play(self, n, radius=4.0):
        for _ in range(n):
            self.play_one(radius)

    def play_one(self, radius):
        row = self.rng.integers(len(self.users))
        x = self.users[row]
        mean, square = self.bounds(x)
        width = radius * np.sqrt(np.maximum(square, 0.0))
        q = np.clip(mean + width, 0.0, 1.0)
        uncovered, action = np.ones(N_ITEMS), []
        gains = q @ uncovered
        for _ in range(K):
            j = int(np.argmax(gains))
            action.append(j)
            uncovered = uncovered * (1.0 - q[j])
            gains = q @ uncovered
            gains[action] = -1.0
        high, low = q[action], np.clip((mean - width)[action], 0.0, 1.0)
        variance = np.where(high <= 0.5, high * (1 - high), np.where(low >= 0.5, low * (1 - low), 0.25))
        outcome = (self.rng.random((K, N_ITEMS)) < self.p[row, action]).astype(float)
        self.learn(x, action, outcome, 1.0 / np.maximum(variance, 1 / 4096))

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


def measure(contestants):
    """The median seconds per round of each contestant, in turns."""
    seconds = [[] for _ in contestants]
    for _ in range(TURNS):
        for times, contestant in zip(seconds, contestants, strict=True):
            started = time.process_time()
            contestant.play(ROUNDS)
            times.append((time.process_time() - started) / ROUNDS)
    return [statistics.median(times) for times in seconds]


def main():
    print(f"{'model':<12} {'d':>3} {'after':>6} {'superarm':>10} {'NumPy':>10} {'ratio':>6}   ms per round")
    for name, shared in (("shared", True), ("per entry", False)):
        for warm in WARM:
            ours, theirs = CompiledRounds(shared, warm), NumpyRounds(shared)
            theirs.play(5)
            a, b = measure([ours, theirs])
            d = ours.made.problem.context.dimension(N_ITEMS)
            print(f"{name:<12} {d:>3} {warm:>6} {1e3 * a:>10.3f} {1e3 * b:>10.3f} {b / a:>6.1f}", flush=True)


if __name__ == "__main__":
    main()
