"""The engine: a kernel becomes P, sets of rows are left out of it, decisions are read off. It knows no estimator."""
