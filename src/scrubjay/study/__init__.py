"""The experiments: what representations know."""
