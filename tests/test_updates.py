"""Rows come and go: the growing holder of P, and the solutions made of it, against plain inverses and refits."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from cases import CASES, Case, assert_close
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foldless import kernels, reference
from foldless.heldout.problem import Problem
from foldless.heldout.solution import Part
from foldless.linalg import numpy as _array
from foldless.linalg.numpy import NotPositiveDefiniteError
from foldless.online import certificate, influence, updates
from foldless.precision.base import Explicit, SingularBlockError
from foldless.precision.growing import Growing, StaleError

EPS = np.finfo(float).eps
every_dtype = pytest.mark.parametrize("dtype", ["float64", "float32"])
every_q = pytest.mark.parametrize("q", [0, 1, 3])
every_kind = pytest.mark.parametrize("kind", ["P", "J"])

# -- the holder ----------------------------------------------------------------------------------------------------


class Sites:
    """A pool of sites with their M and Q, of which a holder shows some: ``now``, in its order."""

    def __init__(self, kind, q, dtype="float64", n=160, alpha=0.1, start=14, refines=True):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 4))
        K = np.exp(-0.2 * np.square(X[:, None] - X).sum(-1))
        Q = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])[:, :q]
        if kind == "J":  # every other site is a basis function: M = [alpha I, K; K', -I] is quasi-definite
            function = np.arange(n) % 2 == 1
            self.M = np.where(function[:, None] == function, 0.0, K) + np.diag(np.where(function, -1.0, alpha))
            Q[function] = 0.0
        else:
            self.M = K + alpha * np.eye(n)
        self.M, self.Q = self.M.astype(dtype), Q.astype(dtype)
        self.Y = rng.normal(size=(n, 2)).astype(dtype)
        self.rng, self.kind, self.dtype, self.now = rng, kind, dtype, np.arange(start)
        P, G, Omega = (part.astype(dtype) for part in self.inverse())
        explicit = Explicit(P, G, alpha, definite=kind == "P")
        M, Q = self.M[:start, :start], self.Q[:start]
        self.holder = Growing.of(explicit, Omega, M, Q, entry=1.0, refines=refines)
        self.A, self.B = P @ self.Y[:start], G @ self.Y[:start]

    def inverse(self):
        """P, G and Omega in double precision."""
        n, q = len(self.now), self.Q.shape[1]
        M, Q = self.M[np.ix_(self.now, self.now)].astype(float), self.Q[self.now].astype(float)
        H = np.linalg.inv(np.block([[M, Q], [Q.T, np.zeros((q, q))]]))
        return H[:n, :n], H[n:, :n], -H[n:, n:]

    def border(self, new):
        return self.holder.border(self.M[np.ix_(self.now, new)], self.Q[new], self.M[np.ix_(new, new)])

    def learn(self, new):
        border = self.border(new)
        e = self.Y[new] - self.M[np.ix_(new, self.now)] @ self.A - self.Q[new] @ self.B
        self.A, self.B = border.solution(self.A, self.B, e)
        self.holder, self.now = border.learn(), np.concatenate([self.now, new])

    def forget(self, places):
        removal = self.holder.removal(places)
        self.A, self.B = removal.solution(self.A, self.B)
        self.holder, self.now = removal.forget(), np.delete(self.now, places)

    def others(self):
        return np.setdiff1d(np.arange(len(self.M)), self.now)

    def walk_to(self, target, most=6):
        """Blocks of every size come and go at random until ``target`` sites are held; the first twelve stay."""
        while len(self.now) != target:
            away = target - len(self.now)
            t = int(self.rng.integers(1, most + 1))
            if (self.rng.random() < 0.75) == (away > 0):
                room = min(len(self.others()), max(away, 3))
                self.learn(self.rng.permutation(self.others())[: min(t, room)])
            else:
                free = np.flatnonzero(self.now >= 12)
                self.forget(self.rng.permutation(free)[: min(t, max(-away, 1))])
            yield

    def check(self, rtol=None):
        """Every verb, the solution, and what is stored."""
        P, G, Omega = (part.astype(self.dtype) for part in self.inverse())
        n, holder, size = len(self.now), self.holder, np.abs(P).max(initial=0.0)
        Y, rows = self.Y[self.now], self.rng.permutation(np.flatnonzero(self.now >= 12))[:6]
        assert holder.n == n
        assert holder.current
        for found, expected in (
            (holder.apply(Y), P @ Y),
            (holder.diagonal(), P.diagonal()),
            (holder.columns(rows), P[:, rows]),
            (holder.block(rows), P[np.ix_(rows, rows)]),
            (holder.block_times(rows, Y[rows]), P[np.ix_(rows, rows)] @ Y[rows]),
            (holder.diagonal_blocks(rows[: len(rows) // 2 * 2].reshape(-1, 2))[0], P[np.ix_(rows[:2], rows[:2])]),
            (holder.explicit().P, P),
            (holder.explicit().apply(Y), P @ Y),
            (holder.squared_diagonal(), np.square(P).sum(0)),
            (holder.residual(rows, P @ Y, Y), np.linalg.solve(P[np.ix_(rows, rows)], (P @ Y)[rows])),
            (holder.loo_residual(P @ Y, Y), P @ Y / P.diagonal()[:, None]),
            (self.A, P @ Y),
        ):
            assert found.dtype == self.dtype
            assert_close(found, expected, rtol=rtol)
        if len(G):
            assert_close(holder.G, G, rtol=rtol)
            assert_close(self.B, G @ Y, rtol=rtol, scale=np.abs(Y).max())
            assert_close(holder.apply(self.Q[self.now]), np.zeros((n, len(G)), self.dtype), rtol=rtol, scale=size)
        self.check_storage(Omega, rtol)

    def check_storage(self, Omega, rtol=None):
        """M and Q as they were given, Omega, zeros elsewhere; as many free slots as are not taken."""
        square, slots, q = self.holder._held, self.holder._slots, self.Q.shape[1]
        used = np.concatenate([np.arange(q), slots])
        assert sorted([*used, *square.free]) == list(range(len(square)))
        Z = np.triu(square.Z) + np.triu(square.Z, 1).T
        expected = np.block(
            [[np.zeros((q, q)), self.Q[self.now].T], [self.Q[self.now], self.M[np.ix_(self.now, self.now)]]]
        )
        np.testing.assert_array_equal(Z[np.ix_(used, used)], expected)
        H = np.tril(square.H)
        assert_close(H[:q, :q], -np.tril(Omega), rtol=rtol, scale=max(np.abs(Omega).max(initial=0.0), 1e-300))
        assert not H[square.free].any()
        assert not H[:, square.free].any()
        assert not Z[square.free].any()


@every_kind
@every_q
@pytest.mark.parametrize(("dtype", "refines"), [("float64", True), ("float64", False), ("float32", True)])
def test_every_verb_after_any_sequence_equals_a_plain_inverse(kind, q, dtype, refines):
    sites, sizes = Sites(kind, q, dtype, n=200, refines=refines), []
    for target in (190, 14, 60):
        for step, _ in enumerate(sites.walk_to(target)):
            sizes.append(len(sites.holder._held))
            if step % 7 == 0:
                sites.check()
        sites.check()
    assert (np.diff(sizes) > 0).sum() >= 2  # the square grew
    assert (np.diff(sizes) < 0).sum() >= 1  # and shrank
    assert sites.holder.drift < (1e-9 if dtype == "float64" else 1e-2)


@every_kind
def test_slots_are_used_again(kind):
    sites = Sites(kind, 1)
    size = len(sites.holder._held)
    for _ in range(100):
        sites.learn(sites.others()[:2])
        sites.forget(np.array([12, 15]))
    sites.check()
    assert len(sites.holder._held) == size


def test_the_square_grows_by_a_part_of_its_size():
    """Full squares grow by more than is asked for, and by no more than a quarter."""
    sites = Sites("P", 0, n=900, start=500)
    for _ in range(2):
        size, free = len(sites.holder._held), len(sites.holder._held.free)
        sites.learn(np.arange(len(sites.now), len(sites.now) + free))
        assert len(sites.holder._held) == size  # filled
        sites.learn(np.array([len(sites.now)]))
        assert size + 10 < len(sites.holder._held) < 1.25 * size
    assert_close(sites.holder.diagonal(), sites.inverse()[0].diagonal())


def test_a_block_larger_than_the_room_is_learnt():
    sites = Sites("P", 1, n=200)
    sites.learn(np.arange(14, 190))
    sites.check()


@every_kind
def test_everything_forgotten_and_learnt_again(kind):
    sites = Sites(kind, 0)
    sites.forget(np.arange(14))
    assert sites.holder.n == 0
    assert not sites.holder._held.array.any()
    sites.learn(np.arange(20, 23))
    sites.check()
    sites.learn(np.array([40]))
    sites.check()


@every_kind
def test_learnt_sites_may_be_put_in_any_order(kind):
    sites = Sites(kind, 1)
    new = np.array([30, 25, 40])
    order = np.random.default_rng(1).permutation(17)
    sites.holder, sites.now = sites.border(new).learn(order), np.concatenate([sites.now, new])[order]
    P, G, _ = sites.inverse()
    sites.A, sites.B = P @ sites.Y[sites.now], G @ sites.Y[sites.now]
    sites.check()
    sites.forget(np.array([4, 11]))  # positions in the new order
    sites.check()


def test_the_same_matrix_at_some_of_its_sites():
    sites = Sites("J", 1)
    sites.learn(np.array([50, 33]))
    P, G, _ = sites.inverse()
    rows = np.array([15, 2, 6])
    for part in (sites.holder.at_sites(rows), sites.holder.at_sites(slice(5))):
        chosen = rows if part.n == 3 else np.arange(5)
        assert_close(part.explicit().P, P[np.ix_(chosen, chosen)])
        assert_close(part.G, G[:, chosen])
        assert not part.explicit().definite


VERBS = {
    "apply": lambda holder, Y: holder.apply(Y),
    "diagonal": lambda holder, Y: holder.diagonal(),
    "columns": lambda holder, Y: holder.columns(np.arange(2)),
    "block": lambda holder, Y: holder.block(np.arange(2)),
    "diagonal_blocks": lambda holder, Y: holder.diagonal_blocks(np.arange(4).reshape(2, 2)),
    "G": lambda holder, Y: holder.G,
    "explicit": lambda holder, Y: holder.explicit(),
    "border": lambda holder, Y: holder.border(Y[:, :1], np.ones((1, 1)), np.full((1, 1), 900.0)),
    "removal": lambda holder, Y: holder.removal(np.arange(2)),
}


@pytest.mark.parametrize("verb", list(VERBS))
@pytest.mark.parametrize("step", ["learn", "forget"])
def test_an_updated_holder_cannot_be_used_any_more(verb, step):
    sites = Sites("P", 1)
    old, Y = sites.holder, sites.Y[:14]
    VERBS[verb](old.at_sites(slice(None)), Y)  # works before
    sites.learn(np.array([40])) if step == "learn" else sites.forget(np.array([3]))
    assert not old.current
    with pytest.raises(StaleError, match="has learnt or forgotten samples since"):
        VERBS[verb](old, Y)
    sites.check()


def test_an_update_that_came_too_late_changes_nothing():
    sites = Sites("P", 1)
    border, removal = sites.border(np.array([20])), sites.holder.removal(np.array([2]))
    sites.check()  # what is only prepared has no effect
    sites.learn(np.array([30, 31]))
    for late in (border.learn, removal.forget):
        with pytest.raises(StaleError):
            late()
    sites.check()


@every_dtype
@every_kind
def test_sites_that_the_rest_needs_cannot_be_forgotten(kind, dtype):
    """Without its last rows the unpenalised columns are not determined: 0 up to rounding, of either sign."""
    sites = Sites(kind, 1, dtype, start=3 if kind == "P" else 6)
    rows = np.flatnonzero(sites.Q[sites.now, 0])
    for seed in range(12):
        gone = np.random.default_rng(seed).permutation(rows)[:3]
        with pytest.raises(SingularBlockError, match=rf"leaving out 3 of {len(sites.now)} rows"):
            sites.holder.removal(gone)
    assert sites.holder.current
    P = sites.inverse()[0]
    assert_close(sites.holder.explicit().P, P.astype(dtype))
    assert sites.holder.removal(rows[:1]).forget().n == len(sites.now) - 1


def test_a_single_row_that_alone_determines_a_column_cannot_be_forgotten():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 3))
        Q = np.column_stack([np.ones(12), np.arange(12) == 4])
        M = np.exp(-0.2 * np.square(X[:, None] - X).sum(-1)) + 0.1 * np.eye(12)
        H = np.linalg.inv(np.block([[M, Q], [Q.T, np.zeros((2, 2))]]))
        holder = Growing.of(Explicit(H[:12, :12], H[12:, :12], 0.1), -H[12:, 12:], M, Q, entry=1.0, refines=True)
        with pytest.raises(SingularBlockError):
            holder.removal(np.array([4]))
        assert holder.removal(np.array([5])).forget().n == 11


@every_kind
@pytest.mark.parametrize("t", [1, 3])
def test_a_schur_complement_lost_in_rounding_is_an_error_that_changes_nothing(kind, t):
    """Sites that repeat others, without a penalty of their own."""
    sites = Sites(kind, 1, start=40)
    for seed in range(20):  # of either sign
        same = np.random.default_rng(seed).permutation(40)[:t]
        with pytest.raises(NotPositiveDefiniteError, match=r"Schur complement|not positive"):
            sites.holder.border(sites.M[np.ix_(sites.now, same)], sites.Q[same], sites.M[np.ix_(same, same)])
    sites.check()
    sites.learn(np.array([50]))
    sites.check()


def test_an_indefinite_corner_is_refused_by_P_and_taken_by_J():
    for kind in "PJ":
        sites = Sites(kind, 1)
        m, q, corner = np.zeros((14, 2)), np.zeros((2, 1)), np.diag([1.0, -1.0])
        if kind == "P":
            for t in (1, 2):
                with pytest.raises(NotPositiveDefiniteError):
                    sites.holder.border(m[:, -t:], q[-t:], corner[-t:, -t:])
        else:
            assert_close(sites.holder.border(m, q, corner).learn().block(np.array([14, 15])), corner)


def test_growth_without_memory_changes_nothing(monkeypatch):
    sites = Sites("P", 1, n=200)
    sites.learn(np.arange(14, 14 + len(sites.holder._held.free)))  # the room is used up
    with monkeypatch.context() as patched:
        patched.setattr(_array, "available_memory", lambda: 1000)
        with pytest.raises(MemoryError, match="the matrix P with room to grow"):
            sites.border(np.array([100]))
        with pytest.raises(MemoryError, match="the matrix P"):
            sites.holder.explicit()
    sites.check()
    sites.learn(np.array([100]))
    sites.check()


# -- rounding: residuals, refinement, drift --------------------------------------------------------------------------


def falsified(sites, size, seed=3):
    """Noise of this relative size in H, symmetric, at the slots in use."""
    square = sites.holder._held
    used = np.concatenate([np.arange(square.q), sites.holder._slots])
    noise = np.random.default_rng(seed).normal(size=(len(used), len(used)))
    H = square.H
    for j, slot in enumerate(used):
        H[used[j:], slot] += (size * np.abs(H).max() * noise[j:, j]).astype(H.dtype)


def test_updates_refine_what_they_use():
    """Noise of 1e-8 in H enters the solution squared."""
    for step, argument in (("learn", [60, 61]), ("learn", [60]), ("forget", [2, 5]), ("forget", [7])):
        sites = Sites("P", 1, start=30)
        falsified(sites, 1e-8)
        getattr(sites, step)(np.array(argument))
        P, G, _ = sites.inverse()
        Y = sites.Y[sites.now]
        assert 1e-9 < sites.holder.drift < 1e-6
        assert_close(sites.A, P @ Y, rtol=1e-11)
        assert_close(sites.B, G @ Y, rtol=1e-11, scale=np.abs(Y).max())
        assert np.abs(sites.holder.explicit().P - P).max() > 1e-10 * np.abs(P).max()  # the noise is there


@every_kind
@every_dtype
@pytest.mark.parametrize("step", ["learn", "forget"])
@pytest.mark.parametrize("t", [1, 4])
def test_drift_is_the_largest_relative_residual_met(kind, dtype, step, t):
    sites = Sites(kind, 1, dtype, start=30)
    assert sites.holder.drift == 0.0
    falsified(sites, 1e-3)
    square = sites.holder._held
    slots, used = sites.holder._slots, np.concatenate([[0], sites.holder._slots])
    Z = np.block([[np.zeros((1, 1)), sites.Q[:30].T], [sites.Q[:30], sites.M[:30, :30]]]).astype(float)
    H = (np.tril(square.H) + np.tril(square.H, -1).T)[np.ix_(used, used)].astype(float)
    new, places = np.arange(60, 60 + t), np.arange(7, 7 + t)
    if step == "learn":
        b = np.vstack([sites.Q[new].T, sites.M[np.ix_(sites.now, new)]]).astype(float)
        sites.learn(new)
    else:
        b = np.eye(31)[:, 1 + places]
        sites.forget(places)
    expected = np.abs(b - Z @ H @ b).max() / np.abs(b).max()
    assert sites.holder.drift == pytest.approx(expected, rel=1e-6 if dtype == "float64" else 1e-2)
    before = sites.holder.drift
    assert sites.holder.at_sites(slice(3)).drift == before  # of the matrix, whoever shows it
    assert len(slots) == 30


def test_drift_never_falls():
    sites = Sites("P", 1, start=30)
    falsified(sites, 1e-4)
    sites.learn(np.array([70]))
    most = sites.holder.drift
    sites.learn(np.array([71]))
    assert sites.holder.drift >= most > 1e-6


# -- learn and forget against refits ---------------------------------------------------------------------------------


def data(case, rows):
    return case.X[rows], case.Q[rows].astype(case.dtype)


def targets(case, rows):
    return np.ascontiguousarray(case.Y[rows].astype(case.dtype))


def problem_of(case, rows):
    return case.problem().replace(shift=None).subset(rows)


def begin(case, rows):
    return updates.anew(problem_of(case, rows), targets(case, rows))


def learn(case, whole, rows, new):
    """The solution with the rows ``new`` of the case behind those it has, and all of them."""
    rows = np.concatenate([rows, new])
    problem = whole.problem.extended(*data(case, new))
    if case.weights != "none":
        problem = problem.weighted_by(case.w[rows])
    return updates.learn(whole, problem, targets(case, rows)), rows


def forget(case, whole, rows, places):
    """The solution without these places, and the rows that stay."""
    kept = np.delete(np.arange(len(rows)), places)
    gone = np.flatnonzero(np.isin(whole.rows, places))
    return updates.forget(whole, whole.problem.subset(kept), targets(case, rows[kept]), gone), rows[kept]


def condition(K, w, alpha, penalty):
    """cond(M) of the whitened problem."""
    root = np.sqrt(w)
    S = (K if penalty == "rkhs" else K @ K.T) * root * root[:, None]
    e = np.linalg.eigvalsh(S)
    return (e[-1] + alpha) / (max(e[0], 0.0) + alpha)


def allowed(case, rows):
    """max(1e-8, 100 eps cond(M))."""
    rows = rows[case.w[rows] > 0]
    cond = condition(case.K[np.ix_(rows, rows)], case.w[rows], case.alpha, case.penalty)
    return max(1e-8, 100 * np.finfo(case.dtype).eps * cond)


def loo_residuals(case, rows, *, n_confounds=0):
    """By a refit for every row of positive weight."""
    K, w, Q, Y = case.K[np.ix_(rows, rows)], case.w[rows], case.Q[rows], case.Y[rows]
    options = {"w": w, "Q": Q, "penalty": case.penalty, "basis": case.basis, "n_confounds": n_confounds}
    everything, active = np.arange(len(rows)), np.flatnonzero(w)
    fits = [reference.heldout_fits(K, Y, np.delete(everything, i), [i], case.alpha, **options) for i in active]
    return Y[active] - np.concatenate(fits)


def assert_equals_refit(case, whole, rows):
    rtol, active = allowed(case, rows), np.flatnonzero(case.w[rows])
    mine, Y = rows[active], case.Y[rows]
    beta, B = reference.fit(
        *(case.K[np.ix_(mine, mine)], case.Y[mine], case.alpha), w=case.w[mine], Q=case.Q[mine], penalty=case.penalty
    )
    basis, found = whole.expansion()
    np.testing.assert_array_equal(basis, active)
    np.testing.assert_array_equal(whole.rows, active)
    assert found.dtype == case.dtype
    assert_close(found, beta, rtol=rtol)
    assert_close(whole.B, B, rtol=rtol, scale=max(np.abs(B).max(initial=0.0), np.abs(Y).max()))
    fits = case.K[np.ix_(rows, mine)] @ beta + case.Q[rows] @ B
    assert_close(whole.fits(np.arange(len(rows))), fits, rtol=rtol, scale=np.abs(Y).max())
    if len(active) > case.q:
        assert_close(whole.loo().E[:, 0] / whole.root, loo_residuals(case, rows), rtol=rtol)


UPDATED = [
    *CASES,
    *[replace(Case(), weights="random", penalty=p, basis=b) for p in ("rkhs", "coef") for b in ("train", "all")],
    *[
        replace(Case(), dtype="float32", weights="zeros", q=q, penalty=p, basis=b)
        for q in (0, 3)
        for p, b in (("rkhs", "train"), ("coef", "train"), ("coef", "all"))
    ],
    *[replace(Case(), alpha=a, penalty="coef", basis=b) for a in (1e-3, 1e2) for b in ("train", "all")],
]
UPDATED = list(dict.fromkeys(UPDATED))
every_case = pytest.mark.parametrize("case", UPDATED, ids=str)


@every_case
def test_rows_learnt_and_forgotten_equal_a_refit(case):
    """Single rows and blocks; rows 1 and 11 have weight 0 in some cases."""
    n = case.shape[0]
    rows = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    whole = begin(case, rows)
    steps = [
        *((learn, [10]), (forget, [3]), (learn, [11, 12, 13, 14]), (forget, [0, 13, 5]), (forget, [1]), (learn, [11])),
        *((learn, [3, 15, 16]), (forget, [0, 1, 2, 3]), (learn, [17]), (learn, np.arange(18, n)), (forget, [6])),
    ]
    known = set()
    for step, argument in steps:
        argument = np.asarray(argument)
        if step is learn:
            argument = np.setdiff1d(argument, rows)
        whole, rows = step(case, whole, rows, argument)
        known.add(type(whole.joint))
        assert_equals_refit(case, whole, rows)
    assert Growing in known


@every_case
@pytest.mark.parametrize("n", [9, 14])
def test_effects_equal_the_press_of_refits_without_each_row(case, n):
    case = replace(case, shape=(n, case.shape[1]), weights="random" if case.weights == "zeros" else case.weights)
    rows = np.arange(n - 2)
    whole, rows = learn(case, begin(case, rows), rows, np.arange(n - 2, n))

    def press(kept):
        return (case.w[kept][:, None] * np.square(loo_residuals(case, kept))).sum(-1)

    every = press(rows)
    expected = [abs(press(np.delete(rows, i)).sum() - np.delete(every, i).sum()) for i in range(n)]
    rtol = max(allowed(case, np.delete(rows, i)) for i in range(n))
    assert_close(influence.effects(whole), np.array(expected), rtol=4 * rtol, scale=every.sum() + max(expected))
    assert_close(influence.effects(begin(case, rows)), influence.effects(whole), rtol=4 * rtol)


@pytest.mark.parametrize("entries", [1, 40, 100])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_effects_do_not_depend_on_the_batches(entries, penalty, monkeypatch):
    case = Case(penalty=penalty)
    whole = begin(case, np.arange(26))
    expected = influence.effects(whole)
    monkeypatch.setattr(influence, "ENTRIES", entries)
    assert_close(influence.effects(whole), expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "q"), [(1, 1), (2, 1), (3, 3), (4, 3)])
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_effects_of_rows_that_cannot_be_left_out_are_an_error(n, q, penalty):
    case = Case(q=q, penalty=penalty)
    with pytest.raises(ValueError, match="determine"):
        influence.effects(begin(case, np.arange(n)))


@pytest.mark.parametrize("seed", range(8))
def test_effects_where_two_rows_alone_show_a_confound_are_an_error(seed):
    """Without both of them P is 0 up to rounding, of either sign."""
    rng = np.random.default_rng(seed)
    Q = np.column_stack([np.ones(12), np.isin(np.arange(12), [4, 7])])
    problem = Problem(kernels.RBF(0.3), rng.normal(size=(12, 3)), alpha=0.1, Q=Q)
    with pytest.raises(SingularBlockError, match="leaving out 2 of 12 rows"):
        influence.effects(updates.anew(problem, rng.normal(size=(12, 1))))


PENALTIES = [("rkhs", "train"), ("coef", "train"), ("coef", "all")]
every_penalty = pytest.mark.parametrize(("penalty", "basis"), PENALTIES)


@every_penalty
@pytest.mark.parametrize("weights", ["none", "zeros"])
def test_other_targets_than_before(penalty, basis, weights):
    """A new class brings a column and changes those of the old rows; one that goes takes its column."""
    case = Case(penalty=penalty, basis=basis, weights=weights)
    rows = np.arange(20)
    whole = begin(case, rows)
    problem = whole.problem.extended(*data(case, np.arange(20, 23)))
    problem = problem if weights == "none" else problem.weighted_by(case.w[:23])
    rng = np.random.default_rng(0)
    for m in (2, 3):
        Y = rng.normal(size=(23, m))
        now = updates.learn(updates.anew(whole.problem, case.Y[:20]), problem, Y)
        assert isinstance(now.joint, Growing)
        expected = updates.anew(problem, Y)
        for found in (now, now.select(slice(None))):
            assert_close(found.expansion()[1], expected.expansion()[1])
            assert_close(found.B, expected.B)
            assert_close(found.loo().E, expected.loo().E)
        kept = np.delete(np.arange(23), [2, 21])
        fewer = problem.subset(kept)
        Y = rng.normal(size=(21, 5 - m))
        now = updates.forget(now, fewer, Y, np.flatnonzero(np.isin(now.rows, [2, 21])))
        assert isinstance(now.joint, Growing)
        expected = updates.anew(fewer, Y)
        assert_close(now.expansion()[1], expected.expansion()[1])
        assert_close(now.B, expected.B)
        assert_close(now.loo().E, expected.loo().E)


@every_penalty
def test_scores_without_confounds_after_updates(penalty, basis):
    case = Case(q=3, penalty=penalty, basis=basis)
    rows = np.arange(16)
    whole = begin(case, rows)
    whole.problem.n_confounds = 2
    whole, rows = learn(case, whole, rows, np.arange(16, 20))
    whole, rows = forget(case, whole, rows, np.array([2, 17]))
    expected = case.Y[rows] - loo_residuals(case, rows, n_confounds=2)
    assert_close(whole.loo().fits[:, 0], expected)


@every_penalty
@pytest.mark.parametrize("weights", ["none", "random"])
def test_every_held_out_fit_after_updates(penalty, basis, weights):
    """Folds, parts, leave-one-out models at new rows and class matrices are those of a new factorisation."""
    case = Case(penalty=penalty, basis=basis, weights=weights)
    whole, rows = learn(case, begin(case, np.arange(16)), np.arange(16), np.arange(16, 22))
    whole, rows = forget(case, whole, rows, np.array([3, 18]))
    new = begin(case, rows)
    sets = np.random.default_rng(0).permutation(20).reshape(5, 4)
    X, Q = data(case, np.arange(22, 26))
    assert_close(whole.batch(sets).fits, new.batch(sets).fits)
    for found, expected in zip(whole.batch(sets).moments()[:2], new.batch(sets).moments()[:2], strict=True):
        assert_close(found, expected)
    assert_close(whole.loo_at(X, Q), new.loo_at(X, Q))
    one, other = Part(whole, sets[0]), Part(new, sets[0])
    assert_close(one.fits(np.arange(20)), other.fits(np.arange(20)))
    assert_close(one.loo().fits, other.loo().fits)
    assert_close(one.precision.P, other.precision.P)
    assert_close(one.B, other.B)


@every_penalty
def test_a_solution_is_used_up_by_its_update(penalty, basis):
    case = Case(penalty=penalty, basis=basis)
    rows = np.arange(16)
    first = begin(case, rows)
    second, rows = learn(case, first, rows, np.array([20]))
    assert first.current  # its P was another holder's
    assert_equals_refit(case, first, rows[:16])
    third, rows = forget(case, second, rows, np.array([4]))
    assert not second.current
    assert third.current
    with pytest.raises(StaleError):
        second.batch(np.arange(16).reshape(8, 2))
    with pytest.raises(StaleError):
        learn(case, second, np.arange(17), np.array([22]))
    assert_equals_refit(case, third, rows)


def holder_after(case, n, t, step):
    rows = np.arange(n)
    whole = begin(case, rows)
    change = (learn, np.arange(n, n + t)) if step == "learn" else (forget, np.arange(t))
    whole, rows = change[0](case, whole, rows, change[1])
    assert_equals_refit(case, whole, rows)
    return whole.choice.split(":")[0]


def test_updates_are_taken_where_they_pay():
    case = Case()
    assert holder_after(case, 16, 8, "learn") == "growing"
    assert holder_after(case, 16, 9, "learn") == "factored"
    assert holder_after(case, 15, 5, "forget") == "growing"
    assert holder_after(case, 16, 6, "forget") == "factored"
    assert holder_after(case, 16, 0, "learn") == "factored"
    assert holder_after(case, 16, 0, "forget") == "factored"
    few = Case(kernel="linear", shape=(26, 2))
    assert holder_after(few, 25, 1, "learn") == "low rank"  # 6 r^2 = 24 <= 25
    assert holder_after(few, 25, 1, "forget") == "low rank"
    assert holder_after(few, 23, 1, "learn") == "growing"
    assert holder_after(few, 24, 1, "forget") == "growing"
    assert holder_after(replace(few, alpha=1e-5), 12, 1, "learn") == "low rank"  # for accuracy


@every_penalty
def test_rows_of_weight_zero_leave_P_as_it_is(penalty, basis):
    case = Case(penalty=penalty, basis=basis, weights="zeros")
    rows = np.array([0, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    whole, rows = learn(case, begin(case, rows), rows, np.array([12, 13]))
    more, rows = learn(case, whole, rows, np.array([11]))
    assert more.joint is whole.joint
    assert_equals_refit(case, more, rows)
    more, rows = learn(case, more, rows, np.array([1, 14]))
    assert_equals_refit(case, more, rows)
    less, rows = forget(case, more, rows, np.flatnonzero(rows == 11))
    assert less.joint is more.joint
    assert_equals_refit(case, less, rows)
    less, rows = forget(case, less, rows, np.array([3]))
    assert_equals_refit(case, less, rows)


def test_the_size_of_linear_features_is_that_of_the_rows_there_are():
    case = Case(kernel="linear")
    problem = problem_of(case, np.arange(16))
    squares = np.square(case.X).sum(1)
    assert problem.size == pytest.approx(squares[:16].mean())
    assert problem.subset(np.arange(3, 9)).size == pytest.approx(squares[3:9].mean())
    assert problem.extended(*data(case, np.arange(16, 20))).size == pytest.approx(squares[:20].mean())
    assert problem.weighted_by(np.arange(16) % 2).size == pytest.approx(squares[1:16:2].mean())


def test_a_shift_of_linear_features_does_not_survive():
    """The mean that rounding likes taken out is one of rows that may go."""
    case = Case(kernel="linear", shape=(26, 40))
    problem = case.problem().subset(np.arange(16))
    assert problem.shift is not None
    assert problem.extended(*data(case, np.arange(16, 18))).shift is None


@pytest.mark.parametrize("sparse", [False, True])
@every_penalty
def test_rows_of_a_precomputed_kernel(sparse, penalty, basis):
    case = Case(penalty=penalty, basis=basis)
    rows = np.array([3, 1, 7, 0, 9, 12, 5, 20])
    as_given = sp.csr_array if sparse else np.asarray
    start = as_given(case.K[np.ix_(rows, rows)])
    Q = np.ones((len(rows), 1))
    problem = Problem(kernels.Precomputed(), start, alpha=case.alpha, Q=Q, penalty=penalty, basis=basis)
    whole = updates.anew(problem, case.Y[rows])
    for new in ([2], [24, 4], [6]):
        rows = np.concatenate([rows, new])
        K_new = as_given(case.K[np.ix_(new, rows)])
        whole = updates.learn(whole, whole.problem.extended(K_new, np.ones((len(new), 1))), case.Y[rows])
        assert isinstance(whole.joint, Growing)
        assert_equals_refit(case, whole, rows)
        whole, rows = forget(case, whole, rows, np.array([1]))
        assert_equals_refit(case, whole, rows)


def test_sparse_rows():
    case = Case(kernel="rbf")
    rows = np.arange(16)
    problem = Problem(kernels.RBF(0.2), sp.csr_array(case.X[:16]), alpha=case.alpha, Q=np.ones((16, 1)))
    whole = updates.anew(problem, case.Y[:16])
    whole = updates.learn(whole, problem.extended(sp.csr_array(case.X[16:20]), np.ones((4, 1))), case.Y[:20])
    assert isinstance(whole.joint, Growing)
    whole, rows = forget(case, whole, np.arange(20), np.array([0, 18]))
    assert sp.issparse(whole.problem.X)
    assert_equals_refit(case, whole, rows)


# -- rows that determine nothing, kernels without size ---------------------------------------------------------------


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("seed", range(8))
def test_forgetting_the_only_row_that_shows_a_confound_is_an_error(penalty, seed):
    """What P has there is 0 up to rounding, of either sign."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(13, 3)), rng.normal(size=(13, 1))
    Q = np.column_stack([np.ones(13), np.arange(13) == 4]).astype(float)
    whole = updates.anew(Problem(kernels.RBF(0.3), X[:12], alpha=0.1, Q=Q[:12], penalty=penalty), Y[:12])
    for _ in range(2):  # from a factor, then from a growing P
        kept = np.delete(np.arange(whole.problem.n), 4)
        with pytest.raises(SingularBlockError, match="confounds: column 0"):
            updates.forget(whole, whole.problem.subset(kept), Y[kept], np.array([4]))
        assert whole.current
        if whole.problem.n == 12:
            whole = updates.learn(whole, whole.problem.extended(X[12:], Q[12:]), Y)
    new = updates.anew(whole.problem, Y)
    assert_close(whole.expansion()[1], new.expansion()[1])
    assert_close(whole.B, new.B)


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("seed", range(8))
def test_too_few_rows_for_the_confounds_are_an_error(penalty, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(3, 3)), rng.normal(size=(3, 1))
    Q = np.column_stack([np.ones(3), rng.normal(size=(3, 2))])
    whole = updates.anew(Problem(kernels.RBF(0.3), X, alpha=0.1, Q=Q, penalty=penalty), Y)
    with pytest.raises(SingularBlockError, match="confounds: column"):
        updates.forget(whole, whole.problem.subset(np.arange(1, 3)), Y[1:], np.array([0]))


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_a_kernel_of_zeros_leaves_the_mean(penalty):
    X, Y = np.zeros((12, 30)), np.random.default_rng(0).normal(size=(12, 1))
    whole = updates.anew(Problem(kernels.Linear(), X[:10], alpha=0.1, Q=np.ones((10, 1)), penalty=penalty), Y[:10])
    whole = updates.learn(whole, whole.problem.replace(shift=None).extended(X[10:], np.ones((2, 1))), Y)
    assert isinstance(whole.joint, Growing)
    assert_close(whole.B, Y.mean(keepdims=True))
    assert_close(whole.loo().fits[:, 0], (Y.sum() - Y) / 11)


