"""The public names of the array engine, as ``superarm`` will have them: ``from tests.next import names as sa``."""

from superarm.errors import InvalidArgument  # noqa: F401
from superarm.next import environments, offline, oracles, rewards, theory  # noqa: F401
from superarm.next.actions import Explicit, Knapsack, PartitionMatroid, Subsets  # noqa: F401
from superarm.next.agent import Agent  # noqa: F401
from superarm.next.context import Context, Features, models  # noqa: F401
from superarm.next.contextual.catalog import vac2_ucb  # noqa: F401
from superarm.next.core.problem import Problem  # noqa: F401
from superarm.next.indices import KL, Bernstein, BetaPosterior, Hoeffding, KLMoss, Mean
from superarm.next.oracles import Default, Greedy, LocalSearch, TopArms  # noqa: F401
from superarm.next.policies import IndexPolicy
from superarm.next.policies.directional import directional_kl_ucb  # noqa: F401
from superarm.next.policies.forgetting import discounted, sliding_window  # noqa: F401
from superarm.next.policies.wrappers import epsilon_greedy, uniform  # noqa: F401
from superarm.next.rewards import ClippedLinear, Conjunctive, Coverage, Linear, Logistic, Reward  # noqa: F401
from superarm.next.simulation import instances  # noqa: F401
from superarm.next.simulation.instances import Instance  # noqa: F401
from superarm.next.simulation.simulate import simulate  # noqa: F401


def bc_ucb(**options):
    return IndexPolicy(Bernstein(), **options)


def bcucb_t():
    return IndexPolicy(Bernstein(), start=False)


def kl_ucb(rho=1.0, c=3.0, **options):
    return IndexPolicy(KL(rho, c), **options)


def cascade_kl_ucb():
    return IndexPolicy(KL(), start=False)


def kl_moss():
    return IndexPolicy(KLMoss())


def cucb():
    return IndexPolicy(Hoeffding())


def cts():
    return IndexPolicy(BetaPosterior(), rounding="coin")


def follow_the_leader():
    return IndexPolicy(Mean())
