"""The screen of sparse problems: greedy with bounds of first gains that outlive the round."""

# mypy: ignore-errors
import numpy as np

from superarm.core.kernels.numeric import apart, kernel
from superarm.core.kernels.screen import precedes, score_line


@apart
def top_arm(first, counts, b):
    """The largest bound in block ``b`` of 64 arms, and the fewest pulls of an arm that has it."""
    top, fewest = -1.0, np.inf
    for j in range(64 * b, min(64 * b + 64, len(first))):
        if first[j] > top:
            top, fewest = first[j], counts[j]
        elif first[j] == top and counts[j] < fewest:
            fewest = counts[j]
    return top, fewest


@apart
def top_block(blocks, fewest, g):
    """The block of group ``g``, of 64 blocks, that comes first: largest bound, fewest pulls, lowest number."""
    lead = 64 * g
    for b in range(64 * g + 1, min(64 * g + 64, len(blocks))):
        if blocks[b] > blocks[lead] or (blocks[b] == blocks[lead] and fewest[b] < fewest[lead]):
            lead = b
    return lead


@apart
def leading_block(blocks, fewest, groups):
    lead = groups[0]
    for g in range(1, len(groups)):
        b = groups[g]
        if blocks[b] > blocks[lead] or (blocks[b] == blocks[lead] and fewest[b] < fewest[lead]):
            lead = b
    return lead


@apart
def renew_block(first, counts, blocks, fewest, groups, b):
    """Find the leading arm of block ``b`` anew, and the leading block of its group."""
    blocks[b], fewest[b] = top_arm(first, counts, b)
    groups[b // 64] = top_block(blocks, fewest, b // 64)


@apart
def score_arm(kind, start, mean, dev, numerator, counts, j, x, q):
    """The scores of one arm into ``q``; ``x`` is scratch, as long as the widest arm."""
    a, z = start[j], start[j + 1]
    score_line(kind, mean[a:z], dev[a:z], numerator / counts[j], x[: z - a], q[a:z])


@apart
def arm_gain(start, items, left, q, j):
    g = 0.0
    for e in range(start[j], start[j + 1]):
        g += left[items[e]] * q[e]
    return g


@kernel
def sparse_screened(
    kind,
    start,
    items,
    mean,
    dev,
    now,
    later,
    due,
    counts,
    counted,
    free,
    weights,
    held,
    first,
    blocks,
    fewest,
    groups,
    clock,
    steps,
    left,
    x,
    q,
    out,
):
    """Minoux's greedy with bounds that outlive the round: Coverage on Subsets, one replication, sparse support.

    mean, dev, q (E,); now, later: numerators of the level at this round and at the one until which the bounds of first
    gains ``held`` (L,) hold. ``first`` = held and ``left`` = weights between calls. ``blocks`` has the largest bound of
    64 arms each, ``fewest`` the fewest pulls at that bound, ``groups`` the leading block of 64 each. ``clock`` is the
    step in which an arm was last evaluated, ``steps`` the number of steps so far; ``x`` is scratch, as long as the
    widest arm.
    """
    before = steps[0]
    slack = 1.0 if kind == 0 else 1.0 + 1e-12  # rounding keeps order in all but the iteration of the KL bound
    touched, n_touched = np.empty(1024, np.int64), 0
    for n in range(len(due)):
        j = due[n]
        counted[j] = counts[j]
        held[j] = first[j] = -1.0
        if free[j]:
            score_arm(kind, start, mean, dev, later, counts, j, x, q)
            held[j] = first[j] = arm_gain(start, items, weights, q, j) * slack
        if n + 1 == len(due) or due[n + 1] // 64 != j // 64:
            renew_block(first, counts, blocks, fewest, groups, j // 64)
    for k in range(len(out)):
        steps[0] += 1
        best, most, used, n_used = -1, -1.0, np.empty(len(blocks), np.int64), 0
        while True:
            lead = leading_block(blocks, fewest, groups)
            if blocks[lead] < 0.0 or blocks[lead] < most:
                break
            if blocks[lead] == most and (fewest[lead], 64 * lead) > (counts[best], best):
                break  # its arms come after the best one
            for j in range(64 * lead, min(64 * lead + 64, len(first))):
                if first[j] < 0.0 or not precedes(first[j], j, most, best, counts):
                    continue
                if clock[j] <= before:  # the first time in this call
                    score_arm(kind, start, mean, dev, now, counts, j, x, q)
                    if n_touched == len(touched):
                        touched = np.concatenate((touched, np.empty_like(touched)))
                    touched[n_touched] = j
                    n_touched += 1
                first[j], clock[j] = arm_gain(start, items, left, q, j), steps[0]
                if precedes(first[j], j, most, best, counts):
                    best, most = j, first[j]
            used[n_used] = lead
            n_used += 1
            blocks[lead] = -1.0  # until the next step: its other arms cannot win
            groups[lead // 64] = top_block(blocks, fewest, lead // 64)
        out[k] = best
        if best >= 0:
            first[best] = -1.0
            for e in range(start[best], start[best + 1]):
                left[items[e]] *= 1.0 - q[e]
        for n in range(n_used):
            renew_block(first, counts, blocks, fewest, groups, used[n])
    for n in range(n_touched):
        first[touched[n]] = held[touched[n]]
    for n in range(n_touched):
        renew_block(first, counts, blocks, fewest, groups, touched[n] // 64)
    for k in range(len(out)):
        if out[k] >= 0:
            for e in range(start[out[k]], start[out[k] + 1]):
                left[items[e]] = weights[items[e]]
