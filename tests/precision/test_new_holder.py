"""A holder that the package does not know: four verbs are enough, for all that is left out and for every estimator."""

from collections import Counter

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut, StratifiedKFold

from foldless import LSSVC, FoldlessSearchCV, reference
from foldless._engine.heldout.solution import Solution
from foldless._engine.heldout.training_parts import TrainingParts as CheaperParts
from foldless._engine.linalg import NotPositiveDefiniteError
from foldless._engine.precision import choose, cost
from foldless._engine.precision.base import Path, Precision
from foldless._engine.precision.growing import Growing
from foldless.model_selection import cross_val_predict, explain, nested_cross_validate
from support.cases import Case, odd_splits
from support.parts import TrainingParts
from support.refits import with_fixed_functions
from support.tolerances import assert_close


class Bordered(Precision):
    """P as the corner of the inverse of [M Q; Q' 0], whose columns are read one by one."""

    choice, planned = "bordered", "inverse of a border of {n} rows"

    def __init__(self, S, Q, alpha):
        self.n, q = Q.shape
        self.alpha = alpha
        M = S + alpha * np.eye(self.n)
        self._inverse = np.linalg.inv(np.block([[M, Q], [Q.T, np.zeros((q, q))]]))

    @property
    def G(self):
        return self._inverse[self.n :, : self.n]

    def apply(self, Y):
        return self._inverse[: self.n, : self.n] @ Y

    def diagonal(self):
        return self._inverse.diagonal()[: self.n].copy()

    def columns(self, rows):
        return self._inverse[: self.n, rows]


def whitened(case, rows):
    root = np.sqrt(case.w[rows])[:, None]
    return root * case.K[np.ix_(rows, rows)] * root.T, root * case.Q[rows]


def solution(case):
    problem = case.problem()
    rows = problem.active
    return Solution.fit(problem, rows, case.Y[rows], Bordered(*whitened(case, rows), case.alpha))


CASES = [Case(weights=weights, q=q) for weights in ("none", "zeros") for q in (0, 1, 3)]
cases = pytest.mark.parametrize("case", CASES, ids=str)


def refit(case, train, rows):
    return reference.heldout_fits(case.K, case.Y, train, rows, case.alpha, **case.oracle)


@cases
def test_every_verb_follows_from_four(case):
    rows = np.flatnonzero(case.w)
    S, Q = whitened(case, rows)
    P, G = reference.precision(S, case.alpha, Q=Q)
    holder, Y, te = Bordered(S, Q, case.alpha), case.Y[rows], np.array([5, 2, 9])
    A, block = P @ Y, P[np.ix_(te, te)]
    assert_close(holder.apply(Y), A)
    if case.q:
        assert_close(holder.G, G)
    assert_close(holder.block(te), block)
    assert_close(holder.squared_diagonal(), np.square(P).sum(0))
    assert_close(holder.diagonal_blocks(te[:, None])[:, 0, 0], P.diagonal()[te])
    assert_close(holder.diagonal_blocks(te[None])[0], block)
    assert_close(holder.loo_residual(A, Y, holder.diagonal()), A / P.diagonal()[:, None])
    assert_close(holder.explicit().P, P)
    assert_close(holder.prepare_blocks().P, P)
    held = holder.held_out(te)
    assert_close(held.factor @ held.factor.T, block)
    assert_close(held.solve(A[te]), np.linalg.solve(block, A[te]))
    assert_close(held.solve_general(A[te]), np.linalg.solve(block, A[te]))
    assert_close(held.residual(A, Y), np.linalg.solve(block, A[te]))
    assert held.keeps_digits
    assert not holder.ill_conditioned(block[None]).any()
    assert holder.feature_weights(te) is None
    assert holder.current
    assert not holder.grows
    assert not holder.through_features
    assert holder.drift == 0.0
    assert holder.Omega is None


@cases
def test_leave_one_out_equals_refits(case):
    whole = solution(case)
    expected = [refit(case, np.setdiff1d(whole.rows, row), [row])[0] for row in whole.rows]
    assert_close(whole.loo().fits[:, 0], np.array(expected))


