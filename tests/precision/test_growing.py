"""The growing holder of P after any sequence of rows that come and go, against plain inverses."""

import numpy as np
import pytest

import foldless._engine.linalg.memory as memory
from foldless._engine.linalg import NotPositiveDefiniteError
from foldless._engine.precision.base import Explicit, SingularBlockError
from foldless._engine.precision.growing import Growing, StaleError
from support.tolerances import assert_close
from support.updates import every_dtype

every_q = pytest.mark.parametrize("q", [0, 1, 3])


# -- the holder ----------------------------------------------------------------------------------------------------


class Pool:
    """Rows with their M and Q, of which a holder shows some: ``now``, in its order."""

    def __init__(self, q, dtype="float64", n=160, alpha=0.1, start=14, refines=True):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n, 4))
        K = np.exp(-0.2 * np.square(X[:, None] - X).sum(-1))
        Q = np.column_stack([np.ones(n), rng.normal(size=(n, 2))])[:, :q]
        self.M, self.Q = (K + alpha * np.eye(n)).astype(dtype), Q.astype(dtype)
        self.Y = rng.normal(size=(n, 2)).astype(dtype)
        self.rng, self.dtype, self.now = rng, dtype, np.arange(start)
        P, G, Omega = (part.astype(dtype) for part in self.inverse())
        M, Q = self.M[:start, :start], self.Q[:start]
        self.holder = Growing.of(Explicit(P, G, alpha), Omega, M, Q, entry=1.0, refines=refines)
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
        """Blocks of every size come and go at random until ``target`` rows are held; the first twelve stay."""
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
            (holder.diagonal_blocks(rows[: len(rows) // 2 * 2].reshape(-1, 2))[0], P[np.ix_(rows[:2], rows[:2])]),
            (holder.explicit().P, P),
            (holder.explicit().apply(Y), P @ Y),
            (holder.squared_diagonal(), np.square(P).sum(0)),
            (holder.held_out(rows).residual(P @ Y, Y), np.linalg.solve(P[np.ix_(rows, rows)], (P @ Y)[rows])),
            (holder.loo_residual(P @ Y, Y, holder.diagonal()), P @ Y / P.diagonal()[:, None]),
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
        square, slots, q = self.holder._held, self.holder.slots, self.Q.shape[1]
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


@pytest.mark.many_cases
@every_q
@pytest.mark.parametrize(("dtype", "refines"), [("float64", True), ("float64", False), ("float32", True)])
def test_every_method_after_updates_equals_a_plain_inverse(q, dtype, refines):
    pool, sizes = Pool(q, dtype, n=200, refines=refines), []
    for target in (190, 14, 60):
        for step, _ in enumerate(pool.walk_to(target)):
            sizes.append(len(pool.holder._held))
            if step % 7 == 0:
                pool.check()
        pool.check()
    assert (np.diff(sizes) > 0).sum() >= 2  # the square grew
    assert (np.diff(sizes) < 0).sum() >= 1  # and shrank
    assert pool.holder.drift < (1e-9 if dtype == "float64" else 1e-2)


def test_slots_of_forgotten_rows_are_used_again():
    pool = Pool(1)
    size = len(pool.holder._held)
    for _ in range(100):
        pool.learn(pool.others()[:2])
        pool.forget(np.array([12, 15]))
    pool.check()
    assert len(pool.holder._held) == size


def test_array_grows_by_a_share_of_its_size():
    """Full squares grow by more than is asked for, and by no more than a quarter."""
    pool = Pool(0, n=900, start=500)
    for _ in range(2):
        size, free = len(pool.holder._held), len(pool.holder._held.free)
        pool.learn(np.arange(len(pool.now), len(pool.now) + free))
        assert len(pool.holder._held) == size  # filled
        pool.learn(np.array([len(pool.now)]))
        assert size + 10 < len(pool.holder._held) < 1.25 * size
    assert_close(pool.holder.diagonal(), pool.inverse()[0].diagonal())


def test_block_larger_than_the_free_slots_is_learnt():
    pool = Pool(1, n=200)
    pool.learn(np.arange(14, 190))
    pool.check()


def test_P_equals_inverse_after_forgetting_everything_and_learning_again():
    pool = Pool(0)
    pool.forget(np.arange(14))
    assert pool.holder.n == 0
    assert not pool.holder._held.array.any()
    pool.learn(np.arange(20, 23))
    pool.check()
    pool.learn(np.array([40]))
    pool.check()


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
def test_holder_is_stale_after_its_update(verb, step):
    pool = Pool(1)
    old, Y = pool.holder, pool.Y[:14]
    VERBS[verb](old.now(old.slots), Y)  # works before
    pool.learn(np.array([40])) if step == "learn" else pool.forget(np.array([3]))
    assert not old.current
    with pytest.raises(StaleError, match="has learnt or forgotten samples since"):
        VERBS[verb](old, Y)
    pool.check()


def test_stale_update_is_refused_and_changes_nothing():
    pool = Pool(1)
    border, removal = pool.border(np.array([20])), pool.holder.removal(np.array([2]))
    pool.check()  # what is only prepared has no effect
    pool.learn(np.array([30, 31]))
    for late in (border.learn, removal.forget):
        with pytest.raises(StaleError):
            late()
    pool.check()


@every_dtype
def test_rows_that_alone_determine_a_column_cannot_be_forgotten(dtype):
    """Without its last rows the unpenalised columns are not determined: 0 up to rounding, of either sign."""
    pool = Pool(1, dtype, start=3)
    for seed in range(12):
        gone = np.random.default_rng(seed).permutation(3)
        with pytest.raises(SingularBlockError, match=rf"leaving out 3 of {len(pool.now)} rows"):
            pool.holder.removal(gone)
    assert pool.holder.current
    P = pool.inverse()[0]
    assert_close(pool.holder.explicit().P, P.astype(dtype))
    assert pool.holder.removal(np.array([0])).forget().n == len(pool.now) - 1


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


@pytest.mark.parametrize("t", [1, 3])
def test_learning_rows_lost_in_rounding_is_an_error_and_changes_nothing(t):
    """Rows that repeat others, without a penalty of their own."""
    pool = Pool(1, start=40)
    for seed in range(20):  # of either sign
        same = np.random.default_rng(seed).permutation(40)[:t]
        with pytest.raises(NotPositiveDefiniteError, match=r"Schur complement|not positive"):
            pool.holder.border(pool.M[np.ix_(pool.now, same)], pool.Q[same], pool.M[np.ix_(same, same)])
    pool.check()
    pool.learn(np.array([50]))
    pool.check()


@pytest.mark.parametrize("t", [1, 2])
def test_indefinite_new_rows_are_refused(t):
    pool, corner = Pool(1), np.diag([1.0, -1.0])[-t:, -t:]
    with pytest.raises(NotPositiveDefiniteError):
        pool.holder.border(np.zeros((14, t)), np.zeros((t, 1)), corner)


def test_growth_without_memory_changes_nothing(monkeypatch):
    pool = Pool(1, n=200)
    pool.learn(np.arange(14, 14 + len(pool.holder._held.free)))  # the room is used up
    with monkeypatch.context() as patched:
        patched.setattr(memory, "available_memory", lambda: 1000)
        with pytest.raises(MemoryError, match="P, the matrix of the fit, with room to grow"):
            pool.border(np.array([100]))
        with pytest.raises(MemoryError, match="P, the matrix of the fit,"):
            pool.holder.explicit()
    pool.check()
    pool.learn(np.array([100]))
    pool.check()


# -- rounding: residuals, refinement, drift --------------------------------------------------------------------------


def falsified(pool, size, seed=3):
    """Noise of this relative size in H, symmetric, at the slots in use."""
    square = pool.holder._held
    used = np.concatenate([np.arange(square.q), pool.holder.slots])
    noise = np.random.default_rng(seed).normal(size=(len(used), len(used)))
    H = square.H
    for j, slot in enumerate(used):
        H[used[j:], slot] += (size * np.abs(H).max() * noise[j:, j]).astype(H.dtype)


def test_updates_refine_a_wrong_P():
    """Noise of 1e-8 in H enters the solution squared."""
    for step, argument in (("learn", [60, 61]), ("learn", [60]), ("forget", [2, 5]), ("forget", [7])):
        pool = Pool(1, start=30)
        falsified(pool, 1e-8)
        getattr(pool, step)(np.array(argument))
        P, G, _ = pool.inverse()
        Y = pool.Y[pool.now]
        assert 1e-9 < pool.holder.drift < 1e-6
        assert_close(pool.A, P @ Y, rtol=1e-11)
        assert_close(pool.B, G @ Y, rtol=1e-11, scale=np.abs(Y).max())
        assert np.abs(pool.holder.explicit().P - P).max() > 1e-10 * np.abs(P).max()  # the noise is there


@every_dtype
@pytest.mark.parametrize("step", ["learn", "forget"])
@pytest.mark.parametrize("t", [1, 4])
def test_drift_is_the_largest_relative_residual_met(dtype, step, t):
    pool = Pool(1, dtype, start=30)
    assert pool.holder.drift == 0.0
    falsified(pool, 1e-3)
    square = pool.holder._held
    slots, used = pool.holder.slots, np.concatenate([[0], pool.holder.slots])
    Z = np.block([[np.zeros((1, 1)), pool.Q[:30].T], [pool.Q[:30], pool.M[:30, :30]]]).astype(float)
    H = (np.tril(square.H) + np.tril(square.H, -1).T)[np.ix_(used, used)].astype(float)
    new, places = np.arange(60, 60 + t), np.arange(7, 7 + t)
    if step == "learn":
        b = np.vstack([pool.Q[new].T, pool.M[np.ix_(pool.now, new)]]).astype(float)
        pool.learn(new)
    else:
        b = np.eye(31)[:, 1 + places]
        pool.forget(places)
    expected = np.abs(b - Z @ H @ b).max() / np.abs(b).max()
    assert pool.holder.drift == pytest.approx(expected, rel=1e-6 if dtype == "float64" else 1e-2)
    before = pool.holder.drift
    assert pool.holder.now(pool.holder.slots[:3]).drift == before  # of the matrix, whoever shows it
    assert len(slots) == 30


def test_drift_never_falls():
    pool = Pool(1, start=30)
    falsified(pool, 1e-4)
    pool.learn(np.array([70]))
    most = pool.holder.drift
    pool.learn(np.array([71]))
    assert pool.holder.drift >= most > 1e-6


def test_largest_past_entry_of_P_is_forgotten_with_its_row():
    pool = Pool(1, n=30)
    pool.holder.shrinkage()
    slot = pool.holder.slots[3]
    assert pool.holder._held.peak[slot] > 0
    pool.forget(np.array([3]))
    assert pool.holder._held.peak[slot] == 0


def test_largest_past_entry_of_P_survives_growth_and_compaction():
    """Through growth and compaction, until the row goes; its slot starts anew."""
    pool = Pool(0, n=300, start=20, alpha=1e-4)
    past, sizes = np.zeros(300), []
    for step, argument in (
        *((pool.learn, np.arange(20, 200)), (pool.forget, np.arange(30, 200)), (pool.forget, np.array([0, 3]))),
        *((pool.learn, np.arange(200, 210)), (pool.learn, None), (pool.forget, np.arange(6))),
    ):
        free = len(pool.holder._held.free)
        step(np.arange(210, 210 + free) if argument is None else argument)  # None: every slot is taken
        diagonal = pool.holder.diagonal()
        past[np.setdiff1d(np.arange(300), pool.now)] = 0.0
        past[pool.now] = np.maximum(past[pool.now], diagonal)
        assert pool.holder.shrinkage() == pytest.approx((past[pool.now] / diagonal).max(), rel=1e-6)
        sizes.append(len(pool.holder._held))
    assert sizes[0] > sizes[1]
    assert sizes[0] >= 200