def test_rows_too_large_for_the_kernel_are_an_error_that_changes_nothing():
    case = Case(kernel="linear", shape=(26, 40))
    rows = np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.array([20]))
    for t in (1, 2):
        huge = whole.problem.extended(np.full((t, 40), 1e160), np.ones((t, 1)))
        with pytest.raises(ValueError, match="overflows"):
            updates.learn(whole, huge, case.Y[: 17 + t])
        assert whole.current
    whole, rows = forget(case, whole, rows, np.array([4]))
    assert_equals_refit(case, whole, rows)


@every_penalty
def test_duplicates_at_a_vanishing_alpha_equal_a_new_factorisation(penalty, basis):
    """The Schur complement of a duplicate is alpha: below its own rounding, P is factorised anew."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(12, 2)), rng.normal(size=(14, 1))
    options = {"alpha": 1e-18, "penalty": penalty, "basis": basis}
    for new in (X[:1], X[:2]):
        t = len(new)
        whole = updates.anew(Problem(kernels.RBF(2.0), X, Q=np.ones((12, 1)), **options), Y[:12])
        problem = whole.problem.extended(new, np.ones((t, 1)))
        found, expected = updates.learn(whole, problem, Y[: 12 + t]), updates.anew(problem, Y[: 12 + t])
        assert not isinstance(found.own_precision, Growing)
        np.testing.assert_array_equal(found.A, expected.A)


# -- drift -------------------------------------------------------------------------------------------------------------


def noisy(whole, size):
    """Noise of this relative size in the matrix behind a solution."""
    square, slots = whole.joint._held, whole.joint._slots
    rng = np.random.default_rng(0)
    scale = size * np.abs(np.tril(square.H)).max()
    for slot in slots:
        below = slots[slots >= slot]
        square.H[below, slot] += scale * rng.normal(size=len(below))


@every_penalty
@pytest.mark.parametrize("step", ["learn", "forget", "learn other targets", "forget other targets"])
def test_a_drifted_matrix_is_factorised_anew(penalty, basis, step):
    case = Case(penalty=penalty, basis=basis, alpha=1e-4)
    rows = np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.array([16, 17]))
    noisy(whole, 1e-2)
    if "other" in step:
        whole.Y = whole.Y + 1.0  # not the targets it will be asked for
    change = (learn, np.array([19])) if "learn" in step else (forget, np.array([4]))
    whole, rows = change[0](case, whole, rows, change[1])
    assert not isinstance(whole.own_precision, Growing)
    assert_equals_refit(case, whole, rows)
    whole, rows = learn(case, whole, rows, np.array([21, 22]))
    assert whole.joint.drift < 1e-6  # counted from the new factorisation
    assert_equals_refit(case, whole, rows)


def test_drift_is_noticed_within_eight_updates_where_none_is_refined():
    case = Case(alpha=1.0)
    rows = np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.array([16]))
    noisy(whole, 1e-5)
    for count in range(1, 9):
        step = (learn, np.array([16 + count])) if count % 2 else (forget, np.array([3]))
        whole, rows = step[0](case, whole, rows, step[1])
        if not isinstance(whole.joint, Growing):
            break
    assert 1 < count <= 8
    assert not isinstance(whole.joint, Growing)
    assert_equals_refit(case, whole, rows)


@every_penalty
@pytest.mark.parametrize("step", ["learn", "forget"])
@pytest.mark.parametrize("found", ["residual", "error", "drift"])
def test_the_tolerance_decides(penalty, basis, step, found, monkeypatch):
    case = Case(alpha=1e-4, penalty=penalty, basis=basis)
    for size, anew in ((0.9, False), (1.1, True)):
        rows = np.arange(16)
        whole, rows = learn(case, begin(case, rows), rows, np.array([16]))
        with monkeypatch.context() as patched:
            patched.setattr(updates, "_tolerance", lambda *_: 1e-5)
            if found == "residual":
                refined = updates._refined
                patched.setattr(updates, "_refined", lambda *args, s=size, f=refined: (*f(*args)[:2], s * 1e-5))
            elif found == "error":
                patched.setattr(Growing, "error", lambda _, s=size: s * 1e-5)
            else:
                whole.joint._held.drift = size * 1e-2
            change = (learn, np.array([19])) if step == "learn" else (forget, np.array([3]))
            whole, rows = change[0](case, whole, rows, change[1])
        assert isinstance(whole.joint, Growing) is not anew
        assert_close(whole.expansion()[1], begin(case, rows).expansion()[1])


@every_dtype
@every_penalty
@pytest.mark.parametrize("weights", ["none", "random"])
def test_care_goes_by_the_condition(dtype, penalty, basis, weights):
    """The tolerance is max(1e-9, 10 eps cond(M)), with |S + alpha I| max P_ii for the condition."""
    for alpha in (1e2, 0.1, 1e-3, 1e-7):
        case = Case(dtype=dtype, penalty=penalty, basis=basis, alpha=alpha, weights=weights, q=0, shape=(14, 20))
        joint = updates.growing(begin(case, np.arange(13)))
        root, eps, k = np.sqrt(case.w)[:, None], np.finfo(dtype).eps, case.K.diagonal()[:13]
        K = case.K * root if penalty == "coef" else case.K * root * root.T + alpha * np.eye(14)
        size, P = np.linalg.norm(K[:13, :13]), joint.diagonal()[:13].max()
        assert joint.refines is bool(dtype == "float32" or penalty == "coef" or size > 1e4 * alpha)
        size = min(size, case.w[:13] @ k) if penalty == "rkhs" else min(size**2, case.w[:13] @ k * k.sum())
        expected = max(1e-9, 10 * eps * max(1.0, (size + alpha) * min(P, 1 / alpha)))
        assert updates._tolerance(problem_of(case, np.arange(13)), joint) == pytest.approx(expected, rel=1e-3)


@every_penalty
def test_care_goes_by_the_rows_there_are(penalty, basis):
    """A condition that a large row brought goes with it."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(12, 3)), np.ones(12)
    w[2] = 1e10
    options = {"alpha": 1e-3, "Q": np.ones((12, 1)), "penalty": penalty, "basis": basis}
    joint = updates.growing(updates.anew(Problem(kernels.RBF(0.2), X, sample_weight=w, **options), X[:, :1]))
    problem = Problem(kernels.RBF(0.2), X, sample_weight=w, **options)
    assert updates._tolerance(problem, joint) > 1e-4
    kept = np.delete(np.arange(12), 2)
    joint = joint.removal(np.array([2] if penalty == "rkhs" else [2, 14])).forget()
    assert updates._tolerance(problem.subset(kept), joint) < 1e-8


