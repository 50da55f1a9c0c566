# SPDX-License-Identifier: GPL-3.0-or-later
"""The bootstrap of core/stats with its defaults, draw for draw, so that a page says what `ponderscope compare` says."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

LEAST_CLUSTERS = 30
"""From which on whole ones are drawn: fewer say too little of how clusters differ."""
REPLICATES = 10_000
LEVEL = 0.95
SEED = 20261122

Statistic = Callable[[NDArray[np.float64], Any], NDArray[np.float64]]
"""From sums [replicates, width] over so many tokens."""


@dataclass(frozen=True)
class Estimate:
    value: float
    low: float
    high: float

    def exponential(self) -> Estimate:
        """exp is monotone: quantiles of the mean become quantiles of the perplexity."""
        return Estimate(float(np.exp(self.value)), float(np.exp(self.low)), float(np.exp(self.high)))

    def json(self) -> list[float | None]:
        return [v if np.isfinite(v) else None for v in (self.value, self.low, self.high)]


def splitmix64(seed: NDArray[np.uint64], n: int) -> NDArray[np.uint64]:
    """Output n of the generators that start at the seeds."""
    with np.errstate(over="ignore"):
        z = seed + np.uint64((n + 1) * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def bounded(bits: NDArray[np.uint64], bound: Any) -> NDArray[np.int64]:
    """The upper half of the 128-bit product: a number in [0, bound), bounds below 2^32."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    return ((bits >> half) * bound + ((bits & mask) * bound >> half) >> half).view(np.int64)


@dataclass(frozen=True)
class Layout:
    """Lengths of runs of consecutive positions, and the cluster (a sequence, or a group of them) that each lies in."""

    stretches: list[int]
    clusters: list[int]


@dataclass(frozen=True)
class Resampling:
    """What is drawn: whole clusters (block 0), or circular blocks inside stretches."""

    block: int
    clusters: int
    units: float

    def words(self) -> str:
        if not self.block:
            return f"{self.clusters} clusters drawn whole"
        tokens = "token" if self.block == 1 else "tokens"
        return f"circular blocks of {self.block} {tokens}, a length chosen from the data (Politis-White)"

    def notices(self) -> list[str]:
        if not self.block:
            return []
        if self.clusters == 1:
            notices = [
                "All tokens are of one sequence, or of one group of them: the intervals say what other parts of this text would give, "
                "not what other texts would."
            ]
        else:
            notices = [
                f"The {self.clusters} clusters (sequences, or the groups given with them) are fewer than {LEAST_CLUSTERS}: the "
                "intervals say what other parts of these texts would give, not what other texts would."
            ]
        if self.units < 10:
            whole = int(self.units)
            notices.append(
                f"The intervals rest on {whole} {'block' if whole == 1 else 'blocks'} of {self.block} tokens: the sample is too small "
                "for them; score a longer text."
            )
        return notices


def choose_resampling(layout: Layout, series: list[NDArray[np.float64]]) -> Resampling:
    clusters = max(layout.clusters) + 1
    if clusters >= LEAST_CLUSTERS:
        return Resampling(0, clusters, float(clusters))
    block = math.ceil(max(1.0, *(optimal_block_length(one, layout.stretches) for one in series)))
    return Resampling(block, clusters, sum(n / min(n, block) for n in layout.stretches))


def optimal_block_length(series: NDArray[np.float64], stretches: list[int]) -> float:
    """Politis and White 2004, with the correction of 2009, for circular blocks; core/stats/block_length.h."""
    n = len(series)
    if n < 8:
        return 1.0
    parts = np.split(series - series.mean(), np.cumsum(stretches)[:-1])

    def lagged(lag: int) -> tuple[float, float]:
        pairs = [(p[: len(p) - lag], p[lag:]) for p in parts if len(p) > lag]
        product, early, late = (float(sum(np.dot(x, y) for x, y in how)) for how in (
            pairs, [(x, x) for x, _ in pairs], [(y, y) for _, y in pairs]))  # fmt: skip
        return product, math.sqrt(early * late)

    in_a_row = max(5, int(math.log10(n)))
    most_lags = math.ceil(math.sqrt(n)) + in_a_row
    insignificant = 2 * math.sqrt(math.log10(n) / n)
    covariance: list[float] = []
    quiet, lags, lag = 0, most_lags, 0
    while lag <= min(lags, most_lags):
        product, scale = lagged(lag)
        covariance.append(product / n)
        if lag == 0 and not product > 0:
            return 1.0
        if lags == most_lags and lag > 0:
            quiet = 0 if scale > 0 and abs(product) / scale >= insignificant else quiet + 1
            if quiet == in_a_row:
                lags = min(most_lags, 2 * (lag - in_a_row + 1))
        lag += 1
    while len(covariance) <= lags:
        covariance.append(lagged(len(covariance))[0] / n)
    g, spectrum = 0.0, covariance[0]
    for k in range(1, lags + 1):
        at = k / lags
        window = 1.0 if at <= 0.5 else 2 * (1 - at)
        g += 2 * window * k * covariance[k]
        spectrum += 2 * window * covariance[k]
    most = math.ceil(min(3 * math.sqrt(n), n / 3))
    d = 4 / 3 * spectrum * spectrum
    length = (2 * g * g / d) ** (1 / 3) * n ** (1 / 3) if d > 0 else most
    return min(max(length, 1.0), most)


