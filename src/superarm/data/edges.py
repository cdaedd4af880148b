"""Edge lists, in the layouts of SNAP (comments after ``#``) and of NetHEPT (a header line ``nodes edges``)."""

from collections import Counter
from pathlib import Path

from superarm.core.errors import InvalidArgument
from superarm.data.files import open_text


def read_edges(path: str | Path) -> Counter[tuple[int, int]]:
    """How often the file lists each pair of nodes, in the direction that it is listed.

    A first line with the number of nodes and the number of the following lines is a header, not an edge.
    """
    pairs = []
    with open_text(path) as file:
        for number, line in enumerate(file, 1):
            words = line.split("#", 1)[0].split()
            if not words:
                continue
            try:
                pairs.append((int(words[0]), int(words[1])))
            except (ValueError, IndexError):
                raise InvalidArgument(
                    "path", f"line {number} is not a pair of nodes: {line.strip()!r}", "give two integers per line"
                ) from None
    if pairs and _is_header(pairs):
        del pairs[0]
    if not pairs:
        raise InvalidArgument("path", f"{path} has no edges", "give two integers per line")
    return Counter(pairs)


def _is_header(pairs: list[tuple[int, int]]) -> bool:
    nodes, edges = pairs[0]
    return edges == len(pairs) - 1 and nodes >= len({node for pair in pairs[1:] for node in pair})
