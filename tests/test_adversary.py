"""The search for instances on which a policy fails: what it counts, and that it repeats itself."""

import numpy as np

import superarm as sa
from dev.benchmarks.adversary import Arm, Plan, assess, changed, known, learnable, random_plan, search, to_instance


def test_a_policy_that_never_explores_is_locked_and_a_good_one_is_not():
    constant = Plan((Arm("rare", 0.3, 1.0), Arm("rare", 0.0, 0.9)), 1, 0.5, "equal", 200)
    # The better arm is constantly 0.286 in seven of ten rounds: who follows the mean leaves it then for good.
    assert assess(sa.policies.follow_the_leader(), constant, 10, 0).locked >= 0.5
    assert assess(sa.kl_moss(), constant, 10, 0).locked == 0.0


def test_the_known_instances_have_one_best_arm_and_the_named_dependence():
    for name, plan in known().items():
        instance = to_instance(plan)
        values = instance.p.reshape(len(plan.arms), -1) @ instance.problem.weights
        assert values[0] > values[1:].max() + 0.01, name
    assert to_instance(known()["A1"]).environment.block[:2].max(axis=1).tolist() == [1, 0]
    assert (to_instance(known()["E1"]).problem.weights == 0.0).sum() == 18


def test_changes_keep_plans_playable():
    rng = np.random.default_rng(0)
    plan = random_plan(rng, 50)
    for _ in range(200):
        plan = changed(plan, rng)
        assert len(plan.arms) <= 8
        to_instance(plan)


def test_the_search_repeats_itself():
    first = {"A2": known()["A2"]._replace(horizon=20)}
    one, other = (search(sa.policies.follow_the_leader(), first, 6, 2, 300, 5, 60.0) for _ in range(2))
    assert one == other
    assert 4 <= len(one) <= 7
    assert all(learnable(plan) for _, plan, _ in one if plan.horizon == 300)
    assert one[0][2] >= one[-1][2]
