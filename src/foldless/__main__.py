"""``python -m foldless`` is the command line."""

from foldless.cli import main

main()