@cases
@pytest.mark.parametrize("nested", [False, True])
def test_training_parts_equal_refits(case, nested):
    parts = TrainingParts(case.problem(), case.Y, nested=nested, strategy="part", solution=solution(case))
    everything = np.arange(len(case.K))
    for train, _ in odd_splits(len(case.K)):
        part = parts.part(train)
        assert_close(part.fits(everything), refit(case, train, everything))
    part = parts.part(np.arange(4, 26))
    inner = [refit(case, np.setdiff1d(part.rows, row), [row])[0] for row in part.rows]
    assert_close(part.loo().fits[:, 0], np.array(inner))
    assert_close(part.as_solution().fits(everything), refit(case, part.rows, everything))


@cases
def test_pairs_and_class_matrices_equal_refits(case):
    whole = solution(case)
    pairs = np.array([[0, 1], [5, 2], [7, 16]])
    batch = whole.held_out(pairs)
    for k, pair in enumerate(whole.rows[pairs]):
        train = np.setdiff1d(whole.rows, pair)
        assert_close(batch.fits[k], refit(case, train, pair))
        N, U = batch.moments()[:2]
        weighted = case.Y[train] * case.w[train, None]
        assert_close(N[k], weighted.T @ case.Y[train])
        assert_close(U[k], weighted.T @ (case.Y[train] - refit(case, train, train)), scale=np.abs(N[k]).max())
        alone = whole.without(pairs[k]).moments()
        assert_close(alone.U, U[k], scale=np.abs(N[k]).max())


# -- put in front of the list, it serves whole estimators --------------------------------------------------------------


class Counted(Bordered):
    made = 0

    def __init__(self, S, Q, alpha):
        super().__init__(S, Q, alpha)
        type(self).made += 1


@pytest.fixture
def bordered(monkeypatch):
    """The holder in front of the list; how often one is made is counted, and no other of the list is."""
    monkeypatch.setattr(Counted, "made", 0)
    monkeypatch.setattr(choose, "HOLDERS", [Counted, *choose.HOLDERS])
    for other in choose.HOLDERS[1:]:
        monkeypatch.setattr(other, "from_problem", None)
        monkeypatch.setattr(other, "path", None)
    return Counted


SETTINGS = [{"kernel": "rbf"}, {"kernel": "linear"}, {"kernel": "rbf", "penalty": "coef"}]
settings = pytest.mark.parametrize("setting", SETTINGS, ids=lambda each: "-".join(each.values()))


def problem_of_two_classes(n=40):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + rng.normal(size=n) > 0).astype(int)


def results(setting):
    """What an estimator returns: its fit, held-out scores of rows and folds."""
    X, y = problem_of_two_classes()
    model = LSSVC(alpha=0.3, gamma=0.2, **setting)
    folds, options = StratifiedKFold(10), {"method": "decision_function"}
    fitted = model.fit(X, y)
    return {
        "fit": fitted.decision_function(X),
        "leave-one-out": fitted.loo_decision_function(),
        "rows": cross_val_predict(model, X, y, cv=LeaveOneOut(), **options),
        "folds": cross_val_predict(model, X, y, cv=folds, **options),
    }


@settings
def test_new_holder_serves_an_estimator(setting, request):
    expected = results(setting)
    bordered = request.getfixturevalue("bordered")
    found = results(setting)
    assert bordered.made
    for name, values in expected.items():
        assert_close(found[name], values, scale=1.0)
    X, y = problem_of_two_classes()
    model = LSSVC(**setting).fit(X, y)
    assert model.holder_ == "bordered"
    assert "inverse of a border of 40 rows" in explain(model, X, y, cv=LeaveOneOut()).reason


def searched(setting, **options):
    X, y = problem_of_two_classes()
    search = FoldlessSearchCV(LSSVC(**setting), random_state=0, **options).fit(X, y)
    return search.best_params_["alpha"], search.decision_function(X)


@settings
@pytest.mark.parametrize("options", [{"param_grid": {"alpha": [0.1, 1.0, 10.0]}}, {"method": "gradient"}], ids=str)
def test_new_holder_serves_searches(setting, options, request):
    alpha, decision = searched(setting, **options)
    bordered = request.getfixturevalue("bordered")
    found, decision_found = searched(setting, **options)
    assert bordered.made
    assert found == pytest.approx(alpha, rel=1e-5)
    assert_close(decision_found, decision, scale=1.0, rtol=1e-5)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_new_holder_serves_conformal_predictions(fit_intercept, request):
    X, y = problem_of_two_classes()
    model = LSSVC(gamma=0.2, fit_intercept=fit_intercept)
    expected = model.fit(X, y).conformal_p_values(X[:4] + 0.1)
    assert request.getfixturevalue("bordered")
    assert_close(model.fit(X, y).conformal_p_values(X[:4] + 0.1), expected)
    assert model.holder_ == "bordered"


