"""The theory of the paper, computable on a concrete instance."""