def bootstrap(values: NDArray[np.float64], layout: Layout, how: Resampling, statistics: list[Statistic]) -> list[Estimate]:
    """Intervals of statistics of sums over ``values`` [tokens, width]. All replicates are drawn side by side."""
    streams = np.concatenate([splitmix64(np.array([SEED], np.uint64), r) for r in range(REPLICATES)])
    totals, tokens = (_draw_blocks if how.block else _draw_clusters)(values, layout, how, streams)
    whole = np.cumsum(values, axis=0)[-1][None]
    upper = NormalDist().cdf(critical_value(how.units)) if how.units >= 2 else math.nan
    return [_interval(float(s(whole, len(values))[0]), s(totals, tokens), upper) for s in statistics]


def _draw_clusters(values: Any, layout: Layout, how: Resampling, streams: NDArray[np.uint64]) -> tuple[Any, Any]:
    rows = np.zeros((how.clusters, values.shape[1] + 1))
    of_token = np.repeat(layout.clusters, layout.stretches)
    np.add.at(rows, of_token, np.concatenate([values, np.ones((len(values), 1))], axis=1))
    totals = np.zeros((REPLICATES, rows.shape[1]))
    for draw in range(how.clusters):
        totals += rows[bounded(splitmix64(streams, draw), np.uint64(how.clusters))]
    return totals[:, :-1], totals[:, -1]


def _draw_blocks(values: Any, layout: Layout, how: Resampling, streams: NDArray[np.uint64]) -> tuple[Any, Any]:
    prefix = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    lengths = np.array(layout.stretches, np.int64)
    firsts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    weights = np.cumsum(np.maximum(lengths, how.block))
    blocks = prefix[how.block :] - prefix[: -how.block]
    totals, running = np.zeros((REPLICATES, values.shape[1])), np.zeros((REPLICATES, values.shape[1]))
    missing, rows, draw = np.full(REPLICATES, len(values), np.int64), np.arange(REPLICATES), 0
    while rows.size:
        stretch = np.searchsorted(weights, bounded(splitmix64(streams, draw), np.uint64(weights[-1])), side="right")
        length, first = lengths[stretch], firsts[stretch]
        start = bounded(splitmix64(streams, draw + 1), length.view(np.uint64))
        taken = np.minimum(np.minimum(how.block, length), missing)
        straight = np.minimum(taken, length - start)
        begin = first + start
        sums = blocks.take(begin, axis=0, mode="clip")
        odd = np.flatnonzero(straight != how.block)  # the last one, or around the end to the beginning
        sums[odd] = prefix[begin[odd] + straight[odd]] - prefix[begin[odd]]
        sums[odd] += prefix[first[odd] + taken[odd] - straight[odd]] - prefix[first[odd]]
        running += sums
        missing -= taken
        draw += 2
        if not missing.all():
            left = missing > 0
            totals[rows[~left]] = running[~left]
            running, missing, rows, streams = running[left], missing[left], rows[left], streams[left]
    return totals, len(values)


def critical_value(units: float) -> float:
    """How many standard errors a bound lies out: Student's, and what few draws make the replicates vary too little."""
    return math.sqrt(units / (units - 1)) * student_quantile((1 + LEVEL) / 2, units - 1)


def student_quantile(p: float, degrees: float) -> float:
    """For p above one half, by bisection."""
    low, high = 0.0, 1.0
    while _student_cdf(high, degrees) < p:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_cdf(middle, degrees) < p else (low, middle)
    return (low + high) / 2


