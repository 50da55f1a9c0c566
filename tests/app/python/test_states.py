# SPDX-License-Identifier: GPL-3.0-or-later
"""States that the engine recorded, read as arrays: they are those that the recorded norms and cosines are of."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import numpy as np

import ponderscope as ps


def test_states_are_those_of_the_recorded_norms(ponderscope: Callable[..., Any], tree: Path, tmp_path: Path) -> None:
    model = tree / "sample_models" / "ponderlm-neox-1m"
    trace = tmp_path / "states.ponder"
    ponderscope("record", model, "--prompt", "The owl sat on the mat and looked at the moon.", "--record", "states", "-o", trace)
    run = ps.open(trace).run()
    assert run.signals["state"] == ("token", "step", "dim")
    states = run.signal("state", sequence=0).astype(np.float32)
    norms = run.signal("state_norm")
    assert states.shape[:2] == norms.shape
    assert np.allclose(np.linalg.norm(states, axis=2), norms, rtol=2e-3, equal_nan=True)
    updates = np.diff(states, axis=1)
    turned = (updates[:, 1:] * updates[:, :-1]).sum(2)
    turned /= np.linalg.norm(updates[:, 1:], axis=2) * np.linalg.norm(updates[:, :-1], axis=2)
    assert np.allclose(turned, run.signal("update_cosine")[:, 2:], atol=2e-2)
    assert np.allclose(run.signal("state", begin=3, end=5), states[3:5].astype(np.float16), equal_nan=True)


def test_states_after_layers_and_their_readouts(ponderscope: Callable[..., Any], tree: Path, tmp_path: Path) -> None:
    model = tree / "sample_models" / "ponderlm-neox-1m"
    trace = tmp_path / "layers.ponder"
    ponderscope("record", model, "--prompt", "The owl sat on the mat.", "--record", "steps,layers,states:1,3", "-o", trace)
    run = ps.open(trace).run()
    assert run.signals["state"] == ("token", "step", "layer", "dim")
    layers = run.info["layers"]
    assert run.signal("state").shape[2] == 2
    lens = run.signal("layer_nll")
    assert lens.shape == (*run.signal("nll").shape, layers)
    # The last layer goes through the same norm and head as the step's own read-out.
    assert np.allclose(lens[:-1, :, -1], run.signal("nll")[:-1], atol=1e-4)
    assert not np.allclose(lens[:-1, :, 0], lens[:-1, :, -1], atol=0.1)
