"""What the tests share: data, cases, estimators, tolerances, and the oracle."""
