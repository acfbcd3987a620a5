"""scikit-learn's side: its estimators as tasks, routes, stand-ins, scorers, progress."""
