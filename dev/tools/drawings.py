"""Draw one small picture per action set, and where features are given, for the guides to rules and context.

    python -m dev.tools.drawings

Filled circles and thick lines are the arms of one batch; empty circles and thin lines are the other arms.
"""

from pathlib import Path

import superarm as sa

PLACE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "rules"
WIDTH, HEIGHT = 216, 104
STYLE = """
circle,rect,path,line{fill:none;stroke:#57606a;stroke-width:1.5}
text{font:12px system-ui,'Segoe UI',sans-serif;fill:#39424e;text-anchor:middle}
.on{fill:#0072b2;stroke:#0072b2}line.on,path.on{fill:none;stroke-width:4}.near{stroke:#0072b2;stroke-width:12}
.rule{fill:#0072b2;fill-opacity:.08;stroke:#8c959f;stroke-width:1}
.leaf{stroke:#0072b2}.dash{stroke-dasharray:4 3}.node{fill:#57606a}.bad{stroke:#d55e00;stroke-width:2.5}
@media (prefers-color-scheme:dark){
circle,rect,path,line{stroke:#9aa4b0}text{fill:#d5dbe3}.on{fill:#4aa8e8;stroke:#4aa8e8}line.on,path.on{stroke:#4aa8e8}
.rule{fill:#4aa8e8;fill-opacity:.12;stroke:#6e7781}.node{fill:#9aa4b0}.bad{stroke:#ff8a3d}.near{stroke:#4aa8e8}.leaf{stroke:#4aa8e8}}
"""
NODES = [(34, 30), (34, 80), (98, 18), (98, 82), (160, 36), (184, 84)]
EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (3, 5), (4, 5)]


def arm(x: float, y: float, on: bool = False) -> str:
    """An arm, filled if it is in the batch."""
    return f'<circle cx="{x}" cy="{y}" r="8"{_mark(on)}/>'


def point(x: float, y: float, radius: float = 5) -> str:
    """A node of a graph, or an estimate."""
    return f'<circle cx="{x}" cy="{y}" r="{radius}" class="node"/>'


def box(x: float, y: float, width: float, height: float, kind: str = "rule") -> str:
    """A rectangle with round corners."""
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="7" class="{kind}"/>'


def line(x: float, y: float, to_x: float, to_y: float, on: bool = False, kind: str = "") -> str:
    """A line, thick if it is in the batch."""
    return f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}"{_mark(on, kind)}/>'


def word(x: float, y: float, text: str) -> str:
    """A word or number, centred."""
    return f'<text x="{x}" y="{y}">{text}</text>'


def _mark(on: bool, kind: str = "") -> str:
    found = "on" if on else kind
    return f' class="{found}"' if found else ""


def subsets(top: int = 32) -> list[str]:
    """Any three of ten."""
    chosen = {(0, 1), (0, 4), (1, 2)}
    return [arm(28 + 40 * n, top + 40 * row, (row, n) in chosen) for row in range(2) for n in range(5)]


def explicit() -> list[str]:
    """Three sets, of which one is played."""
    parts = []
    for n, chosen in enumerate(([64, 94, 124], [94, 154], [64, 124, 154])):
        parts += [box(44, 5 + 33 * n, 130, 28, "rule" if n == 1 else "rule dash")]
        parts += [arm(x, 19 + 33 * n, n == 1) for x in chosen]
    return parts