def _student_cdf(t: float, degrees: float) -> float:
    """P(T <= t), t >= 0, by the continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8)."""
    x, a, b = degrees / (degrees + t * t), degrees / 2, 0.5
    flipped = x > (a + 1) / (a + b + 2)
    if flipped:
        x, a, b = 1 - x, b, a
    if x <= 0:
        return 1.0 if not flipped else 0.5
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    fraction = 1.0
    for m in range(500, 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        fraction = 1 + even / (1 + odd / fraction)
    first = -(a + b) * x / (a + 1)
    beta = front / (1 + first / fraction)
    return 1 - (1 - beta if flipped else beta) / 2


def _interval(value: float, replicates: NDArray[np.float64], upper: float) -> Estimate:
    known = np.sort(replicates[~np.isnan(replicates)])
    if np.isnan(value) or np.isnan(upper) or len(known) < 2 or (len(replicates) - len(known)) * 100 > len(replicates):
        return Estimate(value, np.nan, np.nan)
    return Estimate(value, _quantile(known, 1 - upper), _quantile(known, upper))


def _quantile(sorted_values: NDArray[np.float64], q: float) -> float:
    place = q * (len(sorted_values) - 1)
    below = int(place)
    above = min(below + 1, len(sorted_values) - 1)
    return float(sorted_values[below] + (place - below) * (sorted_values[above] - sorted_values[below]))


def mean_of(column: int, centre: float = 0.0) -> Statistic:
    return lambda sums, tokens: centre + sums[:, column] / tokens


def bits_per_byte(nll: int, text: int, centre: float = 0.0) -> Statistic:
    def statistic(sums: NDArray[np.float64], tokens: int) -> NDArray[np.float64]:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(sums[:, text] > 0, (sums[:, nll] + centre * tokens) / sums[:, text] / np.log(2), np.nan)

    return statistic


def correlation(first: int) -> Statistic:
    """From sums of x, y, xx, yy, xy of centred values from column ``first`` on."""

    def statistic(sums: NDArray[np.float64], tokens: int) -> NDArray[np.float64]:
        x, y, xx, yy, xy = (sums[:, first + i] for i in range(5))
        var_x, var_y, both = xx - x * x / tokens, yy - y * y / tokens, xy - x * y / tokens
        varies = (var_x > 1e-12 * xx) & (var_y > 1e-12 * yy)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(varies, np.clip(both / np.sqrt(var_x) / np.sqrt(var_y), -1, 1), np.nan)

    return statistic


def average_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + 1 + ends) / 2)[inverse]


@dataclass(frozen=True)
class Sample:
    """The scored tokens of a run, or those that two runs scored: columns [tokens]."""

    columns: dict[str, NDArray[np.float64]]
    layout: Layout


def layout_of(masks: list[NDArray[np.bool_]], groups: list[str | None]) -> Layout:
    """From which tokens of each sequence count, and what the sequences belong to."""
    stretches, clusters = [], []
    numbers: dict[tuple[str, Any], int] = {}
    for sequence, (mask, group) in enumerate(zip(masks, groups)):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
        lengths = (edges[1::2] - edges[::2]).tolist()
        if lengths:
            key = ("group", group) if group else ("sequence", sequence)
            number = numbers.setdefault(key, len(numbers))
            stretches += lengths
            clusters += [number] * len(lengths)
    return Layout(stretches, clusters)


def estimate_run(sample: Sample) -> dict[str, Any]:
    """Mean NLL, perplexity, bits per byte and mean steps with intervals, as core/stats/paired.h has them."""
    c = sample.columns
    how = choose_resampling(sample.layout, [c["nll"], c["steps"]])
    values = np.stack([c["nll"], c["bytes"], c["steps"]], 1)
    nll, bits, steps = bootstrap(values, sample.layout, how, [mean_of(0), bits_per_byte(0, 1), mean_of(2)])
    return {
        "nll": nll, "perplexity": nll.exponential(), "bits_per_byte": bits, "mean_steps": steps, "notices": how.notices(),
        "drawn": how.words(),
    }  # fmt: skip


def compare(sample: Sample) -> dict[str, Any]:
    """B - A with intervals, as `ponderscope compare` says it."""
    a, b, text = (sample.columns[name] for name in ("a", "b", "bytes"))
    n = len(a)
    mean_a, mean_b = float(a.sum() / n), float(b.sum() / n)
    x, y = a - mean_a, b - mean_b
    ranks = [(average_ranks(v) - (n + 1) / 2) / n for v in (a, b)]
    u, v = ranks
    values = np.stack([x, y, x * x, y * y, x * y, u, v, u * u, v * v, u * v, text], 1)
    how = choose_resampling(sample.layout, [a, b, b - a])
    rate_a, rate_b = bits_per_byte(0, 10, mean_a), bits_per_byte(1, 10, mean_b)
    estimates = bootstrap(
        values,
        sample.layout,
        how,
        [
            lambda s, tokens: mean_b - mean_a + (s[:, 1] - s[:, 0]) / tokens, lambda s, tokens: rate_b(s, tokens) - rate_a(s, tokens),
            correlation(0), correlation(5),
        ],
    )  # fmt: skip
    difference, bits, pearson, spearman = estimates
    notices = how.notices()
    if (a == b).all():
        notices.append("Every token has the same NLL in both: the runs are the same.")
    return {
        "tokens": n,
        "difference": difference,
        "perplexity_ratio": difference.exponential(),
        "bits_per_byte_difference": bits,
        "pearson": pearson,
        "spearman": spearman,
        "share_b_better": float((b < a).mean()),
        "notices": notices,
        "drawn": how.words(),
    }
