"""Random programs over the public surface, every number compared with plain refits in extended precision.

    python -m fuzz --seconds 60 --seed 0
    python -m fuzz --seed 0 --only 1234        # one program again, with everything it does

Which library is tested follows from PYTHONPATH. The exit code is 1 if something is beyond its tolerance.
"""
