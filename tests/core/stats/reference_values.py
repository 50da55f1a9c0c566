#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes reference_values.json: what NumPy, SciPy and arch say of a small autocorrelated sample, and bootstraps of circular blocks and
of clusters written the slow way (every replicate is put together token by token). Run it with NumPy, SciPy and arch installed; the
tests read the file."""
import json
import math
import pathlib

import numpy as np
import scipy
from arch.bootstrap import optimal_block_length
from scipy import stats

MASK = (1 << 64) - 1


def splitmix(seed, n):
    z = (seed + (n + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
    return z ^ z >> 31


def unit(seed, n):
    return (splitmix(seed, n) >> 11) * 2.0**-53


def sample(n, seed):
    """Two related losses with memory from token to token, rounded so that ties occur."""
    a, b, level = [], [], 0.5
    for t in range(n):
        level = 0.8 * level + 0.2 * unit(seed, 3 * t)
        x = 6 * level * level + unit(seed, 3 * t + 1)
        a.append(round(x * 64) / 64)
        b.append(round((0.9 * x + 0.5 * unit(seed, 3 * t + 2) - 0.2) * 64) / 64)
    return np.array(a), np.array(b)


def block_rows(stretches, block, seed, replicate):
    """Token numbers of one replicate."""
    total = sum(stretches)
    firsts = np.concatenate([[0], np.cumsum(stretches)])
    weights = [max(length, block) for length in stretches]
    stream, draw, rows = splitmix(seed, replicate), 0, []
    while len(rows) < total:
        place = splitmix(stream, draw) * sum(weights) >> 64
        s = 0
        while place >= weights[s]:
            place -= weights[s]
            s += 1
        length = min(block, stretches[s])
        start = splitmix(stream, draw + 1) * stretches[s] >> 64
        draw += 2
        rows += [firsts[s] + (start + i) % stretches[s] for i in range(length)]
    return np.array(rows[:total])


def cluster_rows(clusters, seed, replicate):
    """The same of clusters drawn whole; clusters: token numbers of each."""
    stream = splitmix(seed, replicate)
    return np.concatenate([clusters[splitmix(stream, i) * len(clusters) >> 64] for i in range(len(clusters))])


def expanded(values, units):
    """Hesterberg's expanded percentile interval."""
    p = stats.norm.cdf(math.sqrt(units / (units - 1)) * stats.t.ppf(0.025, units - 1))
    return [float(np.quantile(values, p)), float(np.quantile(values, 1 - p))]


def main():
    stretches, block, seed, replicates = [150, 40, 310], 64, 20261122, 400
    a, b = sample(sum(stretches), 7)
    ranks_a, ranks_b = stats.rankdata(a), stats.rankdata(b)
    statistics = {
        "mean_a": lambda r: a[r].mean(),
        "mean_b": lambda r: b[r].mean(),
        "difference": lambda r: (b[r] - a[r]).mean(),
        "pearson": lambda r: stats.pearsonr(a[r], b[r])[0],
        "spearman": lambda r: stats.pearsonr(ranks_a[r], ranks_b[r])[0],
    }
    drawn = [block_rows(stretches, block, seed, r) for r in range(replicates)]
    result = {
        "made_with": {"numpy": np.__version__, "scipy": scipy.__version__},
        "sample": {"stretches": stretches, "seed": 7, "first_a": a[:5].tolist(), "first_b": b[:5].tolist()},
        "pearson": float(stats.pearsonr(a, b)[0]),
        "spearman": float(stats.spearmanr(a, b)[0]),
        "first_ranks_a": ranks_a[:5].tolist(),
        "quantiles": [[q, float(np.quantile(a, q))] for q in (0.0, 0.025, 0.25, 0.5, 0.9, 0.975, 1.0)],
        "bootstrap": {"block": block, "seed": seed, "replicates": replicates, "level": 0.95, "estimates": {}},
    }
    units = sum(length / min(block, length) for length in stretches)
    for name, statistic in statistics.items():
        values = [statistic(rows) for rows in drawn]
        value = statistic(np.arange(len(a)))
        result["bootstrap"]["estimates"][name] = {
            "value": float(value),
            "percentile": [float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))],
            "expanded": expanded(values, units),
            "standard_error": float(np.std(values, ddof=1)),
        }
    # Forty clusters of 5 to 20 tokens; every third consists of two stretches that others stand between.
    lengths = [5 + splitmix(3, i) % 16 for i in range(53)]
    cluster_of = [i if i < 40 else 3 * (i - 40) for i in range(53)]
    firsts = np.concatenate([[0], np.cumsum(lengths)])
    clusters = [np.concatenate([np.arange(firsts[s], firsts[s + 1]) for s in range(53) if cluster_of[s] == g]) for g in range(40)]
    x, y = sample(sum(lengths), 13)
    drawn = [cluster_rows(clusters, seed, r) for r in range(replicates)]
    values = [(y[r] - x[r]).mean() for r in drawn]
    result["clusters"] = {
        "stretches": lengths, "cluster_of": cluster_of, "seed": 13, "value": float((y - x).mean()),
        "percentile": [float(np.quantile(values, 0.025)), float(np.quantile(values, 0.975))],
        "expanded": expanded(values, 40),
        "standard_error": float(np.std(values, ddof=1)),
    }
    noise = [unit(17, t) - 0.5 for t in range(4000)]
    result["block_length"] = []
    for memory in (0.0, 0.3, 0.7, 0.9):
        for n in (50, 400, 4000):
            series = np.zeros(n)
            for t in range(n):
                series[t] = (memory * series[t - 1] if t else 0) + noise[t]
            result["block_length"].append({"memory": memory, "n": n, "circular": float(optimal_block_length(series)["circular"].iloc[0])})
    # SciPy's own bootstrap knows single tokens only, and draws others than ours: equal up to the noise of 200,000 replicates.
    skewed = np.array([math.exp(1.2 * stats.norm.ppf(unit(11, t) * 0.998 + 0.001)) for t in range(120)])
    result["single_tokens"] = {"values": skewed.tolist()}
    answer = stats.bootstrap((skewed,), np.mean, n_resamples=200000, batch=10000, method="percentile", random_state=5)
    result["single_tokens"]["percentile"] = [float(answer.confidence_interval.low), float(answer.confidence_interval.high)]
    target = pathlib.Path(__file__).with_name("reference_values.json")
    target.write_text(json.dumps(result, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
