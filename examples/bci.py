"""Which hand will press the next key? Decoding of real EEG, judged by permutation tests of the whole tuned pipeline.

BCI Competition II, data set IV (Blankertz, Curio & Müller 2002): 28 channels at 100 Hz, the 500 ms that end 130 ms
before a finger of the left or the right hand presses a key; 316 epochs for training, 100 for the official test.

    python examples/bci.py --data DIR [--figure bci.png]

reads DIR/eeg/bci2_iv.npz with the arrays X_train, X_test (epochs, channels, samples; times ``scale`` microvolt),
y_train, y_test (0 left, 1 right), channels and sfreq. Labels of the test part were published after the data; a copy
with them in another order is in circulation, so they are given here, and those of the file are judged beside them
where they differ. The figure needs matplotlib.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from foldless import LSSVC, FoldlessSearchCV
from foldless.model_selection import permutation_test_pattern, permutation_test_score

WIDTH = 10  # samples of 10 ms, in the baseline and in every window
END = -130  # ms, the last sample
BAND = (10, 33)  # Hz, mu and beta rhythms
N_PERMUTATIONS = 1000
PUBLISHED = (  # labels_data_set_iv.txt of the competition (Blankertz et al. 2004, IEEE Trans. Biomed. Eng. 51:1044)
    "1000100011100110000000010111010011001011110001001111101111011101001001011000001101011101011010110110"
)
CV = StratifiedKFold(10, shuffle=True, random_state=0)
SEARCH = FoldlessSearchCV(LSSVC("linear"), {"alpha": np.logspace(1, 5, 9)})
BLOCKS = ("potential, 330 to 230 ms before", "potential, 230 to 130 ms before", "power, 10 to 33 Hz")


# -- features: each epoch by itself, so that nothing is fitted before the model --------------------------------------


def potentials(epochs):
    """Potentials against the mean of all channels and that of the first 100 ms."""
    epochs = epochs - epochs.mean(1, keepdims=True)
    return epochs - epochs[:, :, :WIDTH].mean(2, keepdims=True)


def slow(epochs):
    """Means of the last two windows, microvolt: before a movement the opposite side turns negative."""
    last = potentials(epochs)[:, :, -2 * WIDTH :]
    return np.hstack([last[:, :, :WIDTH].mean(2), last[:, :, WIDTH:].mean(2)])


def power(epochs, sfreq):
    """Power of the rhythms of the motor cortex, decibel: it falls on the side at work."""
    spectrum = np.fft.rfft(potentials(epochs) * np.hanning(epochs.shape[2]))
    frequency = np.fft.rfftfreq(epochs.shape[2], 1 / sfreq)
    inside = (frequency >= BAND[0]) & (frequency <= BAND[1])
    return 10 * np.log10(np.square(np.abs(spectrum[:, :, inside])).sum(2))


def windows(epochs):
    """Means of windows after the baseline, every 30 ms, (epochs, channels, windows), and their middles in ms."""
    last = range(epochs.shape[2], 2 * WIDTH - 1, -3)[::-1]
    means = [potentials(epochs)[:, :, stop - WIDTH : stop].mean(2) for stop in last]
    return np.stack(means, 2), np.array([END + 10 * (stop - epochs.shape[2]) - 45 for stop in last])


# -- tests -----------------------------------------------------------------------------------------------------------


def cross_validated(search, X, y):
    """Every permutation tunes alpha anew in each training part; labels are permuted within the stratified folds."""
    return permutation_test_score(search, X, y, cv=CV, n_permutations=N_PERMUTATIONS)


def official(X, y, X_test, y_test):
    """BatchedGrid and trained on the training part, scored on the test part; each part permutes its own labels."""
    part = np.repeat([0, 1], [len(y), len(y_test)])
    split = [(np.flatnonzero(part == 0), np.flatnonzero(part == 1))]
    options = {"cv": split, "null": part, "n_permutations": N_PERMUTATIONS}
    return permutation_test_score(SEARCH, np.vstack([X, X_test]), np.hstack([y, y_test]), **options)


# -- report ----------------------------------------------------------------------------------------------------------


def report(trained, judged, course, times, pattern, channels):
    """Print the four results."""

    def line(name, result):
        print(f"   {name:32s} {result.score:.3f}   p = {result.pvalue:.4f}")

    print("1. Training part: accuracy in 10-fold cross-validation; alpha is tuned in every training part")
    print(f"   and by each of {N_PERMUTATIONS} permutations for itself.\n")
    for name, result in trained.items():
        line(name, result)
    print("\n   The features were chosen on this part, which flatters them; the test part had no say in anything.\n")

    print("2. Official test part: the same features, tuned and trained on all of the training part\n")
    for name, result in judged.items():
        line(name, result)
    print(f"   {'best entry of the competition':32s} 0.840\n")

    print("3. Slow potentials over time: training part, windows of 100 ms, family-wise p-values\n")
    for time, score, p in zip(times, course.score, course.pvalue_fwe, strict=True):
        print(f"   {time:5.0f} ms   {score:.3f}   p = {p:.3f}{' *' if p <= 0.05 else ''}")

    print("\n4. Pattern of a decision for the right hand; family-wise p <= 0.05 (all channels: the figure)\n")
    for name, values, p in blocks(pattern):
        order = np.argsort(-np.abs(values))
        marked = [f"{channels[k]} {values[k]:+.1f}" for k in order if p[k] <= 0.05]
        print(f"   {name:32s} {', '.join(marked) or 'none, largest ' + channels[order[0]]}")
    print()


def blocks(pattern):
    """(name, values, family-wise p-values) of the three kinds of features, one value a channel."""
    return zip(BLOCKS, np.split(pattern.patterns[0], 3), np.split(pattern.pvalue_fwe[0], 3), strict=True)


def positions(channels):
    """Places of channels on a head of radius 1, nose up: rows by their letters, columns by their numbers."""
    rows = {"F": 0.5, "FC": 0.25, "C": 0.0, "CP": -0.25, "O": -0.85}
    y = np.array([rows[name.rstrip("z0123456789")] for name in channels])
    number = np.array([int("0" + name.strip("FCPOz")) for name in channels])
    return np.column_stack([np.where(number % 2, -1, 1) * (number + 1) // 2 * 0.27 * np.sqrt(1 - y**2 / 2), y])


def draw(path, trained, course, times, pattern, channels):
    """Time course, null distribution, and three maps of the pattern."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from foldless.inspection import PatternDisplay, PermutationDisplay, TimeCourseDisplay

    figure = plt.figure(figsize=(11, 7), layout="constrained")
    above, below = figure.subfigures(2, height_ratios=[1.1, 1])
    left, right = above.subplots(1, 2, width_ratios=[2, 1])
    TimeCourseDisplay.from_result(course, times=times, unit="ms, 0 is the key press", ax=left)
    left.set_title("Slow potentials, windows of 100 ms", loc="left")
    PermutationDisplay.from_result(trained["both"], ax=right)
    right.set_title("Both, tuned by each permutation", loc="left")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    below.suptitle("Pattern of a decision for the right hand", x=0.01, ha="left")
    for ax, (name, values, p) in zip(below.subplots(1, 3), blocks(pattern), strict=True):
        ax.add_patch(plt.Circle((0, 0), 1, fill=False, color="0.7"))
        ax.plot([-0.1, 0, 0.1], [0.995, 1.1, 0.995], color="0.7", linewidth=1)
        label = "dB" if "power" in name else "µV"
        display = PatternDisplay(values=values, pvalue_fwe=p, positions=positions(channels), label=label)
        display.plot(ax, point_kw={"s": 130}, marked_kw={"s": 130})
        ax.set_title(name, fontsize="medium")
    figure.savefig(path, dpi=150)
    print(f"   figure: {path}\n")


