"""The public names of the array engine, as ``superarm`` will have them: ``from tests.next import names as sa``."""

from superarm.core.errors import InvalidArgument  # noqa: F401
from superarm import environments, offline, oracles, rewards, theory  # noqa: F401
from superarm.actions import Explicit, Knapsack, PartitionMatroid, Subsets  # noqa: F401
from superarm.agent import Agent  # noqa: F401
from superarm.context import Context, Features, models  # noqa: F401
from superarm.contextual.catalog import vac2_ucb  # noqa: F401
from superarm.core.problem import Problem  # noqa: F401
from superarm.indices import KL, Bernstein, BetaPosterior, Hoeffding, KLMoss, Mean
from superarm.oracles import Default, Greedy, LocalSearch, TopArms  # noqa: F401
from superarm.policies import IndexPolicy
from superarm.policies.directional import directional_kl_ucb  # noqa: F401
from superarm.policies.forgetting import discounted, sliding_window  # noqa: F401
from superarm.policies.wrappers import epsilon_greedy, uniform  # noqa: F401
from superarm.rewards import ClippedLinear, Conjunctive, Coverage, Linear, Logistic, Reward  # noqa: F401
from superarm.simulation import instances  # noqa: F401
from superarm.simulation.instances import Instance  # noqa: F401
from superarm.simulation.replicate import simulate  # noqa: F401


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
