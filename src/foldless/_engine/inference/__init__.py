"""How sure a score is: intervals of cross-validated scores, comparisons of models."""
