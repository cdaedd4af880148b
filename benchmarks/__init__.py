"""What superarm's speed is measured against, and how; ``make bench`` runs ``benchmarks.rounds``."""
