# SPDX-License-Identifier: GPL-3.0-or-later
"""The moving-block bootstrap of core/stats, draw for draw, so that a page says what `ponderscope compare` says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK = 64
REPLICATES = 10_000
LEVEL = 0.95
SEED = 20261122

Statistic = Callable[[NDArray[np.float64], int], NDArray[np.float64]]
"""From sums [..., width] over so many tokens."""


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


def bounded(bits: NDArray[np.uint64], bound: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The upper half of the 128-bit product: a number in [0, bound)."""
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    with np.errstate(over="ignore"):
        low = (bits & mask) * (bound & mask)
        a = (bits >> half) * (bound & mask)
        b = (bits & mask) * (bound >> half)
        carry = ((low >> half) + (a & mask) + (b & mask)) >> half
        return ((bits >> half) * (bound >> half) + (a >> half) + (b >> half) + carry).astype(np.int64)


def block_bootstrap(values: NDArray[np.float64], stretches: list[int], statistics: list[Statistic]) -> list[Estimate]:
    """Percentile intervals of statistics of sums over ``values`` [tokens, width], which lie in stretches of consecutive
    tokens. All replicates are drawn side by side, a block each at a time."""
    prefix = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    tokens = len(values)
    lengths = np.array(stretches, np.int64)
    firsts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    weights = np.cumsum(np.maximum(lengths, BLOCK))
    streams = np.concatenate([splitmix64(np.array([SEED], np.uint64), r) for r in range(REPLICATES)])
    totals = np.zeros((REPLICATES, values.shape[1]))
    missing = np.full(REPLICATES, tokens, np.int64)
    draw = 0
    active = np.arange(REPLICATES)
    while active.size:
        place = bounded(splitmix64(streams[active], draw), np.uint64(weights[-1]))
        stretch = np.searchsorted(weights, place, side="right")
        length = np.minimum(BLOCK, lengths[stretch])
        starts = (lengths[stretch] - length + 1).astype(np.uint64)
        begin = firsts[stretch] + bounded(splitmix64(streams[active], draw + 1), starts)
        taken = np.minimum(length, missing[active])
        totals[active] += prefix[begin + taken] - prefix[begin]
        missing[active] -= taken
        active = active[missing[active] > 0]
        draw += 2
    whole = prefix[-1][None]
    return [_interval(float(s(whole, tokens)[0]), s(totals, tokens)) for s in statistics]


def _interval(value: float, replicates: NDArray[np.float64]) -> Estimate:
    known = np.sort(replicates[~np.isnan(replicates)])
    if np.isnan(value) or len(known) < 2 or (len(replicates) - len(known)) * 100 > len(replicates):
        return Estimate(value, np.nan, np.nan)
    lower = (1 - LEVEL) / 2
    low, high = (_quantile(known, q) for q in (lower, 1 - lower))
    return Estimate(value, low, high)


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


def interval_notices(stretches: list[int]) -> list[str]:
    """What a reader of intervals must know of the sample under them."""
    blocks = sum((n + BLOCK - 1) // BLOCK for n in stretches)
    notices = []
    if blocks < 10:
        notices.append(
            f"The intervals rest on {blocks} {'block' if blocks == 1 else 'blocks'} of {BLOCK} tokens: take them as a hint, "
            "and score a longer text."
        )
    if len(stretches) == 1:
        notices.append(
            "All tokens are of one sequence: the intervals say what other parts of this text would give, not what other texts would."
        )
    return notices


def interval_warning(estimate: Estimate, what: str) -> list[str]:
    if not (estimate.value < estimate.low or estimate.value > estimate.high):
        return []
    return [
        f"The interval of {what} lies beside its estimate: blocks reach the ends of this short text less often than its "
        "middle, and there it is different; take a longer text."
    ]


@dataclass(frozen=True)
class Sample:
    """The scored tokens of a run, or those that two runs scored: [tokens], and lengths of runs of consecutive positions."""

    columns: dict[str, NDArray[np.float64]]
    stretches: list[int]


def stretches_of(masks: list[NDArray[np.bool_]]) -> list[int]:
    result = []
    for mask in masks:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
        result += (edges[1::2] - edges[::2]).tolist()
    return result


def estimate_run(sample: Sample) -> dict[str, Any]:
    """Mean NLL, perplexity, bits per byte and mean steps with intervals, as core/stats/paired.h has them."""
    c = sample.columns
    values = np.stack([c["nll"], c["bytes"], c["steps"]], 1)
    nll, bits, steps = block_bootstrap(values, sample.stretches, [mean_of(0), bits_per_byte(0, 1), mean_of(2)])
    notices = interval_notices(sample.stretches) + interval_warning(nll, "the mean NLL")
    return {"nll": nll, "perplexity": nll.exponential(), "bits_per_byte": bits, "mean_steps": steps, "notices": notices}


def compare(sample: Sample) -> dict[str, Any]:
    """B - A with intervals, as `ponderscope compare` says it."""
    a, b, text = (sample.columns[name] for name in ("a", "b", "bytes"))
    n = len(a)
    mean_a, mean_b = float(a.sum() / n), float(b.sum() / n)
    x, y = a - mean_a, b - mean_b
    ranks = [(average_ranks(v) - (n + 1) / 2) / n for v in (a, b)]
    u, v = ranks
    values = np.stack([x, y, x * x, y * y, x * y, u, v, u * u, v * v, u * v, text], 1)
    estimates = block_bootstrap(
        values,
        sample.stretches,
        [lambda s, tokens: mean_b - mean_a + (s[:, 1] - s[:, 0]) / tokens, correlation(0), correlation(5)],
    )
    difference, pearson, spearman = estimates
    notices = interval_notices(sample.stretches)
    if (a == b).all():
        notices.append("Every token has the same NLL in both: the runs are the same.")
    return {
        "tokens": n,
        "difference": difference,
        "perplexity_ratio": difference.exponential(),
        "pearson": pearson,
        "spearman": spearman,
        "share_b_better": float((b < a).mean()),
        "notices": notices + interval_warning(difference, "the difference"),
    }
