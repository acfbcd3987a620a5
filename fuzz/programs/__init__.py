"""Random programs, one module for each part of the public surface."""
