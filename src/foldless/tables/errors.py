"""What is wrong with a file or an option, in one line, and what to try."""

from difflib import get_close_matches


class TableError(ValueError):
    """One line that says what is wrong, and a hint."""

    def __init__(self, cause: str, hint: str) -> None:
        super().__init__(f"{cause} {hint}")
        self.cause = " ".join(str(cause).split())
        self.hint = " ".join(str(hint).split())


def unknown_column(option, name, known):
    """The error of a column that the table does not have."""
    known = list(map(str, known))
    close = get_close_matches(name, known, n=3) or [each for each in known if each.lower() == name.lower()]
    shown = ", ".join(map(repr, close or known[:8])) + ("" if close or len(known) <= 8 else ", ...")
    hint = f"Did you mean {shown}?" if close else f"There are {shown}."
    return TableError(f"{option}: there is no column {name!r}.", hint)