def test_a_P_that_has_shrunk_too_far_is_factorised_anew(monkeypatch):
    """By 1e4 where updates are not refined; its rounding must not pass the tolerance where they are."""
    for alpha, most in ((1.0, 1e4), (1e-4, 1e-9 / EPS)):
        case = Case(alpha=alpha)
        for shrinkage, anew in ((0.9 * most, False), (1.1 * most, True)):
            rows = np.arange(16)
            whole, rows = learn(case, begin(case, rows), rows, np.array([16]))
            with monkeypatch.context() as patched:
                patched.setattr(updates, "_tolerance", lambda *_: 1e-9)
                patched.setattr(Growing, "shrinkage", lambda _, found=shrinkage: found)
                whole, rows = forget(case, whole, rows, np.array([3]))
            assert isinstance(whole.joint, Growing) is not anew


def test_drift_counts_by_what_P_has_shrunk_where_updates_are_not_refined(monkeypatch):
    case = Case(alpha=1.0)
    for shrinkage, anew in ((9.0, False), (11.0, True)):
        rows = np.arange(16)
        whole, rows = learn(case, begin(case, rows), rows, np.array([16]))
        whole.joint._held.drift = 1e-11
        with monkeypatch.context() as patched:
            patched.setattr(Growing, "shrinkage", lambda _, found=shrinkage: found)
            whole, rows = forget(case, whole, rows, np.array([3]))
        assert isinstance(whole.joint, Growing) is not anew


