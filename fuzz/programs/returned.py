"""The models that ``return_estimator=True`` gives back: fits on training parts that never happened."""

import numpy as np

from fuzz import data as sets
from fuzz import models
from fuzz.judge import Skip
from fuzz.oracles import LD, stack
from fuzz.programs.confounds import draw_confounds, reader, without_part
from fuzz.programs.fitting import check_size, compare, new_rows, started
from fuzz.programs.searching import case, problem_of_model
from fuzz.programs.validation import draw_splits, functions_of


def small_alpha(rng, model):
    """The coefficient penalty and a tiny alpha meet more often than elsewhere."""
    if model.option("penalty") == "coef" and rng.random() < 0.5:
        model.alpha = float(10.0 ** rng.integers(-12, -3))
        return True
    return False


def returned(rng, s, judge):
    """Predictions, leave-one-out and updates of the models of ``cross_validate``."""
    if rng.random() < 0.15:
        return returned_theirs(rng, s, judge)
    with_confounds = rng.random() < 0.3
    model, d, given = started(rng, s, judge, most=22, least=12 if with_confounds else 6, loo_cut=not with_confounds)
    if small_alpha(rng, model):
        check_size(model, d)
    C = None
    if with_confounds:
        model.options.pop("priors", None)
        if model.name == "KernelFisherDiscriminant":
            if len(d.classes) > 2 or model.option("class_weight"):
                raise Skip  # what confounds explain of several classes is judged elsewhere
            model.options["threshold"] = "pm1"
        d, C = draw_confounds(rng, d, more=4)
        given = given if d.weights is not None else ""
        s.let("C", C[: d.n])
        s.let("C_new", C[d.n :])
    splits, groups = draw_splits(rng, s, d, partition=rng.random() < 0.7, repeats=not with_confounds)
    if with_confounds and min(len(train) for train, _ in splits) < 6:
        raise Skip
    new = new_rows(rng, model, d, 4)
    s.let("X_new", new)
    params = ', params={"sample_weight": w}' if given else ""
    params += ", confounds=C" if with_confounds else ""
    s.run(
        f"cross_validate({model.text}, X, y, cv=cv{groups}{params}, error_score='raise', return_estimator=True)"
        "['estimator']",
        "estimators",
    )
    judge.equal("number of models", s.run("len(estimators)"), len(splits))
    place = int(rng.integers(len(splits)))
    train, test = splits[place]
    problem = model.problem(d, new.astype(LD), C=C)
    if any(len(np.unique(each)) < len(each) for each, _ in splits):
        problem = functions_of(problem, d, train)  # training rows that repeat: models are fitted on these alone
    s.run(f"estimators[{place}]", "model")
    judge_model(s, judge, model, d, problem, train, test, with_confounds)
    if len(np.unique(train)) == len(train):
        judge_rest(rng, s, judge, model, d, problem, train, test, bool(given), with_confounds)


def outputs_of(model, d, problem, with_confounds):
    """A function (train, rows, at_mean) to the fits that the fitted model shows."""
    if not with_confounds:
        return lambda train, rows, at_mean=False: model.refit(problem, d, train)(rows)
    read = reader(model, d)
    return lambda train, rows, at_mean=False: read(without_part(problem, train, rows, at_mean))


def judge_model(s, judge, model, d, problem, train, test, with_confounds):
    """Training rows, test rows and new ones."""
    method = "decision_function" if model.classifies else "predict"
    fits_at = outputs_of(model, d, problem, with_confounds)
    flat = not model.classifies and d.y.ndim == 1
    new = np.arange(d.n, len(problem.K))
    s.let("train", train)
    s.let("test", test)
    for what, rows, X, C in (
        ("training rows", train, "X[train]", "C[train]"),
        ("test rows", test, "X[test]", "C[test]"),
        ("new rows", new, "X_new", "C_new"),
    ):
        more = f", confounds={C}" if with_confounds else ""
        compare(judge, f"{method}, {what}", s.run(f"model.{method}({X}{more})"), fits_at(train, rows), flat)
    if with_confounds:
        fits = fits_at(train, new, True)
        compare(judge, f"{method}, confounds at their mean", s.run(f"model.{method}(X_new)"), fits, flat)
    elif model.classifies:
        judge.labels("predict, new rows", s.run("model.predict(X_new)"), fits_at(train, new), d.classes)


def judge_rest(rng, s, judge, model, d, problem, train, test, weighted, with_confounds):
    """Leave-one-out of a returned model, and updates of it."""
    active = train[np.asarray(d.w, float)[train] > 0]
    least = 2 if d.codes is None else np.bincount(d.codes[active], minlength=len(d.classes)).min()
    fits_at = outputs_of(model, d, problem, with_confounds)
    flat = not model.classifies and d.y.ndim == 1
    if least > 1 and len(active) > (6 if with_confounds else 3) and model.option("threshold") != "loo":
        method = "loo_decision_function" if model.classifies else "loo_predict"
        loo = stack([fits_at(train[train != row], [row]) for row in train])
        found = s.run(f"model.{method}()")
        compare(judge, method, found, loo, flat)
    if np.isin(test, train).any() or rng.random() < 0.5:
        return
    words = ["X[test]", "y[test]"] + ["sample_weight=w[test]"] * weighted + ["confounds=C[test]"] * with_confounds
    s.run(f"model.partial_fit({', '.join(words)})")
    both = np.concatenate([train, test])
    method = "decision_function" if model.classifies else "predict"
    more = ", confounds=C" if with_confounds else ""
    fits = fits_at(both, np.arange(d.n))
    compare(judge, f"{method} after an update", s.run(f"model.{method}(X{more})"), fits, flat)
    s.run(f"model.forget({list(range(len(train), len(both)))})")
    compare(
        judge, f"{method} after two updates", s.run(f"model.{method}(X{more})"), fits_at(train, np.arange(d.n)), flat
    )


