"""Cross-validation of rows that do not fit into memory, on this machine or on a cluster, as in ``recipe``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from foldless.chunked.arguments import Settings, check_candidates, check_cv, check_estimator
from foldless.chunked.checkpoint import check_place
from foldless.chunked.cluster import ClusterReader, connected
from foldless.chunked.partitions import Partitions
from foldless.chunked.passes import Reader
from foldless.chunked.places import check_file, check_folder
from foldless.chunked.predictions import check_arrays
from foldless.chunked.recipe import validated
from foldless.chunked.result import ChunkedResult
from foldless.chunked.rows import layout_of
from foldless.chunked.sources import Source


def cross_validate(
    estimator: Any,
    data: Source,
    *,
    cv: int | None = 10,
    loo: bool = True,
    alphas: ArrayLike | None = None,
    param_grid: Mapping | Sequence[Mapping] | None = None,
    select: Literal[None, "kfold", "loo"] = None,
    predictions: Mapping | np.ndarray | str | os.PathLike | None = None,
    checkpoint: str | os.PathLike | None = None,
    classes: ArrayLike | None = None,
    sample: int = 10_000,
    random_state: int | np.random.RandomState | None = 0,
    verbose: int | None = None,
    client: Any = None,
) -> ChunkedResult:
    """Fit a model to chunks of rows, with exact k-fold and leave-one-out scores of the model.

    The kernel needs explicit features: ``kernel="linear"``, ``kernels.Nystroem``, ``kernels.RandomFeatures`` or another
    ``kernels.FeatureMap``. Widths, scales and landmarks come from a sample of all rows, never from labels, and are the
    same in every fold. Results do not depend on the sizes of the chunks, apart from rounding. Chunks in single
    precision are added up in double. Probabilities (``calibration=``) and the cut of ``threshold="loo"`` come from
    leave-one-out scores of the sample: with no more rows than it has, they are those of the estimator in memory. That
    cut has no leave-one-out of its own, and needs ``loo=False``.

    Parameters
    ----------
    estimator : LSSVC, LSSVR or KernelFisherDiscriminant
    data : what :func:`arrays`, :func:`parquet`, :func:`csv`, :func:`numbered`, :func:`iterator` or :func:`dask` returns
    cv : int or None, default=10
        Number of folds, drawn from the numbers of the rows and ``random_state``; groups stay together. None: the folds
        that come with the rows, or no folds.
    loo : bool, default=True; whether leave-one-out is evaluated
    alphas : array-like of numbers > 0, default=None; penalties to choose from; None: that of the estimator
    param_grid : dict of lists, or list of these, default=None
        Other parameters to choose from, such as gamma; all candidates share the passes over the data, each has sums of
        its own.
    select : {None, "kfold", "loo"}, default=None
        Whose squared error decides about these; None: that of the folds where there are some, which takes no further
        pass over the data.
    predictions : array, dict of arrays, path, "dask" or None, default=None
        Where held-out predictions go: a Parquet file, or arrays for some of the columns "fold", "decision",
        "prediction", "probability" (with a calibration), "loo_decision", "loo_prediction". One array takes decisions,
        or the values of a regression. On a cluster: a new folder, or one of older predictions, into which the workers
        write Parquet files, or "dask": ``result.predictions`` are then dask arrays in the chunks of the data, made when
        they are asked for.
    checkpoint : path of a folder or None, default=None; keeps the sums, from which an interrupted run goes on
    classes : array-like of labels, default=None; those that may occur, another one is an error; None: all that occur
    sample : int, default=10000
        Rows of the sample, of which widths, scales and landmarks come; with a ``calibration`` or threshold="loo" also
        the leave-one-out scores that fit them.
    random_state : int, RandomState or None, default=0; decides about folds and sample
    verbose : 0, 1 or None, default=None; progress: never, always, or in terminals where it takes some seconds
    client : dask.distributed.Client or None, default=None
        The cluster whose workers read and work on the chunks. None: this process; for :func:`dask` the client that is
        active, or a LocalCluster for this call.

    Returns
    -------
    ChunkedResult
        ``estimator``, ``test_score``, ``loo_score``, ``best_params`` and more; prints as a short text.

    Examples
    --------
    >>> import numpy as np
    >>> from foldless import LSSVC, chunked
    >>> X = np.random.default_rng(0).normal(size=(5000, 10))
    >>> y = X[:, 0] + X[:, 1] > 0
    >>> data = chunked.arrays(X, y, rows=1000)
    >>> result = chunked.cross_validate(LSSVC(kernel="linear"), data, cv=5, alphas=[0.1, 10, 1000])
    >>> result.best_params, result.test_score.shape
    ({'alpha': 10.0}, (5,))
    >>> round(result.loo_score, 2)
    0.99
    >>> result.estimator.predict(X[:3]) == y[:3]
    array([ True,  True,  True])
    """
    check_estimator(estimator)
    given = estimator.alpha if alphas is None else alphas
    settings = Settings.checked(
        cv=cv, loo=loo, alphas=given, param_grid=param_grid, select=select, sample=sample, random_state=random_state
    )
    if not isinstance(data, Source):
        raise ValueError(
            f"data: found {type(data).__name__}; give what chunked.arrays, parquet, csv, numbered, iterator or dask"
            " returns."
        )
    if classes is not None and not is_classifier(estimator):
        raise ValueError(f"classes: {type(estimator).__name__} has none.")
    check_cv(cv, select, data.n_rows, data.has_folds)
    check_candidates(estimator, settings.candidates, data.y if classes is None else classes, loo=loo)
    options = {"checkpoint": checkpoint, "predictions": predictions, "verbose": verbose}
    labels = is_classifier(estimator)
    check_place(checkpoint)
    if client is not None or isinstance(data, Partitions):
        check_folder(predictions, data)
        with connected(client) as client:
            return validated(estimator, ClusterReader(client, data, labels, classes, **options), settings)
    check_file(predictions, data)
    check_arrays(predictions, data.n_rows, labels)
    layout = layout_of(data.chunks(), labels, classes)
    if layout is None:
        raise ValueError("data: there are no chunks, or none that has rows.")
    return validated(estimator, Reader(data, layout, **options), settings)
