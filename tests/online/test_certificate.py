"""The certificate of a solution says by how much it is wrong."""

from dataclasses import replace

import numpy as np
import pytest

import foldless._engine.online.certificate as certificate
import foldless._engine.online.updates as updates
from foldless import kernels
from foldless._engine.heldout.problem import Problem
from support.cases import Case
from support.updates import allowed, begin, condition, every_case, every_penalty, forget, learn, problem_of, targets


def certificate_of(whole, Y, n_forgotten, inherited):
    """The certificate of a solution with targets Y."""
    new = updates.solve_anew(whole.problem, Y)
    stored, again = ({"dual": model.expansion()[1], "offset": model.B} for model in (whole, new))
    return certificate.compare(whole, new, stored, again, n_forgotten=n_forgotten, inherited=inherited)


def updated_solution(case):
    rows = np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.arange(16, 21))
    return forget(case, whole, rows, np.array([2, 19]))


@every_case
def test_the_certificate_of_an_updated_solution_holds(case):
    whole, rows = updated_solution(replace(case, shape=(26, case.shape[1])))
    case = replace(case, shape=(26, case.shape[1]))
    found = certificate_of(whole, targets(case, rows), 2, ())
    assert found.holds
    assert "equals a new fit" in str(found)
    assert found.n_samples == 19
    assert found.n_forgotten == 2
    active = rows[case.w[rows] > 0]
    cond = condition(case.K[np.ix_(active, active)], case.w[active], case.alpha)
    floor = 1e-8 if case.dtype == "float64" else 1e-3
    assert found.limit == pytest.approx(max(floor, 1e3 * np.finfo(case.dtype).eps * cond), rel=1e-2)
    size = np.abs(case.K).max() * np.abs(whole.A).sum(0).max() / np.abs(whole.Y).max()
    assert 0 < found.residual < 1e3 * allowed(case, rows) * max(1.0, size)
    assert found.difference <= found.limit
    assert found.loo_difference <= found.limit


@every_penalty
@pytest.mark.parametrize("weights", ["none", "random"])
def test_the_certificate_tells_by_how_much_a_model_is_wrong(penalty, weights):
    case = Case(penalty=penalty, weights=weights)
    for part, amount in (("A", 1e-3), ("B", 1e-3), ("A", 1e-7), ("B", 1e-7)):
        whole, rows = updated_solution(case)
        Y = targets(case, rows)
        right = begin(case, rows)
        beta, B, F = right.expansion()[1], right.B, right.loo().fits[:, 0]
        change = np.zeros_like(whole.A)
        if part == "A":
            change[[3, -4], 1] = amount, -2 * amount
            vars(whole)["A"] = whole.A + change
        else:
            vars(whole)["B"] = whole.B + np.array([[0.0, amount]])
        found = certificate_of(whole, Y, 2, ())
        assert not found.holds
        assert "DIFFERS from" in str(found)
        if part == "B":
            size = max(np.abs(B).max(), np.abs(Y).max())  # an offset may be zero for good reason
            assert found.difference == pytest.approx(amount / size, rel=1e-3)
            assert found.loo_difference < 1e-10
            assert found.residual == pytest.approx(
                np.sqrt(case.w[rows]).max() * amount / np.abs(right.Y).max(), rel=1e-3
            )
        else:
            assert found.difference == pytest.approx(
                np.abs(whole.expansion()[1] - beta).max() / np.abs(beta).max(), rel=1e-3
            )
            size = max(np.abs(F).max(), np.abs(Y).max())
            assert found.loo_difference == pytest.approx(np.abs(whole.loo().fits[:, 0] - F).max() / size, rel=1e-3)
            root = np.sqrt(case.w[rows])[:, None]
            fits = case.K[np.ix_(rows, rows)] @ whole.expansion()[1] + whole.B
            wrong = root * case.Y[rows] - case.alpha * whole.A - root * fits
            assert found.residual == pytest.approx(np.abs(wrong).max() / np.abs(root * case.Y[rows]).max(), rel=1e-3)


def test_a_model_that_is_not_a_number_has_no_certificate():
    for part in ("A", "B", "loo"):
        whole, rows = updated_solution(Case())
        if part == "A":
            vars(whole)["A"] = np.full_like(whole.A, np.nan)
        elif part == "B":
            vars(whole)["B"] = np.full_like(whole.B, np.nan)
        else:
            whole.own_precision.__dict__["_diagonal"] = np.full(19, np.nan)
        found = certificate_of(whole, targets(Case(), rows), 2, ())
        assert not found.holds
        assert "DIFFERS from" in str(found)


def test_certificate_of_zero_targets_holds():
    case = Case()
    problem = problem_of(case, np.arange(12))
    found = certificate_of(updates.solve_anew(problem, np.zeros((12, 2))), np.zeros((12, 2)), 0, ())
    assert found.holds
    assert found.difference == found.residual == found.loo_difference == 0.0


def test_certificate_of_a_single_row_has_no_loo_difference():
    case = Case()
    found = certificate_of(begin(case, np.arange(1)), case.Y[:1], 3, ())
    assert np.isnan(found.loo_difference)
    assert found.holds


def test_certificate_of_an_indefinite_kernel_with_sufficient_alpha_holds():
    case = Case()
    K = case.K[:12, :12].copy()
    K[0, 0] -= 2.0
    problem = Problem.of(kernels.Precomputed(), K, alpha=3.0, Q=np.ones((12, 1)))
    found = certificate_of(updates.solve_anew(problem, case.Y[:12]), case.Y[:12], 0, ())
    assert found.holds
    assert found.limit == 1e-8


def test_the_certificate_names_what_was_inherited():
    case = Case()
    whole, rows = updated_solution(case)
    text = "resolved once, with forgotten rows: gamma"
    assert text in str(certificate_of(whole, targets(case, rows), 2, ("gamma",)))
    assert text not in str(certificate_of(whole, targets(case, rows), 0, ("gamma",)))
    assert text not in str(certificate_of(whole, targets(case, rows), 2, ()))
    assert "19 rows, 2 forgotten" in str(certificate_of(whole, targets(case, rows), 2, ()))