def returned_theirs(rng, s, judge):
    """The same of scikit-learn's estimators, which are fitted."""
    model = models.draw_their(rng, sets.pick(rng, "Ridge", "RidgeClassifier", "KernelRidge"))
    d = sets.draw(rng, model.classifies, most=20, plain=True)  # scikit-learn's solvers lose digits elsewhere
    judge.label = model.label
    s.let("X", d.X)
    s.let("y", d.y)
    params = ""
    if d.weights is not None:
        s.let("w", d.weights)
        params = ', params={"sample_weight": w}'
    splits, groups = draw_splits(rng, s, d, partition=True)
    new = new_rows(rng, model, d, 4)
    s.let("X_new", new)
    call = f"cross_validate({model.text}, X, y, cv=cv{groups}{params}, return_estimator=True)"
    s.run(f"{call}['estimator']", "estimators")
    place = int(rng.integers(len(splits)))
    s.run(f"estimators[{place}]", "model")
    judge_model(s, judge, model, d, model.problem(d, new.astype(LD)), *splits[place], False)


def returned_nested(rng, s, judge):
    """The models of ``nested_cross_validate``, and CV+ intervals of new rows from them."""
    model, d, grid, given = case(rng, s, judge, 14, returned=True)
    if small_alpha(rng, model):
        grid["alpha"] = sorted({model.alpha, 1e-2})
        s.let("grid", grid)
    splits, groups = draw_splits(rng, s, d, partition=True)
    if groups or len(splits) > 6 or min(len(test) for _, test in splits) < 2:
        raise Skip
    counted = np.asarray(d.w, float) > 0
    if d.codes is not None:
        for train, _ in splits:
            if np.bincount(d.codes[train][counted[train]], minlength=len(d.classes)).min() < 2:
                raise Skip
    params = ', params={"sample_weight": w}' if given else ""
    new = new_rows(rng, model, d, 3)
    s.let("X_new", new)
    # tells whether a refusal has good reason
    model.refit(model.problem(d, alpha=min(grid["alpha"]), kernel=model.kernel), d, splits[0][0])
    s.run(
        f"nested_cross_validate(FoldlessSearchCV({model.text}, grid), X, y, cv=cv,"
        f" scoring={'accuracy' if model.classifies else 'neg_mean_squared_error'!r}{params}, return_estimator=True)",
        "result",
    )
    refits, method = [], "decision_function" if model.classifies else "predict"
    flat = not model.classifies and d.y.ndim == 1
    for place, ((train, _), chosen) in enumerate(zip(splits, s.run("result.best_params"), strict=True)):
        problem = problem_of_model(model, d, chosen, new.astype(LD))
        problem = functions_of(problem, d, train)  # the search fits its models on the training part and nothing else
        refits.append(model.refit(problem, d, train))
        fits = refits[-1](np.arange(d.n, len(problem.K)))
        compare(judge, f"{method}, new rows", s.run(f"result.estimator[{place}].{method}(X_new)"), fits, flat)
        fits = refits[-1](train)
        s.let("train", np.asarray(train))
        compare(judge, f"{method}, training rows", s.run(f"result.estimator[{place}].{method}(X[train])"), fits, flat)
    if model.name == "LSSVR":
        intervals_of_folds(rng, s, judge, d, splits, refits)


def intervals_of_folds(rng, s, judge, d, splits, refits):
    """CV+: f_k(x) -+ |y_i - f_k(x_i)|, k the fold of row i."""
    coverage = float(sets.pick(rng, 0.5, 0.8, 0.9))
    found = s.run(f"result.predict_interval(X_new, coverage={coverage})")
    new, low, high, errors = np.arange(d.n, d.n + 3), [], [], []
    Y = np.asarray(d.y, LD).reshape(d.n, -1)
    for (_, test), at in zip(splits, refits, strict=True):
        own, fits = at(test), at(new)
        for place, row in enumerate(test):
            residual = np.abs(Y[row] - own.values[place])
            low.append(fits.values - residual)
            high.append(fits.values + residual)
            errors.append(fits.tolerance + own.tolerance[place])
    rank = int(np.ceil(coverage * (len(low) + 1) - 1e-9))
    if rank > len(low):
        raise Skip
    ends = np.stack([np.sort(low, 0)[len(low) - rank], np.sort(high, 0)[rank - 1]], -1)
    tolerance = np.repeat(np.max(errors, 0)[..., None], 2, -1)
    if d.y.ndim == 1:
        ends, tolerance = ends[:, 0], tolerance[:, 0]
    judge.values("predict_interval, CV+", found, ends, tolerance, 0.05 * max(1.0, float(np.abs(ends).max())))


AREAS = {"returned models": returned, "returned models, nested": returned_nested}