@every_penalty
@pytest.mark.parametrize("step", ["learn", "forget"])
def test_updates_of_ill_conditioned_problems_mend_the_coefficients(penalty, basis, step):
    """A wrong A is put right by the next update; without refinement its error would stay."""
    case = Case(alpha=1e-6, penalty=penalty, basis=basis)
    rows = np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.array([16]))
    assert whole.joint.refines
    wrong = whole.joint_A * (1 + 1e-4 * np.sin(np.arange(len(whole.joint_A)))[:, None])
    whole.joint_A, whole.A = wrong, wrong[:17]
    if step == "learn":
        whole, rows = learn(case, whole, rows, np.array([17]))
    else:
        whole, rows = forget(case, whole, rows, np.array([4]))
    assert isinstance(whole.joint, Growing)
    assert_close(whole.expansion()[1], begin(case, rows).expansion()[1], rtol=1e-7)


def test_a_removal_lost_in_rounding_is_factorised_anew(monkeypatch):
    case, rows = Case(), np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.array([16]))

    def lost(self, sites):
        raise SingularBlockError.of(sites, self.n)

    monkeypatch.setattr(Growing, "removal", lost)
    whole, rows = forget(case, whole, rows, np.array([3]))
    assert not isinstance(whole.joint, Growing)
    assert_close(whole.A, begin(case, rows).A)


