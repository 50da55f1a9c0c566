# SPDX-License-Identifier: GPL-3.0-or-later
"""What the routers of a mixture of experts chose, by the command line and in Python, against the reference case."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ponderscope as ps

CASE = Path(__file__).resolve().parents[2] / "golden" / "next_qwen3_moe_hub_keys_renormed_dense_layer"


@pytest.fixture(scope="module")
def reference() -> dict[str, np.ndarray]:
    data = (CASE / "golden.safetensors").read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    types = {"F32": "<f4", "I64": "<i8"}
    return {
        name: np.frombuffer(data[8 + size :][slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"])
        for name, entry in header.items()
        if name != "__metadata__"
    }


@pytest.fixture()
def trace(ponderscope: Any, reference: dict[str, np.ndarray], tmp_path: Path) -> Path:
    (tmp_path / "ids.json").write_text(json.dumps(reference["input_ids"].tolist()), encoding="utf-8")
    path = tmp_path / "experts.ponder"
    ponderscope("record", CASE, "--ids", tmp_path / "ids.json", "--record", "basic,experts:probabilities", "-o", path)
    return path


def test_experts_are_those_of_the_reference(trace: Path, reference: dict[str, np.ndarray]) -> None:
    run = ps.open(trace).run()
    assert run.signals["router_experts"] == ("token", "step", "layer", "choice")
    assert run.layers_of("router_experts") == [0, 2, 3]
    table = run.experts()
    assert len(table) == reference["input_ids"].size * 3 and set(table.layer) == {0, 2, 3}
    for sequence, layer in ((0, 0), (1, 3)):
        own = table[(table.sequence == sequence) & (table.layer == layer)]
        chosen = own[["expert_0", "expert_1", "expert_2"]].to_numpy()
        assert (chosen == reference[f"router.layer{layer}.experts"][sequence]).all()
        weights = own[["weight_0", "weight_1", "weight_2"]].to_numpy().astype(float)
        assert np.abs(weights - reference[f"router.layer{layer}.weights"][sequence]).max() < 1e-3
        place = [0, 2, 3].index(layer)
        assert np.abs(own.entropy.to_numpy() - reference["router.entropy"][sequence, :, place]).max() < 2e-3
        assert np.abs(own.mass.to_numpy() - reference["router.chosen_mass"][sequence, :, place]).max() < 1e-3


def test_a_run_without_experts_says_how_to_record_them(ponderscope: Any, trace: Path) -> None:
    ponderscope("record", CASE, "--ids", trace.parent / "ids.json", "--record", "basic", "--name", "plain", "-o", trace)
    with pytest.raises(KeyError, match="--record steps,experts"):
        ps.open(trace).run("plain").experts()


def test_load_and_repeats_are_counted(ponderscope: Any, trace: Path, reference: dict[str, np.ndarray]) -> None:
    report = ponderscope("stats", trace, "--json", "--replicates", "100")
    use = report["experts"]
    assert (use["experts"], use["chosen"], [layer["layer"] for layer in use["layers"]]) == (8, 3, ["0", "2", "3"])
    for layer in use["layers"]:
        chosen = np.sort(reference[f"router.layer{layer['layer']}.experts"], axis=-1)
        load = np.bincount(chosen.reshape(-1), minlength=8) / chosen[..., 0].size
        assert np.allclose(layer["load"], load)
        assert np.isclose(layer["same_as_previous_token"], (chosen[:, 1:] == chosen[:, :-1]).all(-1).mean())
