"""Verbs on matrices, memory and threads: the only room that speaks to LAPACK."""
