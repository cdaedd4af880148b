"""Items that learn themselves: groups of visitors with tastes of their own, found in a log of slates.

latent: ``learn`` fits latent classes to a log, and ``Items`` are what it finds · need: whether a log needs them ·
counts: answers counted by classes · agent: ``ItemAgent`` learns items while it decides
"""

from superarm.items.agent import ItemAgent
from superarm.items.latent import Items, learn
from superarm.items.need import Need, need

__all__ = ["ItemAgent", "Items", "Need", "learn", "need"]