def test_what_P_was_at_the_factorisation_counts():
    """The first update of all may be the one that makes P small."""
    case, rows = Case(alpha=1e-4), np.arange(16)
    joint = updates.growing(begin(case, rows))
    diagonal = np.abs(joint.diagonal())
    np.testing.assert_allclose(joint._held.peak[joint._slots], diagonal)
    smaller = joint.removal(np.array([2])).forget()
    expected = (np.delete(diagonal, 2) / np.abs(smaller.diagonal())).max()
    assert expected > 1.5
    assert smaller.shrinkage() == pytest.approx(expected)


def test_what_P_has_been_is_forgotten_with_its_row():
    sites = Sites("P", 1, n=30)
    sites.holder.shrinkage()
    slot = sites.holder._slots[3]
    assert sites.holder._held.peak[slot] > 0
    sites.forget(np.array([3]))
    assert sites.holder._held.peak[slot] == 0


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_what_P_has_been_counts(penalty):
    """A row and its twin make P large; errors of that size stay when one of them goes."""
    case = Case(alpha=1e-5, penalty=penalty)
    X, Y = case.X[:14].copy(), case.Y[:14]
    X[13] = X[3]
    problem = Problem(kernels.RBF(0.2), X[:12], alpha=1e-5, Q=np.ones((12, 1)), penalty=penalty)
    whole = updates.anew(problem, Y[:12])
    whole = updates.learn(whole, whole.problem.extended(X[12:13], np.ones((1, 1))), Y[:13])
    before = whole.own_precision.diagonal()[3]
    assert 1.0 <= whole.own_precision.shrinkage() < 2.0
    whole = updates.learn(whole, whole.problem.extended(X[13:], np.ones((1, 1))), Y)
    large = whole.own_precision.diagonal()[3]
    assert large > 100 * before
    joint = whole.joint.removal(np.array([13]) if penalty == "rkhs" else np.array([13, 27])).forget()
    own = joint.at_sites(slice(13))
    assert own.shrinkage() == pytest.approx(large / before, rel=1e-3)
    assert own.shrinkage() == pytest.approx(large / before, rel=1e-3)  # until the next factorisation
    other = joint.removal(np.array([3]) if penalty == "rkhs" else np.array([3, 16])).forget()
    assert other.at_sites(slice(12)).shrinkage() < 10  # a slot that is free has no past


