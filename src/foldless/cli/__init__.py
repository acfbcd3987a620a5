"""The command line ``foldless`` (extra ``cli``)."""

import sys

MISSING = """\
The command line needs packages that are not installed ({name}).
Install them in the folder of foldless with: pip install ".[cli]"
"""


def main() -> None:
    """Run the command line, or say what is missing for it."""
    try:
        from foldless.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("foldless"):
            raise
        sys.stderr.write(MISSING.format(name=error.name))
        sys.exit(2)
    app()
