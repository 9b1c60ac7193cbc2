"""Probes of dynamic representations: what a logistic regression reads out of features, and how sure that is (F.2).

Each of R repetitions holds out a combination of factors, subsamples the training set, reduces it by PCA to 99.99 % of
its variance, and fits a logistic regression whose weight is cross-validated. All sources share the subsamples of the
repetitions, so that differences between them are paired.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy import stats

from scrubjay.errors import DataError, ProbeError
from scrubjay.files import write_atomically
from scrubjay.study.logistic import cross_validate
from scrubjay.workers.base import HERE, Workers

VERSION = 5
SIZES = (50, 100, 200, 400, 800, 1600, 3200)
REPETITIONS = 50
VARIANCE = 0.9999
PENALTIES = tuple(10.0**power for power in range(-5, 2))
FOLDS = 5
EXACT = 640
"""Rows of the largest matrices whose eigenvalues are computed in float64; those of larger ones in the features' own
precision."""
TRIES = 200
"""Combinations drawn for a repetition until training and test set have both labels."""


@dataclass(frozen=True)
class ProbeTable:
    """What the n examples of an experiment are, whatever their features."""

    label: np.ndarray
    """(n,) bool."""
    scene: np.ndarray
    """(n,): clusters of examples that are alike."""
    factors: Mapping[str, np.ndarray] = field(default_factory=dict)
    """(n,) each: what a repetition holds out values of."""
    held_out: Mapping[str, int] = field(default_factory=dict)
    """How many values of each factor are held out."""
    train: np.ndarray | None = None
    """(n,) bool: may be trained on; None for all."""
    test: np.ndarray | None = None
    """(n,) bool: may be tested on; None for all."""
    balance: bool = False
    """Subsamples have as many positive as negative examples, and accuracies weigh both labels alike."""
    steps: np.ndarray | None = None
    """(n,) int: steps since the object was seen."""

    def __len__(self) -> int:
        return len(self.label)

    def shuffled(self, seed: int = 0) -> ProbeTable:
        """The table with its labels permuted: nothing can be learned from it."""
        return replace(self, label=np.random.default_rng(seed).permutation(self.label))


@dataclass(frozen=True)
class Repetition:
    """Rows of one repetition."""

    train: tuple[np.ndarray, ...]
    """Rows of a subsample for each size; a smaller one is part of a larger one."""
    test: np.ndarray
    held_out: Mapping[str, tuple]


def draw_repetitions(
    table: ProbeTable, sizes: Sequence[int] = SIZES, count: int = REPETITIONS, seed: int = 0
) -> tuple[tuple[int, ...], list[Repetition]]:
    """The sizes that there are examples for, and each repetition's rows.

    Where the smallest training set has fewer examples than a size, all that it has take its place.
    """
    if not table.label.any() or table.label.all():
        raise ProbeError("examples of both labels are needed")
    drawn = [_draw(table, np.random.default_rng([seed, number])) for number in range(count)]
    most = min(_most(table, train) for train, _, _ in drawn)
    largest = min(most, max(sizes))
    usable = (*(size for size in sorted(set(sizes)) if size < largest), largest)
    repetitions = []
    for number, (train, test, held_out) in enumerate(drawn):
        order = _order(table, train, np.random.default_rng([seed, number, 1]))
        one = Repetition(tuple(order[:size] for size in usable), test, held_out)
        _assert_held_out(table, one)
        repetitions.append(one)
    return usable, repetitions


def _draw(table: ProbeTable, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[str, tuple]]:
    """Rows that may be trained on and tested on, and the values that are held out."""
    count = len(table)
    for _ in range(TRIES):
        train = np.ones(count, bool) if table.train is None else table.train.copy()
        test = np.ones(count, bool) if table.test is None else table.test.copy()
        held_out = {}
        for name, number in table.held_out.items():
            values = np.unique(table.factors[name])
            if number >= len(values):
                raise ProbeError(f"{name}: {number} of {len(values)} values cannot be held out")
            held_out[name] = tuple(np.sort(rng.choice(values, number, replace=False)).tolist())
            held = np.isin(table.factors[name], held_out[name])
            train &= ~held
            test &= held
        enough = [np.bincount(table.label[rows], minlength=2).min() for rows in (train, test)]
        if enough[0] >= 2 and enough[1] >= 1:
            return np.flatnonzero(train), np.flatnonzero(test), held_out
    raise ProbeError("the examples are too few: no training and test set have both labels")


def _most(table: ProbeTable, rows: np.ndarray) -> int:
    """The size of the largest subsample of rows."""
    return 2 * int(np.bincount(table.label[rows], minlength=2).min()) if table.balance else len(rows)


def _order(table: ProbeTable, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows in an order whose every beginning has the proportion of labels that all rows have, or half of each."""
    label = table.label[rows]
    turns = np.empty(len(rows))
    for value in (False, True):
        mine = rng.permutation(np.flatnonzero(label == value))
        # The k-th of m stands at (k + 1/2) / m of the way; with balance the k-th of either label at the same place.
        turns[mine] = (np.arange(len(mine)) + 0.5) / (1 if table.balance else len(mine)) + value * 1e-9
    ordered = rows[np.argsort(turns, kind="stable")]
    return ordered[: _most(table, rows)]


