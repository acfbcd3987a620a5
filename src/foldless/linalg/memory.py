"""Memory: how much is free, and a clear error before an allocation that cannot succeed."""

import os

import numpy as np

GIB = 2.0**30


def available_memory():
    """Bytes that can be allocated now, or None where the system does not tell."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None


def require_memory(shape, dtype, what):
    """Raise MemoryError before an allocation that cannot succeed, with the amount and a way out."""
    needed, free = float(np.prod(shape, dtype=float)) * np.dtype(dtype).itemsize, available_memory()
    if free is not None and needed > free:
        size = " x ".join(map(str, shape))
        raise MemoryError(
            f"{what} ({size}, {np.dtype(dtype).name}) needs {needed / GIB:.1f} GiB and {free / GIB:.1f} GiB are"
            " available. Use fewer rows, float32 input (half the memory), or kernel='linear' on explicit features"
            " (for instance sklearn.kernel_approximation.Nystroem), whose memory grows with their number instead."
        )
