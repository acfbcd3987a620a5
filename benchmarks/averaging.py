"""Do averaged predictions of the settings that are nearly as good as the best err less than the best alone?

Sets, partitions and fits are those of ``criterion.py``. The best setting of the default grid by leave-one-out is
averaged with others, with equal weights, by one of the rules

    within c se          all whose criterion is at most c standard errors above the best; the standard error is that of
                         the mean of the best one's losses of single rows
    within paired se     all whose rowwise losses are on average at most one standard error of their difference above
    best k               the k best
    within c se, best k  both

Details are decided on every second set (``decided``); the rule with the least mean error there, and the plain rule
within one standard error, are then judged on the others (``fresh``). Leave-one-out losses of the average are exact, as
those of each member are. ``gammas`` is the number of kernel matrices that a prediction takes: members of one gamma have
one sum of coefficients.

    python benchmarks/averaging.py --data DIR [--splits 20] [--criterion press] [--fast]
"""

from collections import defaultdict

import numpy as np
from threadpoolctl import threadpool_limits

from common import markdown, report
from criterion import drawn_fits, line, over_sets, set_options
from foldless._engine.tuning.criteria import CRITERIA

RULES = {
    "best": (None, 1),
    "within 1 se": (1.0, None),
    "within 0.5 se": (0.5, None),
    "within 0.25 se": (0.25, None),
    "within 0.1 se": (0.1, None),
    "within paired se": ("paired", None),
    "best 5": (None, 5),
    "best 10": (None, 10),
    "best 20": (None, 20),
    "within 1 se, best 10": (1.0, 10),
    "within 0.5 se, best 20": (0.5, 20),
}
PLAIN = "within 1 se"
BEST = 0  # place of the rule without an average


def row_losses(name, fits, targets):
    """Losses of single rows, added up over classes: of fits (..., n, m) the losses (..., n)."""
    return CRITERIA[name].function(fits[..., None], targets[..., None], np.ones(1))[0].sum(-1)


def members(losses, best, width, most):
    """Places of the settings that a rule averages; ``losses`` (s, n), ``best`` the place of the best."""
    mean, n = losses.mean(1), losses.shape[1]
    gap = mean - mean[best]
    if width is None:
        near = np.ones(len(mean), bool)
    elif width == "paired":
        near = gap <= (losses - losses[best]).std(1, ddof=1) / np.sqrt(n)
    else:
        near = gap <= width * losses[best].std(ddof=1) / np.sqrt(n)
    near[best] = True
    order = np.argsort(np.where(near, gap, np.inf), kind="stable")
    return order[: min(near.sum(), most or len(order))]


def judged(fits, name):
    """{rule: (test error, own loss / best's, squared test loss / best's, members, gammas)} of one partition."""
    losses, best = row_losses(name, fits.heldout, fits.targets), fits.best(name)
    seen = fits.test_codes >= 0
    aims = np.array([fits.targets[np.argmax(fits.codes == k)] for k in fits.test_codes[seen]])  # targets by class

    def square(f):
        return np.square(f[seen] - aims).mean()

    found = {}
    for rule, (width, most) in RULES.items():
        places = members(losses, best, width, most) if rule != "best" else np.array([best])
        test = fits.test[places].mean(0)
        found[rule] = (
            fits.error(test),
            row_losses(name, fits.heldout[places].mean(0), fits.targets).mean() / losses[best].mean(),
            square(test) / square(fits.test[best]),
            len(places),
            len({fits.settings[place]["gamma"] for place in places}),
        )
    return found


def summarised(tables):
    """One line a rule over sets, from {rule: (splits, 5)} of each."""
    names = list(RULES)
    errors = [np.column_stack([table[rule][:, 0] for rule in names]) for table in tables]
    rows = over_sets(names, errors, BEST)
    for row in rows:
        own, square, size, gammas = np.mean([table[row["method"]].mean(0)[1:] for table in tables], 0)
        row |= {"own loss": own, "squared test loss": square, "members": size, "gammas": gammas}
    return rows


@threadpool_limits.wrap(limits=1)  # small matrices are fastest on one thread
def main():
    options, names = set_options(__doc__, criterion="press")
    halves = defaultdict(list)
    lines = []
    for k, name in enumerate(names):
        found = [judged(fits, options.criterion) for fits, _ in drawn_fits(options, name)]
        table = {rule: np.array([each[rule] for each in found]) for rule in RULES}
        half = "fresh" if k % 2 else "decided"
        halves[half].append(table)
        errors = np.column_stack([table[rule][:, 0] for rule in RULES])
        lines.append({"half": half, **line(name, RULES, errors, BEST)})
        markdown(lines[-1:])
    decided = summarised(halves["decided"])
    chosen = min(decided[1:], key=lambda row: row["error"])["method"]
    fresh = [row for row in summarised(halves["fresh"]) if row["method"] in ("best", PLAIN, chosen)]
    for key, rows in {"decided": decided, "fresh": fresh}.items():
        markdown([{"half": key, **row} for row in rows])
    report(options, chosen=chosen, decided=decided, fresh=fresh, sets=lines)


if __name__ == "__main__":
    main()
