#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes significance_values.json: Welch's test, Student's distribution, false-discovery control and Spearman's rho by SciPy and
statsmodels. With --check nothing is written: the stored values are compared with what the installed versions say (the tests run
that where both are installed)."""
import json
import math
import pathlib
import sys

import numpy as np
from scipy import stats
from statsmodels.stats.multitest import multipletests

HERE = pathlib.Path(__file__).with_name("significance_values.json")


def values():
    groups = [[0, 1, 2, 2, 3, 3, 3], [3, 3, 2, 3, 3], [0.5, 0.5, 0.25], [1, 1, 1, 1], [0, 3], list(np.linspace(0, 2, 200) ** 2)]
    welch = []
    for i, a in enumerate(groups):
        for b in groups[i + 1 :]:
            welch.append({"a": a, "b": b, "p": float(stats.ttest_ind(a, b, equal_var=False).pvalue)})
    student = [[t, df, float(stats.t.cdf(t, df))] for t in (-40.0, -3.0, -0.5, 0.0, 1e-3, 1.7, 12.0) for df in (1.0, 2.5, 30.0, 1e6)]
    lists = [[0.01, 0.04, 0.03, 0.005, 0.2, 0.9], [0.5], [0.001, 0.001, 0.001], [1.0, 0.02, 0.02, 0.7], [1e-300, 0.3, 0.05]]
    discovery = [{"p": p, "q": [float(q) for q in multipletests(p, method="fdr_bh")[1]]} for p in lists]
    for entry in discovery:
        assert np.allclose(entry["q"], stats.false_discovery_control(entry["p"], method="bh"), rtol=1e-12)
    steps = [(7 * t) % 4 for t in range(60)]
    nll = [math.sin(t * 1.3) + 0.4 * ((7 * t) % 4) for t in range(60)]
    return {"welch": welch, "student": student, "discovery": discovery,
            "spearman": {"steps": steps, "nll": nll, "rho": float(stats.spearmanr(steps, nll)[0])}}


def close(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(close(x, y) for x, y in zip(a, b))
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-300)


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(0 if close(values(), json.loads(HERE.read_text())) else 1)
    HERE.write_text(json.dumps(values(), separators=(",", ":")) + "\n")
