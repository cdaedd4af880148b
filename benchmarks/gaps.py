"""How long exact gaps take: enumeration at 30 arms, branch and bound at 60. Run: python benchmarks/gaps.py"""

import time

import superarm as sa

SIZES = ((30, 5, 20), (60, 5, 1), (60, 5, 5), (60, 5, 20))


def main() -> None:
    for n_arms, k, n_items in ((12, 3, 2), *SIZES):  # the first compiles
        instance = sa.instances.random_coverage(n_arms, n_items, k, seed=1)
        started = time.perf_counter()
        found = sa.theory.gaps(instance, alpha=1.0)
        print(f"L={n_arms} K={k} M={n_items}: {time.perf_counter() - started:6.2f} s  {found}")


if __name__ == "__main__":
    main()
