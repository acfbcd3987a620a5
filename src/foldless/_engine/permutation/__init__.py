"""Permutation tests: labelings as columns of one product, metrics, null distributions, results."""
