"""Decoding over time, as with MNE: when does the EEG tell two stimuli apart, does the code last, and where is it?

    python examples/decoding.py [--figure decoding.png] [--no-mne]

Epochs are simulated, so that the truth is known: the stimuli differ by a source on the left from 100 to 300 ms and by
one at the back from 300 to 500 ms. A third source, between them, is stronger and knows nothing of the stimulus.
foldless takes what ``Epochs.get_data()`` gives and does not depend on mne; ``--no-mne`` does without its container.
The figure needs matplotlib.
"""

import argparse
import sys
import time

import numpy as np

from foldless import KernelFisherDiscriminant
from foldless.model_selection import permutation_test_pattern, permutation_test_score

ROWS = {  # channels from left to right, by their height on a head of radius 1, nose up
    0.9: "Fp1 Fp2",
    0.5: "F7 F3 Fz F4 F8",
    0.25: "FC5 FC1 FC2 FC6",
    0.0: "T7 C3 Cz C4 T8",
    -0.25: "CP5 CP1 CP2 CP6",
    -0.5: "P7 P3 Pz P4 P8",
    -0.9: "O1 Oz O2",
}
CHANNELS = [name for names in ROWS.values() for name in names.split()]
PLACES = np.array(
    [(x, y) for y, names in ROWS.items() for x in 0.85 * np.sqrt(1 - y**2) * np.linspace(-1, 1, len(names.split()))]
)
SFREQ, TMIN, N_TIMES, N_EPOCHS = 40.0, -0.2, 37, 200
TIMES = TMIN + np.arange(N_TIMES) / SFREQ
EVENTS = {"house": 1, "face": 2}
N_PERMUTATIONS = 500


# -- simulated epochs ------------------------------------------------------------------------------------------------


def topography(x, y):
    """How strongly each channel sees a source at (x, y)."""
    return np.exp(-np.square(PLACES - [x, y]).sum(1) / 0.3)


def simulate(rng):
    """Data in volt (epochs, channels, times), the stimulus of each epoch, and the true effect (channels, times)."""

    def course(start, stop):
        phase = (TIMES - start) / (stop - start)
        return np.where((phase > 0) & (phase < 1), np.sin(np.pi * phase), 0.0)

    stimulus = rng.permutation(np.resize(list(EVENTS.values()), N_EPOCHS))
    effect = np.outer(topography(-0.55, 0.1), course(0.1, 0.3)) + np.outer(topography(0.2, -0.7), course(0.3, 0.5))
    X = np.where(stimulus == EVENTS["face"], 0.5, -0.5)[:, None, None] * effect
    rhythm = topography(-0.3, -0.35)[:, None] * rng.normal(size=(N_EPOCHS, 1, N_TIMES))
    return 1e-6 * (X + 2.0 * rhythm + rng.normal(size=X.shape)), stimulus, effect


def as_epochs(X, stimulus):
    """The container of mne; what follows would be the same for real epochs."""
    try:
        import mne
    except ImportError:
        sys.exit("This example shows epochs of mne: pip install mne. Or run it with --no-mne.")
    events = np.column_stack([100 * np.arange(N_EPOCHS), np.zeros(N_EPOCHS, int), stimulus])
    return mne.EpochsArray(X, mne.create_info(CHANNELS, SFREQ, "eeg"), events, TMIN, EVENTS, verbose="error")


# -- report ----------------------------------------------------------------------------------------------------------


