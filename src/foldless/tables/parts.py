"""What a :class:`~foldless.tables.study.Study` is made of: plain frozen data.

Texts from the user's file (names of columns, classes, cells) stand in them as they are: whoever shows them escapes
them.
"""

import math
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Column:
    """One column of the table, and what it was taken for.

    Attributes
    ----------
    name : str, as in the file
    role : str, one of "target", "feature", "groups", "confound", "weights" and "dropped"
    kind : str, one of "number", "category", "boolean", "date", "text", "id", "constant" and "empty"
    why : str, the reason for the guess in a few words, or the option that said so
    n_missing : int, cells without a value
    n_distinct : int, different values, missing ones not counted
    examples : some values as text, of numbers the least, the median and the largest, else the most frequent
    """

    name: str
    role: str
    kind: str
    why: str
    n_missing: int
    n_distinct: int
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Data:
    """The table.

    Attributes
    ----------
    source : str, name of the file without its folder
    format : str, such as "csv" or "svmlight"
    n_rows, n_columns : int, of the file
    n_used : int, rows that were learnt from: those with a target, or a sample of them
    n_without_target : int, rows left out because their target is missing
    n_features : int, numbers that the model sees in a row: one for each level of a category, and so on
    n_missing : int, cells without a value among the features of the rows used
    sparse : bool, whether the features are a sparse matrix
    columns : the columns in the order of the file; of a sparse matrix only those beside it
    class_counts : {class: rows}, for classification
    group_count : int, different groups; 0 without
    """

    source: str
    format: str
    n_rows: int
    n_columns: int
    n_used: int
    n_without_target: int
    n_features: int
    n_missing: int
    sparse: bool
    columns: tuple[Column, ...]
    class_counts: dict[str, int] = field(default_factory=dict)
    group_count: int = 0


@dataclass(frozen=True)
class Finding:
    """Something that may make the scores too good, or the table other than it was meant.

    Attributes
    ----------
    kind : str, one of "copy of the target", "nearly the target", "duplicate rows", "duplicates across groups",
        "id column", "repeated id", "constant column", "empty column", "perfect score" and "no better than the baseline"
    severity : str, "high" where the scores can not be trusted before it is looked into, else "low"
    text : str, one or two sentences: what was found, and what to do
    columns : names of the columns in question
    rows : rows in question, counted as in the file from 1, without the header; at most 20 of them
    """

    kind: str
    severity: str
    text: str
    columns: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Score:
    """A score with its interval.

    Attributes
    ----------
    name : str, "accuracy", "balanced accuracy", "area under the ROC curve", "R2", "mean absolute error", "root mean
        squared error"; the first of a list of scores is the one that the run speaks of
    value : float
    low, high : float, ends of the interval; nan where there is none
    confidence : float, such as 0.9
    how : str, where the interval comes from
    greater_is_better : bool
    """

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    confidence: float = 0.9
    how: str = ""
    greater_is_better: bool = True


@dataclass(frozen=True)
class Trial:
    """One setting that the search looked at.

    Attributes
    ----------
    params : {name: value}, such as alpha and gamma
    criterion : float, the loss of the held-out fits, the less the better
    n_rows : int, rows that it was judged on
    """

    params: dict[str, float]
    criterion: float
    n_rows: int


@dataclass(frozen=True)
class FeatureScale:
    """What a learnt kernel multiplies a feature by: the larger, the more the model depends on it.

    Attributes
    ----------
    feature : str, a column, a level of one ("town_Ulm"), or that its cell is missing
    scale : float
    """

    feature: str
    scale: float


@dataclass(frozen=True)
class Chosen:
    """The model that was chosen on all rows used.

    Attributes
    ----------
    name : str, such as "LSSVC"
    kernel : str, such as "rbf"; "learnt" where the search has learnt it
    params : {name: value} of the chosen setting; of a learnt kernel the weights and widths of its two parts
    criterion_name : str, what the search minimised, such as "press"
    criterion : float, its value at the chosen setting; it was chosen for being good, and is no estimate
    trials : every setting that was looked at, in order
    steps : what happens to the columns before the model, one sentence each
    stopped : str, what ended the search before its end: "time_limit", "interrupted" or ""
    landmarks : int, how many of them approximate the kernel; 0: it is exact
    scales : those of the features in a learnt kernel, the largest first; () for other kernels
    """

    name: str
    kernel: str
    params: dict[str, float]
    criterion_name: str
    criterion: float
    trials: tuple[Trial, ...]
    steps: tuple[str, ...]
    stopped: str = ""
    landmarks: int = 0
    scales: tuple[FeatureScale, ...] = ()