def test_what_P_has_been_stays_with_its_row():
    """Through growth and compaction, until the row goes; its slot starts anew."""
    sites = Sites("P", 0, n=300, start=20, alpha=1e-4)
    past, sizes = np.zeros(300), []
    for step, argument in (
        *((sites.learn, np.arange(20, 200)), (sites.forget, np.arange(30, 200)), (sites.forget, np.array([0, 3]))),
        *((sites.learn, np.arange(200, 210)), (sites.learn, None), (sites.forget, np.arange(6))),
    ):
        free = len(sites.holder._held.free)
        step(np.arange(210, 210 + free) if argument is None else argument)  # None: every slot is taken
        diagonal = sites.holder.diagonal()
        past[np.setdiff1d(np.arange(300), sites.now)] = 0.0
        past[sites.now] = np.maximum(past[sites.now], diagonal)
        assert sites.holder.shrinkage() == pytest.approx((past[sites.now] / diagonal).max(), rel=1e-6)
        sizes.append(len(sites.holder._held))
    assert sizes[0] > sizes[1]
    assert sizes[0] >= 200


@every_penalty
def test_drift_stays_tiny_where_conditions_are_good(penalty, basis):
    case = Case(penalty=penalty, basis=basis, alpha=10.0)
    rows = np.arange(16)
    whole = begin(case, rows)
    for i in range(100):
        new = np.setdiff1d(np.arange(26), rows)[[i % 10]]
        whole, rows = learn(case, whole, rows, new)
        whole, rows = forget(case, whole, rows, np.array([i % 15]))
        assert 0 < whole.joint.drift < 1e-12
    assert_equals_refit(case, whole, rows)