def _assert_held_out(table: ProbeTable, one: Repetition) -> None:
    """Nothing that is tested was trained on, nor anything like it."""
    for name, values in one.held_out.items():
        assert not np.isin(table.factors[name][one.train[-1]], values).any(), f"{name}: trained on what is held out"
        assert np.isin(table.factors[name][one.test], values).all(), f"{name}: tested on what is not held out"
    assert not np.isin(one.test, one.train[-1]).any(), "tested on training examples"
    if table.train is not None and table.test is not None and not (table.train & table.test).any():
        scenes = np.intersect1d(table.scene[one.train[-1]], table.scene[one.test])
        assert not len(scenes), f"trained and tested in {scenes[:1]}"


def fit_predict(features: str, label: np.ndarray, train: Sequence[np.ndarray], test: np.ndarray) -> np.ndarray:
    """Predictions (sizes, len(test)) bool of logistic regressions on rows of a file of features (n, D)."""
    from sklearn.model_selection import StratifiedKFold

    values = np.load(features, mmap_mode="r", allow_pickle=False)
    predictions = np.empty((len(train), len(test)), bool)
    tested = np.asarray(values[test], np.float32)
    largest = max(train, key=len)
    read = np.asarray(values[largest], np.float32)
    for number, rows in enumerate(train):
        folds = min(FOLDS, int(np.bincount(label[rows], minlength=2).min()))
        if folds < 2:
            raise ProbeError(f"{len(rows)} examples are too few: cross-validation needs two of each label")
        # Subsamples are nested: a smaller one is the beginning of a larger one.
        examples = read[: len(rows)] if np.array_equal(rows, largest[: len(rows)]) else values[rows].astype(np.float32)
        if not np.ptp(examples, 0).any():  # Nothing to learn from: no component has any variance.
            predictions[number] = label[rows].mean() > 0.5
            continue
        components, tested_components = principal_components(examples, tested)
        splits = list(StratifiedKFold(folds).split(components, label[rows]))
        weights = cross_validate(components, label[rows], splits, PENALTIES)
        predictions[number] = tested_components @ weights[:-1] + weights[-1] > 0
    return predictions