def main():
    """Read, test, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="folder that holds eeg/bci2_iv.npz")
    parser.add_argument("--figure", type=Path, metavar="PATH", help="where to save the figure")
    arguments = parser.parse_args()
    path = arguments.data / "eeg" / "bci2_iv.npz"
    if not path.exists():
        parser.error(f"{path} does not exist; --data names the folder above eeg/bci2_iv.npz")
    data = np.load(path)
    epochs, epochs_test = (data[name].astype(float) * data["scale"] for name in ("X_train", "X_test"))
    y, sfreq, channels = data["y_train"], float(data["sfreq"]), data["channels"].tolist()
    labels = {"both, labels as published": np.array(list(map(int, PUBLISHED)), y.dtype)}
    if not np.array_equal(data["y_test"], labels["both, labels as published"]):
        labels["both, labels of this file"] = data["y_test"]
    print("\nBCI Competition II, data set IV: which hand will press the next key?")
    print(f"{len(y)} epochs for training and {len(epochs_test)} for the test, {len(channels)} channels, 500 ms\n")

    features = {"slow potentials (2 windows)": slow(epochs), "power, 10 to 33 Hz": power(epochs, sfreq)}
    features["both"] = both = np.hstack(list(features.values()))
    trained = {name: cross_validated(SEARCH, X, y) for name, X in features.items()}
    both_test = np.hstack([slow(epochs_test), power(epochs_test, sfreq)])
    judged = {name: official(both, y, both_test, y_test) for name, y_test in labels.items()}
    X, times = windows(epochs)
    course = cross_validated(FoldlessSearchCV(LSSVC("linear"), {"alpha": np.logspace(1, 5, 5)}), X, y)
    model = SEARCH.fit(both, y).best_estimator_
    pattern = permutation_test_pattern(model, both, y, n_permutations=N_PERMUTATIONS)
    report(trained, judged, course, times, pattern, channels)
    if arguments.figure:
        draw(arguments.figure, trained, course, times, pattern, channels)


if __name__ == "__main__":
    with threadpool_limits(1):  # the better setting for matrices of this size
        main()