# -- evidence ------------------------------------------------------------------------------------------------------


def compared(whole, Y, n_forgotten, inherited):
    """The certificate of a solution with targets Y."""
    new = updates.anew(whole.problem, Y)
    stored, again = ({"dual": model.expansion()[1], "offset": model.B} for model in (whole, new))
    return certificate.compare(whole, new, stored, again, n_forgotten=n_forgotten, inherited=inherited)


def updated(case):
    rows = np.arange(16)
    whole, rows = learn(case, begin(case, rows), rows, np.arange(16, 21))
    return forget(case, whole, rows, np.array([2, 19]))


@every_case
def test_the_certificate_of_an_updated_solution_holds(case):
    whole, rows = updated(replace(case, shape=(26, case.shape[1])))
    case = replace(case, shape=(26, case.shape[1]))
    found = compared(whole, targets(case, rows), 2, ())
    assert found.holds
    assert "equals a new fit" in str(found)
    assert found.n_samples == 19
    assert found.n_forgotten == 2
    active = rows[case.w[rows] > 0]
    cond = condition(case.K[np.ix_(active, active)], case.w[active], case.alpha, case.penalty)
    floor = 1e-8 if case.dtype == "float64" else 1e-3
    assert found.limit == pytest.approx(max(floor, 1e3 * np.finfo(case.dtype).eps * cond), rel=1e-2)
    size = np.abs(case.K).max() * np.abs(whole.A).sum(0).max() / np.abs(whole.Y).max()
    assert 0 < found.residual < 1e3 * allowed(case, rows) * max(1.0, size)
    assert found.difference <= found.limit
    assert found.loo_difference <= found.limit


@every_penalty
@pytest.mark.parametrize("weights", ["none", "random"])
def test_the_certificate_tells_by_how_much_a_model_is_wrong(penalty, basis, weights):
    case = Case(penalty=penalty, basis=basis, weights=weights)
    for part, amount in (("A", 1e-3), ("B", 1e-3), ("A", 1e-7), ("B", 1e-7)):
        whole, rows = updated(case)
        Y = targets(case, rows)
        right = begin(case, rows)
        beta, B, F = right.expansion()[1], right.B, right.loo().fits[:, 0]
        change = np.zeros_like(whole.joint_A)
        if part == "A":
            change[[3, -4], 1] = amount, -2 * amount
            whole.joint_A = whole.joint_A + change
            whole.A = whole.joint_A[:19]
        else:
            whole.B = whole.B + np.array([[0.0, amount]])
        found = compared(whole, Y, 2, ())
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
        whole, rows = updated(Case())
        if part == "A":
            whole.A = np.full_like(whole.A, np.nan)
        elif part == "B":
            whole.B = np.full_like(whole.B, np.nan)
        else:
            whole.own_precision.__dict__["_diagonal"] = np.full(19, np.nan)
        found = compared(whole, targets(Case(), rows), 2, ())
        assert not found.holds
        assert "DIFFERS from" in str(found)


def test_the_certificate_of_targets_of_zeros():
    case = Case()
    problem = problem_of(case, np.arange(12))
    found = compared(updates.anew(problem, np.zeros((12, 2))), np.zeros((12, 2)), 0, ())
    assert found.holds
    assert found.difference == found.residual == found.loo_difference == 0.0


def test_the_certificate_of_a_row_that_cannot_be_left_out():
    case = Case()
    found = compared(begin(case, np.arange(1)), case.Y[:1], 3, ())
    assert np.isnan(found.loo_difference)
    assert found.holds


def test_the_certificate_of_an_indefinite_kernel_that_alpha_makes_definite():
    case = Case()
    K = case.K[:12, :12].copy()
    K[0, 0] -= 2.0
    problem = Problem(kernels.Precomputed(), K, alpha=3.0, Q=np.ones((12, 1)))
    found = compared(updates.anew(problem, case.Y[:12]), case.Y[:12], 0, ())
    assert found.holds
    assert found.limit == 1e-8


