"""P = M^-1 - M^-1 Q G, held in several ways behind the same verbs (``base.Precision``)."""
