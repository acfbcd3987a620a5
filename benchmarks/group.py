"""What tests of a group of subjects cost: permutations of every subject, and all that is made of them.

12 subjects x 1,000 permutations x 50 times, subjects in two processes unless --jobs says otherwise.
"""

from functools import partial

import numpy as np
from joblib import Parallel, delayed

from common import at_most, best_time, markdown, parser, report
from foldless import LSSVC
from foldless.model_selection import permutation_test_score
from foldless.stats import cluster_test, combine, prevalence_test, sign_flip_test, step_down

LIMIT = 10  # seconds for everything


def subject(trials, channels, times, number):
    """Trials x channels x times, two classes that differ in the middle."""
    rng = np.random.default_rng(number)
    y = rng.permutation(np.arange(trials) % 2)
    X = rng.standard_normal((trials, channels, times))
    X[:, : channels // 4, times // 3 : times // 2] += 0.4 * y[:, None, None]
    return X, y


def permuted(subjects, count, jobs):
    """The test of each subject by itself, subjects in several processes."""
    options = {"scoring": "accuracy", "n_permutations": count}
    test = delayed(partial(permutation_test_score, LSSVC("linear", alpha=10), **options))
    return Parallel(jobs)(test(X, y, random_state=number) for number, (X, y) in enumerate(subjects))


def main():
    """Measure and report."""
    options = parser(__doc__)
    options.add_argument("--jobs", type=int, default=2, help="processes for the tests of subjects")
    options = options.parse_args()
    count, trials, channels, times, m, repeats = (3, 40, 8, 10, 50, 0) if options.fast else (12, 80, 32, 50, 1000, 3)
    subjects = [subject(trials, channels, times, number) for number in range(count)]
    results = permuted(subjects, m, options.jobs)
    group = combine(results, n_permutations=m)
    steps = {
        "permutation tests of all subjects": partial(permuted, subjects, m, options.jobs),
        "combine": partial(combine, results, n_permutations=m),
        "cluster mass": partial(cluster_test, group),
        "TFCE": partial(cluster_test, group, statistic="tfce"),
        "step-down": partial(step_down, group),
        "sign flips": partial(sign_flip_test, results),
        "prevalence": partial(prevalence_test, results),
    }
    entries = [{"name": name, "seconds": best_time(step, repeats)} for name, step in steps.items()]
    markdown(entries)
    total = sum(entry["seconds"] for entry in entries)
    size = {"subjects": count, "trials": trials, "channels": channels, "times": times, "permutations": m}
    report(options, **size, entries=entries, seconds=at_most(LIMIT, total))


if __name__ == "__main__":
    main()