def partition() -> list[str]:
    """Groups side by side, each with its limit."""
    parts = []
    for x, limit, arms in [(6, 2, "1010"), (77, 1, "010"), (148, 1, "001")]:
        parts += [box(x, 6, 62, 70), word(x + 31, 95, f"≤ {limit}")]
        parts += [arm(x + 18 + 26 * (n % 2), 26 + 30 * (n // 2), on == "1") for n, on in enumerate(arms)]
    return parts


def laminar() -> list[str]:
    """Families inside a family."""
    parts = [box(6, 6, 204, 92), word(108, 93, "≤ 3 in all"), box(16, 14, 96, 60), box(122, 14, 54, 60)]
    parts += [word(64, 69, "≤ 2"), word(149, 69, "≤ 1")]
    return parts + [arm(x, 36, x in (34, 86, 162)) for x in (34, 60, 86, 136, 162, 194)]


def slots() -> list[str]:
    """Arms above, slots below, lines where an arm may go."""
    fits = [(28, 54, 0), (28, 108, 0), (68, 54, 1), (108, 108, 1), (148, 108, 0), (148, 162, 0), (188, 162, 1)]
    parts = [line(x, 26, slot, 70, bool(on)) for x, slot, on in fits]
    parts += [arm(x, 18, x in (68, 108, 188)) for x in (28, 68, 108, 148, 188)]
    return parts + [box(slot - 20, 70, 40, 26, "rule dash") for slot in (54, 108, 162)]


def graph(chosen: set[int]) -> list[str]:
    """A graph, its edges being the arms."""
    parts = [line(*NODES[a], *NODES[b], n in chosen) for n, (a, b) in enumerate(EDGES)]
    return parts + [point(x, y) for x, y in NODES]


def forest() -> list[str]:
    """Edges without a cycle."""
    return graph({0, 2, 6})


def tree() -> list[str]:
    """Edges without a cycle that reach every node."""
    return graph({0, 2, 4, 6, 7})


def matching() -> list[str]:
    """Pairs of nodes on the left and on the right."""
    left, right = [22, 52, 82], [22, 52, 82]
    pairs = [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 2, 0), (2, 1, 0), (2, 2, 1)]
    parts = [line(50, left[a], 166, right[b], bool(on)) for a, b, on in pairs]
    return parts + [point(x, y, 6) for x in (50, 166) for y in left]


def paths() -> list[str]:
    """A way from the source to the target."""
    nodes = [(24, 52), (76, 20), (76, 84), (136, 20), (136, 84), (192, 52)]
    edges = [(0, 1, 1), (0, 2, 0), (1, 3, 0), (1, 4, 1), (2, 4, 0), (2, 3, 0), (3, 5, 0), (4, 5, 1)]
    parts = [line(*nodes[a], *nodes[b], bool(on)) for a, b, on in edges]
    parts += [point(x, y) for x, y in nodes]
    return [*parts, word(24, 78, "source"), word(190, 78, "target")]


def knapsack() -> list[str]:
    """Arms as wide as their costs, and those that the budget buys."""
    parts, x = [], 8.0
    for width, on in [(52, 1), (76, 0), (26, 1), (36, 1)]:
        parts.append(box(x, 12, width, 24, "on" if on else ""))
        x += width + 3
    parts.append(box(8, 58, 150, 26, "rule dash"))
    for at, width in [(11, 52), (66, 26), (95, 36)]:
        parts.append(box(at, 61, width, 20, "on"))
    return [*parts, word(83, 100, "the budget")]


def intersection() -> list[str]:
    """Rows are one rule, columns another."""
    parts = [box(40, 4 + 28 * row, 164, 24) for row in range(3)]
    parts += [box(47 + 42 * column, 1, 24, 86, "rule dash") for column in range(4)]
    chosen = {(0, 0), (0, 2), (1, 3), (2, 1)}
    parts += [arm(59 + 42 * n, 16 + 28 * row, (row, n) in chosen) for row in range(3) for n in range(4)]
    parts += [word(59 + 42 * n, 101, "≤ 1") for n in range(4)]
    return parts + [word(22, 20 + 28 * row, "≤ 2") for row in range(3)]


def pinned() -> list[str]:
    """One arm is fixed, the others are chosen."""
    return [*subsets(38), box(52, 22, 32, 32, "dash"), word(68, 16, "fixed")]


def ladder() -> list[str]:
    """Arms are tried in turn until one succeeds."""
    steps = [(36, 78), (88, 58), (140, 38), (188, 22)]
    parts = ['<path d="M8 92H62V72H114V52H164V36H208" class="dash"/>', arm(*steps[0], True), arm(*steps[1], True)]
    parts += [arm(*steps[2]), line(28, 54, 44, 66, kind="bad"), line(28, 66, 44, 54, kind="bad")]
    parts += ['<path d="M80 40l6 6l11 -14" class="on"/>', word(150, 78, "not tried")]
    return parts


def context() -> list[str]:
    """Where features are given: a user above, arms on the left, and a table of pairs."""
    parts = [box(180, 4, 268, 34), word(314, 26, "user: age 31, country NO"), word(512, 26, "ask(context=…)")]
    for n, (told, seen) in enumerate((("sport, new", "no"), ("news, old", "yes"), ("sport, old", "no"))):
        y = 54 + 36 * n
        parts += [box(4, y, 150, 28), word(79, y + 19, f"arm {n}: {told}"), line(154, y + 14, 180, y + 14)]
        parts += [box(180, y, 126, 28, "dash"), word(243, y + 19, f"seen before: {seen}")]
        parts += [line(306, y + 14, 322, y + 14), box(322, y, 126, 28, "leaf"), word(385, y + 19, "p for each item")]
    return [*parts, word(79, 182, "Context(arms=…)"), word(243, 182, "ask(pairs=…)"), word(385, 182, "learnt")]


def evaluation() -> list[str]:
    """What two candidates earn more than the logged slates, with both intervals: the example of the guide to logs."""
    instance = sa.instances.random_coverage(n_arms=12, n_items=4, k=3, high=0.4)
    log = sa.offline.simulate_log(instance, [0, 1, 2], 10_000, explore=0.4)
    found = log.compare({"KL-UCB": sa.kl_ucb(), "top sellers": [1, 2, 3]}).values
    zero, unit = 200.0, 330.0
    parts = [line(zero, 6, zero, 92, kind="dash"), word(zero, 106, "as now")]
    parts += [line(zero + unit, 6, zero + unit, 92, kind="dash"), word(zero + unit, 106, "+1 per round")]
    for n, (name, value) in enumerate(found.items()):
        y = 26 + 40 * n
        wide, narrow = value.difference, value.approximate_difference
        at = {end: round(zero + unit * end, 1) for end in (wide.value, wide.low, wide.high, narrow.low, narrow.high)}
        parts += [word(80, y + 4, f"{name}: {value.verdict}"), line(at[wide.low], y, at[wide.high], y)]
        parts += [line(at[narrow.low], y, at[narrow.high], y, kind="near"), point(at[wide.value], y)]
    return parts


def scale() -> list[str]:
    """Tables out, sums in: what goes round between superarm, applications, and the engine that has the log."""
    places = ((4, "superarm: tally and policy"), (216, "applications, any language"), (428, "warehouse, DuckDB, Spark"))
    parts = [part for x, name in places for part in (box(x, 30, 168, 40), word(x + 84, 54, name))]
    for x, name in ((176, "table"), (388, "events")):
        parts += [
            f'<path d="M{x} 50H{x + 36}M{x + 28} 44L{x + 36} 50L{x + 28} 56" class="leaf"/>',
            word(x + 18, 22, name),
        ]
    parts += ['<path d="M512 70V104H88V76" class="dash"/>', '<path d="M82 83L88 75L94 83"/>']
    parts += [word(300, 98, "GROUP BY: sums of arms and segments")]
    return parts


DRAWINGS = {
    **{"subsets": subsets, "explicit": explicit, "partition": partition, "laminar": laminar, "slots": slots},
    **{"forest": forest, "tree": tree, "matching": matching, "paths": paths, "knapsack": knapsack},
    **{
        "intersection": intersection,
        "pinned": pinned,
        "ladder": ladder,
        "../context": context,
        "../offline": evaluation,
        "../scale": scale,
    },
}
SIZES = {"../context": (600, 192), "../offline": (600, 114), "../scale": (600, 112)}
"""Width and height, where they are not the usual ones."""


def draw(name: str) -> str:
    """The text of one SVG file."""
    width, height = SIZES.get(name, (WIDTH, HEIGHT))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return "\n".join([head, f"<style>{STYLE}</style>", *DRAWINGS[name](), "</svg>", ""])


if __name__ == "__main__":
    for name in DRAWINGS:
        (PLACE / f"{name}.svg").write_text(draw(name), encoding="utf-8")
