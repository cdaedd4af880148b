"""What an oracle says of itself beyond the protocol: see ``OracleHooks``."""

from superarm.oracles.base import Oracle


def ranking(oracle: Oracle) -> bool:
    """Whether the oracle only ranks arms, so that parameters may be any numbers; False by default."""
    return bool(getattr(oracle, "ranking", False))


def greedy(oracle: Oracle) -> bool:
    """Whether the oracle picks the arms that ``Greedy`` picks, ties included; False by default."""
    return bool(getattr(oracle, "greedy", False))
