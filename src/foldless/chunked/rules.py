"""Rules that are trained on leave-one-out scores: the cut of ``threshold="loo"``, and probabilities.

These scores are those of the rows of the sample (``survey``), left out of the model of all rows, or of all rows of a
training part: with no more rows than the sample has, all that there are, as in memory. Nothing has to be read again.
"""

import numpy as np

from foldless._engine.readout.ranking import best_cut
from foldless._engine.readout.strata import by_margin, stratified_sets
from foldless._engine.readout.task import Rule, calibrated
from foldless.chunked.arguments import cut_without_a_row
from foldless.chunked.leftout import left_out, warn_of_lost


def is_trained(plan, *, probabilities=True):
    """Whether a rule takes leave-one-out scores."""
    return plan.readout.cuts or (probabilities and plan.calibration is not None)


def rule_of(part, labels, alpha, sample, *, probabilities=True):
    """The rule of a part at one alpha; ``labels`` are its rows of positive weight by class, ``sample`` some of them."""
    plan = part.plan
    if not is_trained(plan, probabilities=probabilities):
        return Rule(plan.readout, part.coefficients(alpha).moments)
    models = left_out(part, labels, np.array([alpha]))
    codes, weights, cut, calibrator = plan.codes(sample.y), plan.weights(sample), 0.0, None

    def taken(places):
        rows = sample.taken(places)
        return plan.features(rows.X), plan.targets(rows.y), weights[places]

    blocks = np.split(np.arange(len(sample)), range(plan.block, len(sample), plan.block))
    _, found, lost = zip(*(models.rows(*taken(places)) for places in blocks), strict=True)
    scores = np.concatenate(found)
    warn_of_lost(sum(lost))

    def stratified():
        fairer = np.empty_like(scores)
        for places in stratified_sets(codes, by_margin(scores, codes)):
            fairer[places] = models.together(*taken(places))
        return fairer

    if plan.readout.cuts:
        cut = best_cut(scores, codes == 1, weights)
    if probabilities and plan.calibration is not None:
        counted = np.ones(len(sample)) if sample.sample_weight is None else sample.sample_weight
        known = codes, plan.n_classes, counted, plan.readout.expected
        calibrator = calibrated(plan.calibration, scores, stratified, *known)
    return Rule(plan.readout, models.model.moments, cut, calibrator)


def rules_of_folds(parts, sums, alpha, sample, folds, *, probabilities):
    """Those of the training parts of the folds."""
    own, labels = folds.of(sample), sums.labels.sum(0)
    for fold, (part, _) in enumerate(parts):
        rows = sample.taken(np.flatnonzero(own != fold))
        yield rule_of(part, labels - sums.labels[fold], alpha, rows, probabilities=probabilities)


def check_rule(plan, survey, size, *, loo):
    """Refuse rules that have no leave-one-out, or too few rows of a class in the sample of at most ``size`` rows."""
    if plan.readout.cuts and loo:
        raise cut_without_a_row()
    whole = len(survey.sample) < size or len(survey.sample) == survey.n_rows  # others have no weight
    if whole or not is_trained(plan):
        return
    own = plan.folds.of(survey.sample)
    table = np.zeros((plan.folds.k, plan.n_classes))
    np.add.at(table, (own, plan.codes(survey.sample.y)), 1)
    least = (table.sum(0) - table).min(0) if plan.folds.k > 1 else table.sum(0)
    for label, count in zip(survey.classes.tolist(), survey.counts, strict=True):
        found = int(least[plan.codes(label)])
        if found < 2 <= count:
            why = "threshold='loo'" if plan.readout.cuts else f"calibration={plan.calibration!r}"
            raise ValueError(
                f"{why}: class {label!r} has {count:.0f} rows, and {found} in the sample of {len(survey.sample)} rows,"
                " or what folds leave of it; two are needed. Use a larger sample=."
            )
