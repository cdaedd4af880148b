"""Simulation: play policies on instances, and measure their regret."""
