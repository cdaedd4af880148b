"""The screen of sparse problems: greedy with bounds of first gains that outlive the round."""

# mypy: ignore-errors
import numpy as np

from superarm.kernels.numeric import apart, kernel
from superarm.kernels.screen import precedes, score_line


@apart
def block_top(first, clock, step, b):
    """The largest bound in block ``b`` of 64 arms, of arms that were not evaluated in this step."""
    top = -1.0
    for j in range(64 * b, min(64 * b + 64, len(first))):
        if clock[j] != step and first[j] > top:
            top = first[j]
    return top


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


@apart
def leading_block(blocks):
    lead = 0
    for b in range(1, len(blocks)):
        lead = b if blocks[b] > blocks[lead] else lead
    return lead


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
    clock,
    steps,
    left,
    x,
    q,
    out,
):
    """Minoux's greedy with bounds that outlive the round: Coverage on Subsets, one replication, sparse support.

    mean, dev, q (E,); now, later: numerators of the level at this round and at the one until which the bounds of first
    gains ``held`` (L,) hold. ``first`` = held and ``left`` = weights between calls. ``clock`` is the step in which an
    arm was last evaluated, ``steps`` the number of steps so far; ``x`` is scratch, as long as the widest arm.
    """
    before = steps[0]
    slack = 1.0 if kind == 0 else 1.0 + 1e-12  # rounding keeps order in all but the iteration of the KL bound
    touched, n_touched = np.empty(1024, np.int64), 0
    for j in due:
        counted[j] = counts[j]
        held[j] = first[j] = -1.0
        if free[j]:
            score_arm(kind, start, mean, dev, later, counts, j, x, q)
            held[j] = first[j] = arm_gain(start, items, weights, q, j) * slack
        blocks[j // 64] = block_top(first, clock, -1, j // 64)
    for k in range(len(out)):
        steps[0] += 1
        best, most, used, n_used = -1, -1.0, np.empty(len(blocks), np.int64), 0
        ties = False
        while not ties:
            lead = leading_block(blocks)
            if blocks[lead] < 0.0 or blocks[lead] < most:
                break
            ties = blocks[lead] == most  # nothing is above: one sweep for arms that win by fewer pulls
            for b in range(lead, len(blocks) if ties else lead + 1):
                if blocks[b] < most:
                    continue
                evaluated = False
                for j in range(64 * b, min(64 * b + 64, len(first))):
                    if first[j] < 0.0 or clock[j] == steps[0] or not precedes(first[j], j, most, best, counts):
                        continue
                    evaluated = True
                    if clock[j] <= before:  # the first time in this call
                        score_arm(kind, start, mean, dev, now, counts, j, x, q)
                        if n_touched == len(touched):
                            touched = np.concatenate((touched, np.empty_like(touched)))
                        touched[n_touched] = j
                        n_touched += 1
                    first[j], clock[j] = arm_gain(start, items, left, q, j), steps[0]
                    if precedes(first[j], j, most, best, counts):
                        best, most = j, first[j]
                if evaluated:
                    used[n_used] = b
                    n_used += 1
                    blocks[b] = -1.0  # until the next step: the other arms of the block cannot win
        out[k] = best
        if best >= 0:
            first[best] = -1.0
            for e in range(start[best], start[best + 1]):
                left[items[e]] *= 1.0 - q[e]
        for n in range(n_used):
            blocks[used[n]] = block_top(first, clock, -1, used[n])
    for n in range(n_touched):
        first[touched[n]] = held[touched[n]]
    for n in range(n_touched):
        blocks[touched[n] // 64] = block_top(first, clock, -1, touched[n] // 64)
    for k in range(len(out)):
        if out[k] >= 0:
            for e in range(start[out[k]], start[out[k] + 1]):
                left[items[e]] = weights[items[e]]
