#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes significance_values.json: Student's distribution, false-discovery control, McNemar's test, the smallest
detectable difference, sign flips and Spearman's rho by SciPy and statsmodels. With --check nothing is written: the stored values are compared with what the installed versions say (the tests run
that where both are installed)."""
import json
import math
import pathlib
import sys

import numpy as np
from scipy import optimize, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

HERE = pathlib.Path(__file__).with_name("significance_values.json")


def values():
    student = [[t, df, float(stats.t.cdf(t, df))] for t in (-40.0, -3.0, -0.5, 0.0, 1e-3, 1.7, 12.0) for df in (1.0, 2.5, 30.0, 1e6)]
    lists = [[0.01, 0.04, 0.03, 0.005, 0.2, 0.9], [0.5], [0.001, 0.001, 0.001], [1.0, 0.02, 0.02, 0.7], [1e-300, 0.3, 0.05]]
    discovery = [{"p": p, "q": [float(q) for q in multipletests(p, method="fdr_bh")[1]]} for p in lists]
    for entry in discovery:
        assert np.allclose(entry["q"], stats.false_discovery_control(entry["p"], method="bh"), rtol=1e-12)
    flips = [{"a": a, "b": b, "p": float(mcnemar([[10, a], [b, 10]], exact=True).pvalue)} for a, b in ((0, 0), (1, 0), (5, 14), (40, 40), (300, 377))]
    power = []
    for n in (5, 30, 200, 10000):
        for alpha in (0.05, 0.01):
            critical = stats.t.ppf(1 - alpha / 2, n - 1)
            shift = optimize.brentq(lambda s: stats.nct.sf(critical, n - 1, s) + stats.nct.cdf(-critical, n - 1, s) - 0.8, 0.1, 8, xtol=1e-12)
            # statsmodels solves the same equation to four digits.
            assert math.isclose(shift, TTestPower().solve_power(nobs=n, alpha=alpha, power=0.8) * math.sqrt(n), rel_tol=1e-4)
            power.append({"n": n, "alpha": alpha, "shift": shift})
    signs = []
    for n in (3, 8, 14):
        values = [round(0.3 + math.sin(3.7 * t + n), 3) for t in range(n)]
        answer = stats.permutation_test((values,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided")
        signs.append({"values": values, "p": float(answer.pvalue)})
    many = [round(0.12 + math.sin(3.7 * t), 3) for t in range(60)]
    answer = stats.permutation_test((many,), np.sum, permutation_type="samples", n_resamples=400000, batch=20000, alternative="two-sided", random_state=3)
    signs.append({"values": many, "p": float(answer.pvalue), "drawn": True})
    steps = [(7 * t) % 4 for t in range(60)]
    nll = [math.sin(t * 1.3) + 0.4 * ((7 * t) % 4) for t in range(60)]
    return {"student": student, "discovery": discovery, "mcnemar": flips,
            "power": power, "sign_flips": signs,
            "spearman": {"steps": steps, "nll": nll, "rho": float(stats.spearmanr(steps, nll)[0])}}


def close(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    return math.isclose(a, b, rel_tol=1e-7, abs_tol=1e-300)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if close(values(), json.loads(HERE.read_text())) else 1)
    HERE.write_text(json.dumps(values(), separators=(",", ":")) + "\n")
