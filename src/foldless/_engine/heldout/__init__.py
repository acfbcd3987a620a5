"""Held-out fits of every kind from one P (P = M^-1 - M^-1 Q G, see ``foldless._engine.precision``)."""
