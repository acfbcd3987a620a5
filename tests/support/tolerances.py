"""How close is close: the tolerances of all tests."""

import numpy as np

RTOL = {np.dtype(np.float64): 1e-8, np.dtype(np.float32): 2e-3}


def assert_close(actual, expected, *, scale=None, rtol=None):
    """Largest difference relative to the size of the values: the one place that knows tolerances."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, (actual.shape, expected.shape)
    rtol = RTOL.get(np.result_type(actual), 1e-8) if rtol is None else rtol
    scale = max(np.abs(expected).max(initial=0.0), 1e-300) if scale is None else scale
    worst = np.abs(actual - expected).max(initial=0.0)
    assert worst <= rtol * scale, f"differs by {worst:.3g}, allowed {rtol * scale:.3g}"


def assert_near(found, expected, tolerance, size=1.0):
    """Within ``tolerance`` of the largest value, or of ``size``."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.isfinite(found).all()
    worst, scale = np.abs(found - expected).max(), max(size, np.abs(expected).max())
    assert worst <= tolerance * scale, f"differs by {worst:.3g}, allowed {tolerance * scale:.3g}"
