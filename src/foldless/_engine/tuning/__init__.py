"""Hyper-parameters: criteria of held-out fits, the space they live in, grids and descents."""
