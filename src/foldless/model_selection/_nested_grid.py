"""Nested cross-validation of a grid without refits.

Two exact ways for a grid, the cheaper by operations is taken (n rows, t of them left out, k alphas, s outer splits):

    one P for each candidate     10 n^3 for the decomposition of each kernel, then n^3 for each alpha's P; every outer
                                 training part is a Schur complement of it, whose diagonal gives the inner leave-one-out
                                 criterion and whose blocks give the outer predictions: n t^2 for each split
    the search on every part     10 (n - t)^3 for each kernel and split
"""

import numpy as np
from joblib import delayed

from foldless.bridge.adapters import FOLDLESS_ESTIMATORS
from foldless.bridge.candidates import candidates, settings
from foldless.bridge.path import ONE_FIT, ONE_P_PER_FOLD, Path
from foldless.bridge.progress import Progress, run_with_progress
from foldless.heldout.parts import TrainingParts
from foldless.heldout.solution import Part, Solution
from foldless.model_selection._grid import choose
from foldless.model_selection._outer import OuterSplitResult, given, outer_loss
from foldless.readout.calibration import fit_calibration
from foldless.tuning.selection import Selection


def nested_grid(data, criterion, outer, n_jobs, verbose):
    search, given = data.search, (data.X, data.y, data.sample_weight)
    listed = candidates(search.estimator, search.param_grid, *given)
    tried = settings(search.estimator, listed, *given)
    inner = [data.inner_splits(train) for train, _ in outer]
    shared = [_sharing_pays(setting, outer, inner) for setting in tried]
    jobs = (
        delayed(_losses)(data, criterion, setting, share, outer, inner)
        for setting, share in zip(tried, shared, strict=True)
    )
    found = run_with_progress(jobs, n_jobs, Progress(len(tried), "kernel settings", verbose))
    losses = np.empty((len(outer), len(listed), found[0].shape[-1]))
    for setting, values in zip(tried, found, strict=True):
        losses[:, setting.places] = values
    places = [choose(each, tried)[0] for each in losses]
    verdicts = [None] * len(outer)
    for place in set(places):
        setting = next(each for each in tried if place in each.places)
        alpha = setting.alphas[setting.places.index(place)]
        mine = [number for number, chosen in enumerate(places) if chosen == place]
        judged = _judge(data, criterion, setting, alpha, [outer[number] for number in mine], [inner[k] for k in mine])
        for number, verdict in zip(mine, judged, strict=True):
            verdict.params, verdict.inner_loss = listed[place], losses[number, place].sum()
            verdicts[number] = verdict
    return verdicts, _described(shared)


def _losses(data, criterion, setting, share, outer, inner):
    """Inner losses (n_splits, n_alphas, m) of one kernel setting."""
    selections = [_selection(data, criterion, setting, *part) for part in zip(outer, inner, strict=True)]
    return _from_one_p(setting, selections) if share else _anew(setting, selections)


def _selection(data, criterion, setting, split, inner):
    return Selection.of(
        setting.task,
        criterion,
        splits=inner,
        weight=data.search.criterion_weight,
        sample_weight=data.sample_weight,
        train=split[0],
    )


def _anew(setting, selections):
    """Inner losses (n_splits, n_alphas, m), each training part decomposed by itself."""
    return np.stack([each.path(setting.task.problem, setting.alphas)[0] for each in selections])


def _from_one_p(setting, selections):
    """The same from one P for each alpha: a training part is what is left of it without the other rows."""
    problem, rows = setting.task.problem, setting.task.problem.active
    whole = Selection.of(setting.task, selections[0].criterion)
    removed = [np.flatnonzero(~np.isin(rows, each.rows, assume_unique=True)) for each in selections]
    path, losses = problem.path(rows), []
    for alpha in setting.alphas:
        model = Solution(problem.replace(alpha=alpha), rows, whole.Y, path.with_alpha(alpha).explicit())
        losses.append([each.judge(_part(model, out, each)) for each, out in zip(selections, removed, strict=True)])
    return np.array(losses).transpose(1, 0, 2)


def _part(model, removed, selection):
    """The training part without ``removed``, ready for the inner splits."""
    part = model.without(removed)
    return part.alone() if selection.folds is not None and isinstance(part, Part) else part


EIGH = 10.0  # n^3 flops of an eigendecomposition at the speed of a matrix product
CALL = 5e6  # flops in the time of the small steps of one split


def _sharing_pays(setting, outer, inner):
    """Whether one P for each alpha takes fewer operations than a decomposition of every training part."""
    problem = setting.task.problem
    n = len(problem.active)
    if problem.n_features(n) is not None or (problem.drops_basis and inner[0] is not None):
        return False
    sizes = np.array([np.intersect1d(train, problem.active).size for train, _ in outer], float)
    sites = 2.0 if problem.drops_basis else 1.0
    left = sites * (n - sizes)
    split = 2 * sites * n * left**2 + (2 * sizes**2 * left if inner[0] is not None else 0.0) + CALL
    shared = EIGH * n**3 + len(setting.alphas) * ((sites * n) ** 3 + split.sum())
    return shared < EIGH * (sizes**3).sum()


def _counted(number):
    return f"{number} kernel setting{'' if number == 1 else 's'}"


def _described(shared):
    once, anew = sum(shared), len(shared) - sum(shared)
    text = f"one matrix P for each alpha of {_counted(once)}; every training part follows from it"
    other = f"each training part decomposed by itself for {_counted(anew)}, which is less work there"
    if not anew:
        return Path(ONE_FIT, text)
    return Path(ONE_P_PER_FOLD, other if not once else f"{text}; {other}")


def _judge(data, criterion, setting, alpha, outer, inner):
    """Held-out outputs, inside and outside, of one candidate for the outer splits that chose it."""
    task, problem = setting.task, setting.problem(alpha)
    holdout = TrainingParts(problem, task.Y, nested=True)
    holdout.plan([len(train) for train, _ in outer])
    for (train, test), splits in zip(outer, inner, strict=True):
        model = holdout.part(train)
        rule = task.rule(model, probabilities=data.probabilities)
        fits = model.fits(test)
        judged = problem.tied(test, task.plus_minus_fits(fits))
        decision = problem.tied(test, rule.decision(fits))
        selection = _selection(data, criterion, setting, (train, test), splits)
        own = model if splits is None else Solution(problem, model.rows, task.Y[model.rows])
        rows, scores = selection.tested_rows, selection.scores(own)[selection.tested]
        probabilities = None
        if data.probabilities and rule.calibrator is not None:
            probabilities = problem.tied(test, rule.proba(fits))
        elif data.probabilities and not isinstance(
            setting.estimator, FOLDLESS_ESTIMATORS
        ):  # as the search's own predict_proba
            counted = np.ones(len(rows)) if data.sample_weight is None else data.sample_weight[rows]
            sigmoid = fit_calibration("sigmoid", scores, task.codes[rows], task.n_classes, counted)
            probabilities = sigmoid.proba(decision)
        yield OuterSplitResult(
            params=None,
            inner_loss=np.nan,
            outer_loss=outer_loss(data, criterion, setting, test, judged, decision),
            inner_rows=rows,
            inside=given(setting, scores - rule.cut),
            outside=given(setting, decision, probabilities),
        )
