"""Learning and forgetting rows exactly, and evidence that it is so."""