def report(course, general, pattern, peak, source):
    """Print the three results."""
    print("1. When? Accuracy in 5-fold cross-validation, family-wise p-values\n")
    for when, score, p in list(zip(TIMES, course.score, course.pvalue_fwe, strict=True))[::2]:
        bar = "#" * max(0, round(60 * (score - 0.5)))
        print(f"   {1000 * when:5.0f} ms   {score:.3f}   p = {p:.3f}   {bar}")
    print(f"\n   computed as {course.path}\n")

    print(
        "2. Does the code last? Models of one time tested at another: mean accuracy, share with family-wise p <= 0.05\n"
    )
    early, late = (TIMES > 0.14) & (TIMES < 0.26), (TIMES > 0.34) & (TIMES < 0.46)
    for name, train, test in (
        ("trained and tested 140 to 260 ms", early, early),
        ("trained and tested 340 to 460 ms", late, late),
        ("trained early, tested late", early, late),
        ("trained late, tested early", late, early),
    ):
        cells = np.ix_(train, test)
        print(f"   {name:34s} {general.score[cells].mean():.3f}   {np.mean(general.pvalue_fwe[cells] <= 0.05):.0%}")

    print(f"\n3. Where? Weights and their pattern at {1000 * TIMES[peak]:.0f} ms\n")
    for name, values, p in (
        ("pattern", pattern.patterns[0], pattern.pvalue_fwe[0]),
        ("weights", pattern.weights[0], pattern.weights_pvalue_fwe[0]),
    ):
        found = ", ".join(np.array(CHANNELS)[p <= 0.05]) or "none"
        print(f"   {name}: correlation with the true source {np.corrcoef(values, source)[0, 1]:.2f};", end=" ")
        print(f"family-wise p <= 0.05 for {found}")
    print()


def draw(path, course, general, pattern, peak, source):
    """Time course, generalisation, and maps of the source, the pattern and the weights."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from foldless.inspection import GeneralisationDisplay, PatternDisplay, TimeCourseDisplay

    figure = plt.figure(figsize=(11, 8), layout="constrained")
    above, below = figure.subfigures(2, height_ratios=[1.2, 1])
    left, right = above.subplots(1, 2, width_ratios=[1.3, 1])
    TimeCourseDisplay.from_result(course, times=1000 * TIMES, unit="ms", ax=left)
    left.set_title("Accuracy over time", loc="left")
    left.spines[["top", "right"]].set_visible(False)
    GeneralisationDisplay.from_result(general, times=1000 * TIMES, unit="ms", ax=right)
    right.set_title("Generalisation over time", loc="left")
    below.suptitle(f"{1000 * TIMES[peak]:.0f} ms, face against house", x=0.01, ha="left")
    nothing = np.ones(len(CHANNELS))
    for ax, (name, values, p) in zip(
        below.subplots(1, 3),
        (
            ("true source", source, nothing),
            ("pattern", pattern.patterns[0], pattern.pvalue_fwe[0]),
            ("weights", pattern.weights[0], pattern.weights_pvalue_fwe[0]),
        ),
        strict=True,
    ):
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.7"))
        ax.plot([-0.1, 0, 0.1], [0.995, 1.1, 0.995], color="0.7", linewidth=1)
        display = PatternDisplay(values=values, pvalue_fwe=p, positions=PLACES, label="")
        display.plot(ax, point_kw={"s": 150}, marked_kw={"s": 150})
        ax.set_title(name, fontsize="medium")
    figure.savefig(path, dpi=150)
    print(f"   figure: {path}\n")


def main():
    """Simulate, test, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", metavar="PATH", help="where to save the figure")
    parser.add_argument("--no-mne", action="store_true", help="plain arrays in place of mne.Epochs")
    arguments = parser.parse_args()

    data, stimulus, effect = simulate(np.random.default_rng(0))
    if arguments.no_mne:
        X, y = 1e6 * data, stimulus
    else:
        epochs = as_epochs(data, stimulus)
        X, y = epochs.get_data(units="uV"), epochs.events[:, 2]  # in volt, alpha would have to be 1e-12 times as large
    print(f"\n{X.shape[0]} epochs, {X.shape[1]} channels, {X.shape[2]} times; {N_PERMUTATIONS} permutations\n")

    model = KernelFisherDiscriminant(kernel="linear", alpha=10.0)
    start = time.perf_counter()
    course = permutation_test_score(model, X, y, cv=5, n_permutations=N_PERMUTATIONS)
    middle = time.perf_counter()
    general = permutation_test_score(model, X, y, cv=5, n_permutations=N_PERMUTATIONS, generalise=True)
    end = time.perf_counter()
    peak = int(np.argmax(course.score))
    pattern = permutation_test_pattern(model, X[:, :, peak], y, n_permutations=N_PERMUTATIONS)
    report(course, general, pattern, peak, effect[:, peak])
    print(f"   {middle - start:.1f} s for the time course, {end - middle:.1f} s for the generalisation\n")
    if arguments.figure:
        draw(arguments.figure, course, general, pattern, peak, effect[:, peak])


if __name__ == "__main__":
    main()
