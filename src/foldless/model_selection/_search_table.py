"""A search as a table and in notebooks: scikit-learn's diagram, and below it what was found."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from foldless.results import by_name, card, frame, points, short


class SearchTable:
    """``to_frame`` and the HTML of a search."""

    history_: list
    cv_results_: dict

    def to_frame(self) -> Any:
        """``cv_results_`` as a table of pandas, one row for each candidate."""
        check_is_fitted(self)
        plain = {name: values.tolist() if np.ma.isMA(values) else values for name, values in self.cv_results_.items()}
        return frame(plain)

    def _html_repr(self):
        diagram = super()._html_repr()  # type: ignore[misc]
        return diagram + self._found() if hasattr(self, "cv_results_") else diagram

    def _found(self):
        """A card of all settings that were looked at, the best first."""
        deciding = "criterion" if "criterion" in self.history_[0] else "score"
        values = np.array([each[deciding] for each in self.history_], float)
        order = np.argsort(values if deciding == "criterion" else -values)
        best = np.isin(np.arange(len(values)), order[:1])
        picture = points(np.arange(len(values)), values, best, f"{deciding} of the settings in order; dark: the best")
        found = [f"{len(values)} settings"]
        for name in ("best_params_", "best_criterion_", "best_score_"):
            if hasattr(self, name):
                found.append(f"{name} {short(getattr(self, name))}")
        return card("; ".join(found), picture, by_name([self.history_[place] for place in order]))
