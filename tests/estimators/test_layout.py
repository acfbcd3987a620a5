"""What pickles hold changes with a new number of the layout only."""

import json

from support.layout import FILE, layout

WHAT_TO_DO = (
    "what pickles of models hold has changed. If a release has the old fields, add 1 to LAYOUT of"
    " foldless.estimators.versions; then, in tests/: python -m support.layout"
)


def test_the_fields_of_written_models_are_those_of_this_layout():
    assert layout() == json.loads(FILE.read_text()), WHAT_TO_DO