@settings
def test_new_holder_is_updated(setting, bordered):
    X, y = problem_of_two_classes()
    model = LSSVC(alpha=0.3, gamma=0.2, **setting).fit(X[:29], y[:29])
    model.partial_fit(X[29:30], y[29:30])  # features that were centred are solved anew
    made = bordered.made
    for row in range(30, 40):
        model.partial_fit(X[row : row + 1], y[row : row + 1])
    model.forget(np.arange(4))
    assert bordered.made == made  # the first P was updated, not made anew
    fixed = with_fixed_functions(LSSVC(alpha=0.3, gamma=0.2, **setting), X[:29])  # those of the first fit
    anew = fixed.fit(X[4:], y[4:])
    assert_close(model.decision_function(X), anew.decision_function(X))
    assert_close(model.loo_decision_function(), anew.loo_decision_function())


def test_holder_that_finds_no_factor_leaves_it_to_the_next(monkeypatch):
    class Refusing(Bordered):
        def __init__(self, S, Q, alpha):
            raise NotPositiveDefiniteError("not today")

    X, y = problem_of_two_classes()
    expected = LSSVC().fit(X, y).decision_function(X)
    monkeypatch.setattr(choose, "HOLDERS", [Refusing, *choose.HOLDERS])
    model = LSSVC().fit(X, y)
    assert model.holder_.startswith("factored")
    np.testing.assert_array_equal(model.decision_function(X), expected)


@pytest.mark.parametrize(("fit", "removal", "form"), [(2700.0, 1e9, "alone"), (1e9, 1e8, "array")])
def test_costs_of_a_holder_decide_the_plan(fit, removal, form, bordered, monkeypatch):
    monkeypatch.setattr(bordered, "fit_cost", classmethod(lambda cls, problem, n, nested=False: fit))
    monkeypatch.setattr(bordered, "removal_cost", classmethod(lambda cls, problem, n, t, nested=False: removal))
    case = Case()
    plan = CheaperParts(case.problem(), case.Y).planned({6: 10}).plan
    assert plan.form == form
    assert plan.holder is (None if form == "alone" else bordered)
    assert ("inverse of a border of 26 rows" in plan.reason) == (form == "array")


@pytest.mark.parametrize("nested", [False, True])
def test_costs_are_those_of_arrays_unless_stated(nested):
    problem = Case().problem()
    assert Bordered.fit_cost(problem, 26, nested=nested) == cost.dense_fit(26, nested=nested)
    assert Bordered.removal_cost(problem, 26, 6, nested=nested) == cost.dense_removal(26, 6, nested=nested)


def test_a_holder_is_chosen_once_for_a_problem_and_a_number_of_rows(monkeypatch):
    choices, problems = Counter(), []

    class Unsuited(Bordered):
        @classmethod
        def suits(cls, problem, n):
            choices[id(problem), n] += 1
            problems.append(problem)  # an id belongs to one problem while that is held
            return False

    monkeypatch.setattr(choose, "HOLDERS", [Unsuited, *choose.HOLDERS])
    X, y = problem_of_two_classes()
    cross_val_predict(LSSVC(), X, y, cv=StratifiedKFold(10))
    nested_cross_validate(FoldlessSearchCV(LSSVC(), {"alpha": [0.1, 1.0]}), X, y, cv=StratifiedKFold(5))
    assert choices
    assert max(choices.values()) == 1


def test_path_of_a_new_holder_is_declared(bordered):
    problem = Case().problem()
    path = problem.path(problem.active)
    assert isinstance(path, Path)
    assert not path.serves_every_alpha
    assert isinstance(path.with_alpha(0.5), bordered)
    assert path.with_alpha(0.5).alpha == 0.5


@pytest.mark.parametrize("q", [0, 1, 3])
def test_omega_follows_from_the_system(q):
    case = Case(q=q)
    S, Q = whitened(case, np.arange(len(case.K)))
    M = S + case.alpha * np.eye(len(S))
    holder = Bordered(S, Q, case.alpha)
    grown = Growing.of(holder.explicit(), holder.Omega, M, Q, entry=1.0, refines=True)
    expected = np.tril(np.linalg.inv(Q.T @ np.linalg.solve(M, Q)))
    assert_close(-np.tril(grown.square.H[:q, :q]), expected)
