"""Makes ``obp_reference.json``: what Open Bandit Pipeline 0.5.5 estimates on arrays that are drawn here.

The tests read the file and need no obp. ``make obp-reference`` makes it again, in an environment of its own.

obp imports torch, which the slate estimators do not use: a stand-in takes its place.
"""

import json
import sys
from unittest.mock import MagicMock

import numpy as np

N, K, N_ACTIONS = 60, 3, 4


def draw():
    """Slates without repetition from a softmax logger, with a softmax target; all propensities by enumeration."""
    rng = np.random.default_rng(7)
    logged, target = rng.normal(size=N_ACTIONS), rng.normal(size=N_ACTIONS)
    rows = {name: [] for name in ("slate_id", "position", "action", "reward", "q_hat")}
    scores = {name: [] for name in ("pscore", "pscore_cascade", "pscore_item_position")}
    scores |= {f"evaluation_policy_{name}": [] for name in list(scores)} | {"v_hat": []}
    marginals = [marginal(logged), marginal(target)]
    for n in range(N):
        slate = draw_slate(logged, rng)
        chains = [np.cumprod(chain(values, slate)) for values in (logged, target)]
        for position, action in enumerate(slate):
            q_hat = rng.uniform(size=N_ACTIONS)
            q_hat[slate[:position]] = 0.0
            rows["slate_id"].append(n)
            rows["position"].append(position)
            rows["action"].append(int(action))
            rows["reward"].append(int(rng.random() < 0.2 + 0.15 * action))
            rows["q_hat"].append(q_hat.tolist())
            scores["v_hat"].append(float(conditional(target, slate[:position]) @ q_hat))
            for prefix, chained, marginal_ in zip(("", "evaluation_policy_"), chains, marginals, strict=True):
                scores[f"{prefix}pscore"].append(float(chained[-1]))
                scores[f"{prefix}pscore_cascade"].append(float(chained[position]))
                scores[f"{prefix}pscore_item_position"].append(float(marginal_[position, action]))
    return rows | scores, target


def conditional(values, before):
    weights = np.exp(values)
    weights[list(before)] = 0.0
    return weights / weights.sum()


def chain(values, slate):
    return np.array([conditional(values, slate[:n])[slate[n]] for n in range(len(slate))])


def draw_slate(values, rng):
    slate = []
    for _ in range(K):
        slate.append(int(rng.choice(N_ACTIONS, p=conditional(values, slate))))
    return slate


def marginal(values):
    import itertools

    table = np.zeros((K, N_ACTIONS))
    for slate in itertools.permutations(range(N_ACTIONS), K):
        for position, action in enumerate(slate):
            table[position, action] += chain(values, slate).prod()
    return table


def main():
    stand_in = MagicMock(Tensor=type("Tensor", (), {}), Module=type("Module", (), {}), Dataset=type("Dataset", (), {}))
    stand_in.nn = stand_in.utils = stand_in.data = stand_in
    sys.modules |= dict.fromkeys(
        ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils", "torch.utils.data"), stand_in
    )
    from obp import ope

    data, target = draw()
    flat = {name: np.asarray(values) for name, values in data.items()}
    common = {name: flat[name] for name in ("slate_id", "reward", "position", "action")}
    estimators = {
        "ips": ope.SlateStandardIPS(len_list=K),
        "snips": ope.SelfNormalizedSlateStandardIPS(len_list=K),
        "independent_ips": ope.SlateIndependentIPS(len_list=K),
        "cascade_ips": ope.SlateRewardInteractionIPS(len_list=K),
    }
    names = [name for name in flat if "pscore" in name]
    found = {
        name: float(estimator.estimate_policy_value(**common, **{one: flat[one] for one in names}))
        for name, estimator in estimators.items()
    }
    dist = np.concatenate([conditional(target, data["action"][n - n % K : n]) for n in range(N * K)])
    doubly_robust = ope.SlateCascadeDoublyRobust(len_list=K, n_unique_action=N_ACTIONS)
    found["cascade_dr"] = float(
        doubly_robust.estimate_policy_value(
            **common,
            pscore_cascade=flat["pscore_cascade"],
            evaluation_policy_pscore_cascade=flat["evaluation_policy_pscore_cascade"],
            q_hat=flat["q_hat"].reshape(-1),
            evaluation_policy_action_dist=dist,
        )
    )
    data["q_hat"] = [row[action] for row, action in zip(data["q_hat"], data["action"], strict=True)]
    print(json.dumps({"estimates": found, "arrays": data}))


if __name__ == "__main__":
    main()
