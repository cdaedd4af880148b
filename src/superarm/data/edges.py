"""Edge lists, in the layouts of SNAP (comments after ``#``) and of NetHEPT (a first line ``nodes edges``)."""

from collections import Counter
from pathlib import Path

from superarm.data.files import text
from superarm.errors import InvalidArgument


def read_edges(path: str | Path) -> Counter[tuple[int, int]]:
    """How often each pair of nodes stands in the file, as it is directed there.

    A first line of two numbers that are the number of nodes and of lines to come is a head, not an edge.
    """
    pairs = []
    with text(path) as file:
        for number, line in enumerate(file, 1):
            words = line.split("#", 1)[0].split()
            if not words:
                continue
            try:
                pairs.append((int(words[0]), int(words[1])))
            except (ValueError, IndexError):
                raise InvalidArgument(
                    "path", f"line {number} is not a pair of nodes: {line.strip()!r}", "give two integers a line"
                ) from None
    if pairs and _is_head(pairs):
        del pairs[0]
    if not pairs:
        raise InvalidArgument("path", f"{path} holds no edges", "give two integers a line")
    return Counter(pairs)


def _is_head(pairs: list[tuple[int, int]]) -> bool:
    nodes, edges = pairs[0]
    return edges == len(pairs) - 1 and nodes >= len({node for pair in pairs[1:] for node in pair})