def principal_components(train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Features (n, D) and (m, D), standardized as in training, as coordinates along the training features' principal
    components, as many as have VARIANCE of their variance. In the precision of the features.

    By eigenvalues of the smaller of covariance (D, D) and Gram matrix (n, n): a third to a tenth of the time of a
    singular value decomposition, and a stack of four images has 5,120 features.
    """
    from scipy.linalg import eigh

    mean, deviation = train.mean(0, dtype=np.float64), train.std(0, dtype=np.float64)
    # Without it the number of forward steps, up to 14, would rule the components. A constant feature stays 0.
    deviation[deviation < 1e-9 * np.maximum(np.abs(mean), 1)] = np.inf
    mean, deviation = mean.astype(train.dtype), deviation.astype(train.dtype)
    train, test = (train - mean) / deviation, (test - mean) / deviation
    wide = train.shape[1] > len(train)
    products = train @ train.T if wide else train.T @ train
    if len(products) <= EXACT:
        products = products.astype(np.float64)
    values, vectors = eigh(products, driver="evd", overwrite_a=True, check_finite=False)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    share = np.cumsum(values, dtype=np.float64) / values.sum(dtype=np.float64)
    count = int(np.searchsorted(share, VARIANCE, side="right")) + 1
    axes, root = vectors[:, :count], np.sqrt(values[:count])
    if not wide:
        axes = axes.astype(train.dtype)
        return train @ axes, test @ axes
    return (axes * root).astype(train.dtype), (test @ train.T) @ (axes / root).astype(train.dtype)


class Probes:
    """The repetitions of one experiment; predictions of each source are files in a folder."""

    def __init__(
        self,
        table: ProbeTable,
        folder: Path,
        sizes: Sequence[int] = SIZES,
        repetitions: int = REPETITIONS,
        seed: int = 0,
        workers: Workers = HERE,
    ) -> None:
        self.table, self.folder, self.workers = table, Path(folder), workers
        self.sizes, self.repetitions = draw_repetitions(table, sizes, repetitions, seed)

    def run(self, features: Path, progress: Callable[[int, int], None] = lambda done, total: None) -> Predictions:
        """Fits what is missing for a file of features (n, D), float16 or float32; `progress` is told of repetitions.

        Workers read the file, whose folder all of them must see. Where nothing is missing, its digest beside it, which
        is written here, is enough.
        """
        paths = self._paths(digest_of(features))
        missing = [number for number, path in enumerate(paths) if not path.exists()]
        if missing:
            self._check(features)
        requests = [
            (str(features.resolve()), self.table.label, self.repetitions[number].train, self.repetitions[number].test)
            for number in missing
        ]
        done = len(paths) - len(missing)
        progress(done, len(paths))

        for index, predictions in self.workers.map(fit_predict, requests):
            buffer = io.BytesIO()
            np.save(buffer, predictions)
            write_atomically(paths[missing[index]], buffer.getvalue())
            progress(done := done + 1, len(paths))
        return Predictions(self.table, self.sizes, self.repetitions, [self._read(*pair) for pair in enumerate(paths)])

    def has_predictions(self, features: Path) -> bool:
        """Whether nothing is left to fit for a file of features, of which its digest must be there."""
        return all(path.exists() for path in self._paths(digest_of(features)))

    def _check(self, features: Path) -> None:
        """Raises DataError unless there are features of the table's examples."""
        if not features.exists():
            raise DataError(f"{features}: no such file; compute features first")
        values = np.load(features, mmap_mode="r", allow_pickle=False)
        if values.ndim != 2 or len(values) != len(self.table):
            raise DataError(f"{features}: shape {values.shape}, not ({len(self.table)}, D)")

    def _paths(self, digest: str) -> list[Path]:
        """The files of the repetitions' predictions from features of this digest."""
        return [self.folder / f"{self._key(digest, one)}.npy" for one in self.repetitions]

    def _key(self, digest: str, one: Repetition) -> str:
        """A digest of all that a repetition's predictions depend on."""
        parts = hashlib.sha256(f"{VERSION} {digest} {VARIANCE} {PENALTIES} {FOLDS}".encode())
        for rows in (*one.train, one.test):
            parts.update(np.ascontiguousarray(rows, np.int64).tobytes())
            parts.update(np.ascontiguousarray(self.table.label[rows]).tobytes())
        return parts.hexdigest()[:24]

    def _read(self, number: int, path: Path) -> np.ndarray:
        shape = len(self.sizes), len(self.repetitions[number].test)
        try:
            predictions = np.load(path, allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{path}: not predictions: {error}; delete the file") from error
        if predictions.shape != shape or predictions.dtype != bool:
            raise DataError(f"{path}: not predictions of shape {shape}; delete the file")
        return predictions


def digest_path(features: Path) -> Path:
    """Where the digest of a file of features is kept, which is large and need not be."""
    return features.with_suffix(".sha256")


def digest_of(features: Path) -> str:
    """The SHA-256 of a file of features, kept beside it; DataError without either."""
    kept = digest_path(features)
    if not features.exists():
        if not kept.exists():
            raise DataError(f"{features}: no such file; compute features first")
        return kept.read_text().strip()
    with open(features, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if not kept.exists() or kept.read_text().strip() != digest:
        write_atomically(kept, f"{digest}\n")
    return digest


@dataclass(frozen=True)
class Predictions:
    """What a source's probes predicted."""

    table: ProbeTable
    sizes: tuple[int, ...]
    repetitions: Sequence[Repetition]
    values: Sequence[np.ndarray]
    """For each repetition (sizes, tests) bool."""

    def score(self, size: int, balanced: bool | None = None, step: int | None = None) -> Score:
        """Accuracies with training sets of a size; of examples `step` steps after the object was seen alone."""
        balanced = self.table.balance if balanced is None else balanced
        number = self.sizes.index(size)
        total, tested, accuracies = np.zeros(len(self.table)), np.zeros(len(self.table)), []
        for one, predicted in zip(self.repetitions, self.values, strict=True):
            mine = np.ones(len(one.test), bool)
            if step is not None:
                assert self.table.steps is not None
                mine = self.table.steps[one.test] == step
            rows, correct = one.test[mine], predicted[number][mine] == self.table.label[one.test[mine]]
            accuracies.append(accuracy(correct, self.table.label[rows], balanced))
            total[rows] += correct
            tested[rows] += 1
        with np.errstate(invalid="ignore"):
            return Score(np.array(accuracies), total / tested, self.table.scene)


def accuracy(correct: np.ndarray, label: np.ndarray, balanced: bool) -> float:
    """The share of examples (n,) that are correct; balanced, the mean of the two labels' shares. NaN without any."""
    if not balanced:
        return float(correct.mean()) if len(correct) else float("nan")
    shares = [correct[label == value].mean() for value in (False, True) if (label == value).any()]
    return float(np.mean(shares)) if shares else float("nan")


@dataclass(frozen=True)
class Score:
    """Accuracies of a source, or a difference of two."""

    accuracies: np.ndarray
    """(R,)"""
    correct: np.ndarray
    """(n,): how often each example was right, over the repetitions that tested it; NaN if none did."""
    scene: np.ndarray
    """(n,)"""

    @cached_property
    def mean(self) -> float:
        return float(np.nanmean(self.accuracies))

    def half_width(self, test_sampling: bool) -> float:
        """Half of the 95 % interval.

        It counts resampling alone (a t interval of the R accuracies), or the sampling of test examples too, which are
        clustered in scenes; then t has as many degrees of freedom as scenes less one.
        """
        accuracies = self.accuracies[np.isfinite(self.accuracies)]
        count = len(accuracies)
        variance = accuracies.var(ddof=1) / count if count > 1 else np.nan
        if not test_sampling:
            return float(stats.t.ppf(0.975, count - 1) * np.sqrt(variance)) if count > 1 else float("nan")
        tested = np.isfinite(self.correct)
        scenes = len(np.unique(self.scene[tested]))
        if scenes < 2 or count < 2:
            return float("nan")
        variance += cluster_variance(self.correct[tested], self.scene[tested])
        return float(stats.t.ppf(0.975, scenes - 1) * np.sqrt(variance))

    def minus(self, other: Score) -> Score:
        """The paired difference to another source."""
        return Score(self.accuracies - other.accuracies, self.correct - other.correct, self.scene)


def mean_score(scores: Sequence[Score]) -> Score:
    """The average of several networks that are one source."""
    return Score(
        np.mean([score.accuracies for score in scores], 0),
        np.mean([score.correct for score in scores], 0),
        scores[0].scene,
    )


def cluster_variance(values: np.ndarray, cluster: np.ndarray) -> float:
    """The variance of the mean of values (m,) in K clusters (m,): K / (K - 1) sum_k (sum_j (v_j - mean))^2 / m^2."""
    names, number = np.unique(cluster, return_inverse=True)
    sums = np.bincount(number, values - values.mean())
    return float(len(names) / (len(names) - 1) * (sums**2).sum() / len(values) ** 2)
