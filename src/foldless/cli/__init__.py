"""The command line ``foldless`` (extra ``cli``)."""