@dataclass(frozen=True)
class Fold:
    """One outer split of the nested cross-validation.

    Attributes
    ----------
    n_train, n_test : int, rows
    params : {name: value} that the search chose without the test rows
    scores : {name: value} on the test rows
    """

    n_train: int
    n_test: int
    params: dict[str, float]
    scores: dict[str, float]


@dataclass(frozen=True)
class PermutationTest:
    """How often scores of permuted labels are at least as good as that of the true ones.

    The test has a search of its own, or none: its score and p-value are not those of the nested cross-validation.

    Attributes
    ----------
    score_name : str
    score : float, of the true labels, in the splits of the test
    null : ndarray of shape (n_permutations,), scores of permuted labels
    p_value : float, (1 + null scores at least as good) / (1 + n_permutations)
    n_rows : int, rows that were tested
    how : str, what was permuted, how the setting was chosen, and how it was computed
    within_groups : bool, whether labels moved within groups alone
    tested : str, what was cross-validated: "a smaller search, of 20 settings" or "one setting, ..."
    given_confounds : bool, whether labels kept their association with confounds
    """

    score_name: str
    score: float
    null: np.ndarray
    p_value: float
    n_rows: int
    how: str
    within_groups: bool = False
    tested: str = "a model of its own"
    given_confounds: bool = False


@dataclass(frozen=True)
class HeldOutRows:
    """What models that had not seen a row say of it; all arrays have one entry (or line) for each row used.

    Attributes
    ----------
    rows : ndarray of int, rows as in the file, counted from 1, without the header
    truth : ndarray, the classes as text, or the values
    fold : ndarray of int, the outer split of the nested cross-validation in which the row was tested; -1: in none
    nested_prediction : ndarray, by the model tuned without the fold of the row
    nested_decision : ndarray of shape (n,) for two classes and values, else (n, n_classes)
    loo_prediction : ndarray, by the chosen setting fitted without the row (without its group, where there are groups)
    loo_decision : ndarray, as ``nested_decision``; positive means the second class
    loo_probability : ndarray of shape (n, n_classes), or None for values
    influence : ndarray, how much forgetting the row would change the sum of squared leave-one-out residuals of the
        others, up or down (its absolute value); or None
    groups : ndarray of text, or None
    """

    rows: np.ndarray
    truth: np.ndarray
    fold: np.ndarray
    nested_prediction: np.ndarray
    nested_decision: np.ndarray
    loo_prediction: np.ndarray
    loo_decision: np.ndarray
    loo_probability: np.ndarray | None = None
    influence: np.ndarray | None = None
    groups: np.ndarray | None = None


@dataclass(frozen=True)
class Importance:
    """What a column is worth: the loss of score on held-out rows whose values of it are shuffled.

    Attributes
    ----------
    column : str
    mean, deviation : float, over the shuffles
    """

    column: str
    mean: float
    deviation: float


@dataclass(frozen=True)
class LearningPoint:
    """The score on the same held-out rows after learning from fewer rows.

    Attributes
    ----------
    n_train : int
    train_scores, test_scores : floats, of the rows learnt from and of held-out rows in each of the folds looked at
    """

    n_train: int
    train_scores: tuple[float, ...]
    test_scores: tuple[float, ...]


@dataclass(frozen=True)
class SurprisingRow:
    """A row that the model without it gets most wrong: errors in labels are found here.

    Attributes
    ----------
    row : int, as in the file, counted from 1, without the header
    truth, prediction : str
    surprise : float, one minus the held-out probability of the true class; of values the size of the residual
    cells : {column: text} of the row as in the file
    """

    row: int
    truth: str
    prediction: str
    surprise: float
    cells: dict[str, str]
