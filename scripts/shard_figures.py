"""What cutting by owner gives: owners spread over databases by a hash, played through many times.

python scripts/shard_figures.py [STEPS_PER_S]
"""

import hashlib
import math
import sys
from statistics import mean

OWNERS = 1000
TIMES = 20
DATABASES = (1, 2, 4, 8, 16)


def fullest(databases: int, trial: int) -> int:
    """How many owners the fullest database has, with rendezvous hashing."""
    counts = [0] * databases
    for owner in range(OWNERS):
        scores = [hashlib.blake2b(f"{trial}/{owner}/{one}".encode()).digest() for one in range(databases)]
        counts[scores.index(max(scores))] += 1
    return max(counts)


def main() -> None:
    """One line per number of databases."""
    one_does = float(sys.argv[1]) if len(sys.argv) > 1 else 5000.0
    for databases in DATABASES:
        share = OWNERS / databases
        computed = share + math.sqrt(2 * share * math.log(databases)) if databases > 1 else share
        played = mean(fullest(databases, trial) for trial in range(TIMES)) if databases > 1 else share
        total = one_does * OWNERS / played
        print(f"| {databases} | {played:.0f} (computed {computed:.0f}) | {total:,.0f} |")


if __name__ == "__main__":
    main()
