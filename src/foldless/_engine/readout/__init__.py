"""From fits to decisions: codings, discriminants, cuts, calibration, and the task that ties them to a problem."""
