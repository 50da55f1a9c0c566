# SPDX-License-Identifier: GPL-3.0-or-later
"""FLOPs of models that no class of transformers describes: counted exactly, or not known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ponderscope as ps

torch = pytest.importorskip("torch", reason="torch is not here: PONDERSCOPE_TORCH names a folder that holds it")
transformers = pytest.importorskip("transformers")

from own_model import OwnModel  # noqa: E402

WIDTH, VOCABULARY, LOOPS = 32, 50, 3
ROWS = [[1, 2, 3, 4, 5, 6, 7], [8, 9, 10]]


class Config(transformers.PretrainedConfig):
    model_type = "loop_for_flops"


class Base(transformers.PreTrainedModel):
    """A block that runs several times: torch's attention, whose projections are no modules that are called, and a matrix
    that is a bare parameter."""

    config_class = Config
    base_model_prefix = "model"

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.embed = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.attention = torch.nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.matrix = torch.nn.Parameter(torch.randn(64, WIDTH) / 8)
        self.hidden = False
        self.post_init()

    def get_input_embeddings(self) -> Any:
        return self.embed

    def loop(self, x: Any) -> Any:
        mask = torch.nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        x = x + self.attention(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)[0]
        if self.hidden:  # as a kernel that torch does not see
            return x + torch.from_numpy(x.numpy() @ (self.matrix.detach().numpy().T @ self.matrix.detach().numpy()))
        return x + torch.nn.functional.linear(torch.nn.functional.linear(x, self.matrix), self.matrix.T)

    def forward(self, input_ids: Any, attention_mask: Any = None, use_cache: bool = False, **_: Any) -> Any:
        x = self.embed(input_ids)
        for _ in range(LOOPS):
            x = self.loop(x)
        return transformers.modeling_outputs.BaseModelOutput(last_hidden_state=x)


class Model(OwnModel):
    config_class = Config
    base_class = Base


BLOCK = 2 * 4 * WIDTH * WIDTH + 2 * 2 * 64 * WIDTH
KEY = 4 * WIDTH
READ_OUT = 2 * VOCABULARY * WIDTH


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model(Config())


def test_matrices_without_a_module_that_is_called_are_counted(model: Model, tmp_path: Path) -> None:
    run = ps.record(model, None, ROWS, tmp_path / "m.ponder")
    for number, row in enumerate(ROWS):
        visible = np.arange(1, len(row) + 1)
        np.testing.assert_array_equal(run.columns(number)["flops"], LOOPS * (BLOCK + KEY * visible) + READ_OUT)
    assert json.loads(run.info["notices"]) == []


def test_a_token_costs_the_steps_that_it_ran(model: Model, tmp_path: Path) -> None:
    def states(of: Model, ids: Any, mask: Any) -> Any:
        x, steps = of.model.embed(ids), []
        for _ in range(LOOPS):
            x = of.model.loop(x)
            steps.append(x)
        return steps, ids % LOOPS

    run = ps.record(model, None, ROWS, tmp_path / "m.ponder", steps=states)
    for number, row in enumerate(ROWS):
        ran, visible = np.array(row) % LOOPS + 1, np.arange(1, len(row) + 1)
        np.testing.assert_array_equal(run.columns(number)["flops"], ran * (BLOCK + KEY * visible) + READ_OUT)


def test_products_that_torch_does_not_see_are_not_known(ponderscope, model: Model, tmp_path: Path) -> None:
    model.model.hidden = True
    run = ps.record(model, None, ROWS, tmp_path / "m.ponder")
    assert np.isnan(run.columns()["flops"]).all() and np.isnan(run.summary()["mean_flops"])
    assert "matrix" in run.info["notices"] and "not known" in run.info["notices"]
    frame = run.tokens()
    assert frame["flops"].isna().all()
    assert ps.open(tmp_path / "m.ponder").to_arrow()["tokens"]["flops"].null_count == len(frame)
    folder = tmp_path / "csv"
    ponderscope("export", tmp_path / "m.ponder", "-o", folder)
    assert ponderscope("check", tmp_path / "m.ponder", "--json")["sound"]


def test_a_token_of_a_mixture_costs_the_experts_that_it_takes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.MixtralConfig(
        vocab_size=97, hidden_size=32, num_attention_heads=4, max_position_embeddings=64, num_hidden_layers=2, intermediate_size=48,
        num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2,
    )  # fmt: skip
    layer = 2 * (2 * 32 * 32 + 2 * 32 * 16 + 4 * 32 + 2 * 3 * 32 * 48)
    run = ps.record(transformers.MixtralForCausalLM(config), None, [[5, 6, 7, 8]], tmp_path / "m.ponder", layers=True)
    np.testing.assert_array_equal(run.columns()["flops"], 2 * (layer + 4 * 32 * np.arange(1, 5)) + 2 * 97 * 32)
    (model,) = run._trace._query("SELECT flops_model FROM run")[0]
    assert json.loads(model)["steps"] == [layer, layer]
