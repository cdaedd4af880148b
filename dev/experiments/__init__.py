"""Experiments that judge superarm, and applications; ``superarm run dev/experiments/ads.toml`` runs one."""