def test_the_certificate_names_what_was_inherited():
    case = Case()
    whole, rows = updated(case)
    text = "resolved once, with forgotten rows: gamma"
    assert text in str(compared(whole, targets(case, rows), 2, ("gamma",)))
    assert text not in str(compared(whole, targets(case, rows), 0, ("gamma",)))
    assert text not in str(compared(whole, targets(case, rows), 2, ()))
    assert "19 rows, 2 forgotten" in str(compared(whole, targets(case, rows), 2, ()))


# -- long runs -----------------------------------------------------------------------------------------------------


def long_run(alpha, steps, least, most, penalty="rkhs", every=100, twice=False):
    """Random rows come and go, one or several at a time; coefficients and residuals against plain inverses."""
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(2 * most, 5))
    if twice:
        pool[1::40] = pool[::40]
    Y = np.sign(pool[:, :1] * pool[:, 1:2] + 0.3 * rng.normal(size=(2 * most, 1)))
    K = kernels.RBF(0.2).gram(pool)
    rows, sizes, grown = rng.permutation(2 * most)[: 2 * least], [], 0
    problem = Problem(kernels.RBF(0.2), pool[rows], alpha=alpha, Q=np.ones((len(rows), 1)), penalty=penalty)
    whole, upward = updates.anew(problem, Y[rows]), True
    for step in range(1, steps + 1):
        t = 1 if rng.random() < 0.7 else int(rng.integers(2, 13))
        upward = (upward or len(rows) < least + 13) and len(rows) <= most - 13
        if (rng.random() < (0.7 if upward else 0.3) or len(rows) - t < least) and len(rows) + t <= most:
            new = rng.permutation(np.setdiff1d(np.arange(2 * most), rows))[:t]
            rows = np.concatenate([rows, new])
            whole = updates.learn(whole, whole.problem.extended(pool[new], np.ones((t, 1))), Y[rows])
        else:
            places = rng.permutation(len(rows))[:t]
            kept = np.delete(np.arange(len(rows)), places)
            rows = rows[kept]
            whole = updates.forget(whole, whole.problem.subset(kept), Y[rows], np.sort(places))
        sizes.append(len(rows))
        grown += isinstance(whole.joint, Growing)
        if step % every == 0:
            Kr = K[np.ix_(rows, rows)]
            S = Kr if penalty == "rkhs" else Kr @ Kr
            e = np.linalg.eigvalsh(S)
            rtol = max(1e-8, 100 * EPS * (e[-1] + alpha) / (max(e[0], 0.0) + alpha))
            P, G = reference.precision(S, alpha)
            A, B = P @ Y[rows], G @ Y[rows]
            assert_close(whole.expansion()[1], A if penalty == "rkhs" else Kr @ A, rtol=rtol)
            assert_close(whole.B, B, rtol=rtol, scale=max(np.abs(B).max(), 1.0))
            E = A / P.diagonal()[:, None] if penalty == "rkhs" else updates.anew(whole.problem, Y[rows]).loo().E[:, 0]
            assert_close(whole.loo().E[:, 0], E, rtol=rtol)
    assert min(sizes) >= least
    assert max(sizes) <= most
    assert min(sizes) < least + 20
    assert max(sizes) > most - 20
    assert grown > 0.8 * steps


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-6, 1e-2, 1e2])
def test_ten_thousand_rows_come_and_go(alpha):
    long_run(alpha, 10_000, 50, 1000)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1e-6, 1e-1])
def test_thousands_of_rows_come_and_go_with_their_basis_functions(alpha):
    long_run(alpha, 2_000, 50, 250, "coef")


@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize("alpha", [1e-6, 1e-3, 1.0, 1e2])
@pytest.mark.parametrize("twice", [False, True])
def test_three_hundred_rows_come_and_go(alpha, penalty, twice):
    """A row that comes twice makes P large; what P has been leaves no trace when it goes again."""
    long_run(alpha, 300, 20, 70, penalty, every=20, twice=twice)


# -- odd data ------------------------------------------------------------------------------------------------------


@st.composite
def streams(draw):
    """Few rows, some of them twice or constant, of any size, weights with zeros, and what to do with them."""
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(60, d)) * 10.0 ** draw(st.integers(-2, 2))
    if draw(st.booleans()):
        X[1::2] = X[::2]
    if draw(st.booleans()):
        X[::3] = draw(st.sampled_from([0.0, 1.0, -7.0]))
    w = np.ones(60)
    if draw(st.booleans()):
        w = 10.0 ** rng.uniform(-2, 2, 60)
        w[rng.random(60) < 0.15] = 0.0
        w[0] = 1.0
    steps = draw(st.lists(st.tuples(st.booleans(), st.integers(1, 4), st.integers(0, 2**16)), max_size=14))
    return X, w, 10.0 ** draw(st.integers(-12, 6)), n, steps, rng.normal(size=(60, 2))


@given(
    streams(),
    st.sampled_from(["rbf", "linear", "poly"]),
    st.sampled_from(PENALTIES),
    st.sampled_from([0, 1, 3]),
)
@settings(deadline=None, max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
def test_any_sequence_on_any_rows_equals_a_refit_or_is_a_clear_error(stream, kernel, penalty, q):
    X, w, alpha, n, steps, Y = stream
    penalty, basis = penalty
    kernel = kernels.resolve(kernel, X, gamma=0.3, degree=2)
    Q = np.column_stack([np.ones(60), np.sin(np.arange(60)), np.arange(60) % 5 == 2])[:, :q]
    rows, unseen = np.arange(n), list(range(n, 60))
    problem = Problem(kernel, X[rows], alpha=alpha, Q=Q[rows], sample_weight=w[rows], penalty=penalty, basis=basis)
    try:
        whole = updates.anew(problem.replace(shift=None), Y[rows])
    except ValueError:
        return  # not determined from the start
    for grows, t, seed in steps:
        before = whole
        if grows:
            then = np.concatenate([rows, unseen[:t]])
            problem = whole.problem.extended(X[unseen[:t]], Q[unseen[:t]]).weighted_by(w[then])
            change = (updates.learn, ())
        else:
            places = np.random.default_rng(seed).permutation(len(rows))[:t]
            kept = np.delete(np.arange(len(rows)), places)
            then, problem = rows[kept], whole.problem.subset(kept)
            if not len(problem.active):
                continue
            change = (updates.forget, (np.flatnonzero(np.isin(whole.rows, places)),))
        try:
            expected = updates.anew(problem, Y[then])
        except ValueError:
            with pytest.raises(ValueError, match=r"determine|confounds"):
                change[0](whole, problem, Y[then], *change[1])
            assert before.current
            continue
        whole, rows = change[0](whole, problem, Y[then], *change[1]), then
        unseen = unseen[t:] if grows else unseen
        active = rows[w[rows] > 0]
        rtol = max(1e-8, 100 * EPS * condition(kernel.gram(X[active]), w[active], alpha, penalty))
        if rtol > 1e-4:
            continue  # nothing is determined to more than four digits
        beta, B = expected.expansion()[1], expected.B
        least = np.abs(Y).max() / alpha if len(active) <= q else 1e-300  # as many rows as columns leave nothing to P
        assert_close(whole.expansion()[1], beta, rtol=rtol, scale=max(np.abs(beta).max(), least))
        assert_close(whole.B, B, rtol=rtol, scale=max(np.abs(B).max(initial=0.0), np.abs(Y).max()))
        try:
            E = expected.loo().E
        except ValueError:
            with pytest.raises(ValueError, match=r"determine|confounds"):
                whole.loo()
            continue
        if (penalty, isinstance(kernel, kernels.Linear)) != ("coef", True):  # J of the refit loses digits there
            assert_close(whole.loo().E, E, rtol=rtol)
