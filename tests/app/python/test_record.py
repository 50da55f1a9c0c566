# SPDX-License-Identifier: GPL-3.0-or-later
"""A model of transformers recorded by this package gives the numbers that the engine gives for its checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ponderscope as ps

from conftest import TREE

torch = pytest.importorskip("torch", reason="torch is not here: PONDERSCOPE_TORCH names a folder that holds it")
transformers = pytest.importorskip("transformers")

from own_model import OwnModel  # noqa: E402

SAMPLES = TREE / "sample_models"
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture(scope="module")
def text() -> str:
    return (SAMPLES / "texts" / "passage.txt").read_text(encoding="utf-8")[:2500] + " na\u00efve \U0001f989 \u4f60\u597d\n"


def load(name: str) -> tuple[Any, Any]:
    folder = SAMPLES / name
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    return model, transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), name_or_path=str(folder))


@pytest.fixture(scope="module")
def neox() -> tuple[Any, Any]:
    return load("vanilla-neox-1m")


def compare(mine: ps.Run, engines: ps.Run, skip: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    a, b = mine.columns(), engines.columns()
    for name in ("id", "text_begin", "text_end", "steps", "flops"):
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    for name in ("nll", "entropy", "max_probability"):
        np.testing.assert_allclose(a[name], b[name], **CLOSE, err_msg=name)
    assert (a["rank"] != b["rank"]).mean() < 0.01 and np.abs(a["rank"] - b["rank"]).max() <= 2  # equals, one way or the other
    assert set(mine.signals) == set(engines.signals)
    for name in set(mine.signals) - skip - {"rank"}:
        x, y = mine.signal(name), engines.signal(name)
        assert x.shape == y.shape, name
        if name in ("argmax", "candidate_ids", "prediction_depth", "answer_flips"):
            assert (x != y).mean() < 0.005, name
        else:
            scale = 1e-3 if name == "candidate_probabilities" else 1e-4  # fp16
            np.testing.assert_allclose(x.astype("f4"), y.astype("f4"), rtol=scale, atol=scale, err_msg=name)
    assert len(mine.info["checkpoint_digest"]) == 64
    assert flops_model(mine) == flops_model(engines)
    for name in ("checkpoint_digest", "text_digest", "tokenizer_digest", "max_steps", "step_unit", "layers", "vocab_size", "context", "stride"):
        assert mine.info[name] == engines.info[name], name


def flops_model(run: ps.Run) -> dict[str, Any]:
    return json.loads(run._trace._query("SELECT flops_model FROM run WHERE id = ?", (run.id,))[0][0])


def test_the_engines_numbers(ponderscope, neox, text, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    ponderscope("record", SAMPLES / "vanilla-neox-1m", "--text", tmp_path / "text.txt", "-o", tmp_path / "engine.ponder")
    mine = ps.record(*neox, text, tmp_path / "mine.ponder", batch=3)
    engines = ps.open(tmp_path / "engine.ponder").run()
    compare(mine, engines)
    assert mine.vocabulary() == {i: w for i, w in engines.vocabulary().items() if i in mine.vocabulary()}
    ponderscope("merge", tmp_path / "engine.ponder", tmp_path / "mine.ponder", "-o", tmp_path / "both.ponder")
    pair = ponderscope("compare", tmp_path / "both.ponder", "--json")["pairs"][0]
    assert abs(pair["difference"]["value"]) < 1e-4 and pair["tokens"] == mine.info["scored_tokens"]


def test_layers_as_steps(ponderscope, neox, text, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    ponderscope("record", SAMPLES / "vanilla-neox-1m", "--text", tmp_path / "text.txt", "--record", "layers", "-o", tmp_path / "engine.ponder")
    mine = ps.record(*neox, text, tmp_path / "mine.ponder", layers=True)
    compare(mine, ps.open(tmp_path / "engine.ponder").run())
    spec = "entropy:theta=4"
    fronts = [ponderscope("policy", tmp_path / f"{name}.ponder", "--policy", spec, "--json") for name in ("mine", "engine")]
    results = [json.dumps(f) for f in fronts]
    assert all("mean_nll" in r for r in results)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "qwen3", "opt", "mistral"])
def test_other_architectures(ponderscope, kind: str, tmp_path: Path) -> None:
    """Random weights, ids, windows that overlap, several lengths in a batch."""
    torch.manual_seed(1)
    sizes = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 64}
    config = {
        "gpt2": lambda: transformers.GPT2Config(vocab_size=97, n_embd=32, n_layer=3, n_head=4, n_positions=64),
        "llama": lambda: transformers.LlamaConfig(**sizes, intermediate_size=48, num_key_value_heads=2),
        "qwen3": lambda: transformers.Qwen3Config(**sizes, intermediate_size=48, num_key_value_heads=2, head_dim=16),
        "mistral": lambda: transformers.MistralConfig(**sizes, intermediate_size=48, num_key_value_heads=2, sliding_window=16),
        "opt": lambda: transformers.OPTConfig(**sizes, ffn_dim=48, word_embed_proj_dim=32, pad_token_id=1),
    }[kind]()
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    model.save_pretrained(tmp_path / "model")
    random = np.random.default_rng(0)
    rows = [random.integers(0, 97, n).tolist() for n in (5, 150, 64, 33)]
    (tmp_path / "ids.json").write_text(json.dumps(rows))
    ponderscope(
        "record", tmp_path / "model", "--ids", tmp_path / "ids.json", "--context", 48, "--stride", 16, "--record", "layers",
        "-o", tmp_path / "engine.ponder",
    )  # fmt: skip
    mine = ps.record(model, None, rows, tmp_path / "mine.ponder", context=48, stride=16, batch=4, layers=True)
    engines = ps.open(tmp_path / "engine.ponder").run()
    assert mine.sequences == engines.sequences
    for number in mine.sequences:
        for name in ("nll", "entropy"):
            np.testing.assert_allclose(mine.columns(number)[name], engines.columns(number)[name], **CLOSE, err_msg=name)
        for name in ("nll", "entropy", "state_norm", "update_cosine", "acceleration"):
            np.testing.assert_allclose(mine.signal(name, number), engines.signal(name, number), **CLOSE, err_msg=name)
        np.testing.assert_array_equal(mine.columns(number)["flops"], engines.columns(number)["flops"])
    assert flops_model(mine) == flops_model(engines)
    assert mine.info["checkpoint_digest"] == ""  # of a model that was made in memory


def test_the_digest_is_of_the_weights_that_ran(ponderscope, neox, tmp_path: Path) -> None:
    model, tokenizer = load("vanilla-neox-1m")
    whole = ps.record(model, tokenizer, "the cat sat", tmp_path / "a.ponder").info
    folder = tmp_path / "shards"
    model.save_pretrained(folder, max_shard_size="1MB")
    assert (folder / "model.safetensors.index.json").exists()
    model.name_or_path = model.config._name_or_path = str(folder)
    (tmp_path / "text.txt").write_text("the cat sat", encoding="utf-8")
    (folder / "tokenizer.json").write_bytes((SAMPLES / "vanilla-neox-1m" / "tokenizer.json").read_bytes())
    ponderscope("record", folder, "--text", tmp_path / "text.txt", "-o", tmp_path / "engine.ponder")
    sharded = ps.record(model, tokenizer, "the cat sat", tmp_path / "b.ponder").info
    assert sharded["checkpoint_digest"] == ps.open(tmp_path / "engine.ponder").run().info["checkpoint_digest"]
    assert sharded["checkpoint_digest"] != whole["checkpoint_digest"] and json.loads(sharded["notices"]) == []
    with torch.no_grad():
        next(model.gpt_neox.layers[1].parameters())[0] += 1e-3  # trained on since
    changed = ps.record(model, tokenizer, "the cat sat", tmp_path / "c.ponder").info
    assert changed["checkpoint_digest"] == ""
    assert json.loads(changed["notices"]) == [f"The weights differ from the weights in {folder}, so the run has no digest of its checkpoint."]


def test_a_state_that_stands_still(ponderscope, tmp_path: Path) -> None:
    """No movement has no direction, and one that ended is infinitely slower than it was."""
    torch.manual_seed(0)
    model = LoopedLM(LoopedConfig())

    def states(of: Any, ids: Any, mask: Any) -> list[Any]:
        x = of.model.embed(ids)
        return [x, x + 1, x + 1, x + 1]

    run = ps.record(model, None, ROWS, tmp_path / "m.ponder", steps=states)
    assert (run.signal("acceleration") == [0, 0, np.inf, 0]).all()
    assert (run.signal("update_cosine") == 0).all()
    np.testing.assert_allclose(run.signal("latent_difference")[:, 2:], 0)
    assert run.signal("prediction_depth").max() <= 1 and run.signal("answer_flips").max() <= 1
    assert run._trace._query("SELECT flops_model FROM run") == [("",)]  # what a step costs is not known
    assert ponderscope("check", tmp_path / "m.ponder", "--json")["sound"]


class Looped(torch.nn.Module):
    """A plain block called three times, with a gate after each."""

    def __init__(self) -> None:
        super().__init__()
        self.block = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh())
        self.gate = torch.nn.Linear(16, 1)

    def forward(self, x: Any) -> Any:
        for _ in range(3):
            x = x + self.block(x)
            self.gate(x)
        return x


class LoopedConfig(transformers.PretrainedConfig):
    model_type = "looped_for_a_test"


class LoopedBase(transformers.PreTrainedModel):
    config_class = LoopedConfig
    base_model_prefix = "model"

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.embed = torch.nn.Embedding(50, 16)
        self.loop = Looped()
        self.post_init()

    def get_input_embeddings(self) -> Any:
        return self.embed

    def forward(self, input_ids: Any, attention_mask: Any = None, use_cache: bool = False, **_: Any) -> Any:
        return transformers.modeling_outputs.BaseModelOutput(last_hidden_state=self.loop(self.embed(input_ids)))


class LoopedLM(OwnModel):
    config_class = LoopedConfig
    base_class = LoopedBase

    def __init__(self, config: Any, cap: float | None = None) -> None:
        super().__init__(config)
        self.cap = cap

    def forward(self, input_ids: Any, attention_mask: Any = None, **options: Any) -> Any:
        output = super().forward(input_ids, attention_mask, **options)
        if self.cap:
            output.logits = self.cap * torch.tanh(output.logits / self.cap)
        return output


ROWS = [[1, 2, 3, 4, 5, 6, 7], [8, 9, 10]]


def reference(model: Any, row: list[int]) -> np.ndarray:
    with torch.inference_mode():
        logits = model(torch.tensor([row])).logits[0].float()
    return torch.nn.functional.cross_entropy(logits[:-1], torch.tensor(row[1:]), reduction="none").numpy()


def test_a_module_that_is_called_several_times_makes_the_steps(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = LoopedLM(LoopedConfig())

    def states(of: Any, ids: Any, mask: Any) -> tuple[list[Any], Any]:
        x, steps = of.model.embed(ids), []
        for _ in range(3):
            x = x + of.model.loop.block(x)
            steps.append(x)
        return steps, torch.full(ids.shape, 1)

    run = ps.record(model, None, ROWS, tmp_path / "m.ponder", name="halted", steps=states)
    assert run.max_steps == 2 and run.info["method"] == "custom"
    assert np.isnan(run.signal("nll")[:, 2]).all() and (run.columns()["steps"] == 1).all()
    np.testing.assert_array_equal(run.columns()["nll"], run.signal("nll")[:, 1])
    full = ps.record(
        model, None, ROWS, tmp_path / "m.ponder", name="all", steps=lambda m, i, a: states(m, i, a)[0]
    )  # fmt: skip
    np.testing.assert_allclose(full.columns(0)["nll"][:-1], reference(model, ROWS[0]), rtol=1e-5)
    np.testing.assert_allclose(full.signal("nll")[:-1, 2], reference(model, ROWS[0]), rtol=1e-5)
    with pytest.raises(ValueError, match="head does not give"):
        ps.record(model, None, ROWS, tmp_path / "n.ponder", steps="model.loop.block")
    gated = ps.record(model, None, ROWS, tmp_path / "m.ponder", name="gated", gates={"gate": "model.loop.gate"})
    assert gated.signals["gate"] == ("token", "call") and gated.signal("gate").shape == (7, 3)
    steps_and_gates = ps.record(
        model, None, ROWS, tmp_path / "m.ponder", steps=Loop3(), gates={"gate": "model.loop.gate"}, name="steps and gates",
        rule=ps.Rule("gate", stops="above", theta=-0.25),
    )  # fmt: skip
    assert steps_and_gates.signals["gate"] == ("token", "step")
    ((choices,),) = steps_and_gates._trace._query("SELECT choices FROM run WHERE id = ?", (steps_and_gates.id,))
    assert json.loads(choices) == {"rule": {"signal": "gate", "stops": "above", "theta": -0.25}}
    with pytest.raises(ValueError, match="rule"):  # a gate over calls is none over steps
        ps.record(model, None, ROWS, tmp_path / "n.ponder", gates={"gate": "model.loop.gate"}, rule=ps.Rule("gate"))


class Loop3:
    """The model's own forward, its states heard on the way."""

    def __call__(self, model: Any, ids: Any, mask: Any) -> list[Any]:
        heard: list[Any] = []
        handle = model.model.loop.gate.register_forward_hook(lambda m, inputs, output: heard.append(inputs[0]))
        try:
            model.model(ids, mask)
        finally:
            handle.remove()
        return heard


def test_logits_that_are_more_than_the_heads_products(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = LoopedLM(LoopedConfig(), cap=0.1)
    torch.nn.init.normal_(model.lm_head.weight)
    run = ps.record(model, None, ROWS, tmp_path / "m.ponder")
    np.testing.assert_allclose(run.columns(1)["nll"][:-1], reference(model, ROWS[1]), rtol=1e-5)
    with pytest.raises(ValueError, match="readout="):
        ps.record(model, None, ROWS, tmp_path / "n.ponder", steps=Loop3())
    capped = ps.record(
        model, None, ROWS, tmp_path / "n.ponder", steps=Loop3(), readout=lambda h: 0.1 * torch.tanh(model.lm_head(h) / 0.1)
    )
    np.testing.assert_allclose(capped.columns(1)["nll"][:-1], reference(model, ROWS[1]), rtol=1e-5)


def test_texts_are_streamed(neox, tmp_path: Path) -> None:
    """A generator is asked for the next text only when the batch before it was computed."""
    taken: list[int] = []

    def texts() -> Any:
        for i in range(12):
            taken.append(i)
            yield (f"text {i}", "the cat sat on the mat. " * 3)

    seen: list[int] = []
    run = ps.record(*neox, texts(), tmp_path / "s.ponder", batch=2, progress=lambda tokens, seconds: seen.append(len(taken)))
    assert seen == [2, 4, 6, 8, 10, 12]
    assert [row["title"] for row in run.sequence_rows()] == [f"text {i}" for i in range(12)]


def test_wrong_texts_and_rows(neox, tmp_path: Path) -> None:
    path = tmp_path / "w.ponder"
    model, tokenizer = neox
    with pytest.raises(ValueError, match="tokenizer"):
        ps.record(model, None, "the cat sat", path)
    with pytest.raises(ValueError, match="at least two tokens"):
        ps.record(model, tokenizer, "", path)
    with pytest.raises(ValueError, match="2048"):
        ps.record(model, None, [[1, 5000]], path)
    for rows, sentence in (([[1.5, 2, 3]], "whole numbers"), ([[[1, 2], [3, 4]]], "along one axis"), ([], "no text to record")):
        with pytest.raises(ValueError, match=sentence):
            ps.record(model, None, rows, path)
    assert not path.exists()


def test_models_that_see_what_they_predict_are_refused(tmp_path: Path) -> None:
    """An encoder, and an encoder with a decoder behind it, have an NLL of the next token, which says nothing."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    halves = {f"{half}_{what}": n for half in ("encoder", "decoder") for what, n in (("layers", 1), ("attention_heads", 4), ("ffn_dim", 48))}
    bart = transformers.BartConfig(vocab_size=97, d_model=32, max_position_embeddings=64, **halves)
    for model in (
        transformers.BertForMaskedLM(transformers.BertConfig(**sizes)),
        transformers.BartForConditionalGeneration(bart),
    ):
        with pytest.raises(ValueError, match="Bert|Bart"):
            ps.record(model, None, [[5, 6, 7]], tmp_path / "encoder.ponder")
    assert not (tmp_path / "encoder.ponder").exists()
    for model in (
        transformers.BertLMHeadModel(transformers.BertConfig(**sizes, is_decoder=True)),
        transformers.BartForCausalLM(bart),
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).to(torch.bfloat16),
    ):
        assert ps.record(model, None, [[5, 6, 7]], tmp_path / "decoder.ponder").info["scored_tokens"] == 2


def test_attention_in_attention_is_one(tmp_path: Path) -> None:
    neo = transformers.GPTNeoConfig(
        vocab_size=97, hidden_size=32, num_layers=2, num_heads=4, max_position_embeddings=64, attention_types=[[["global"], 2]]
    )
    nested = ps.record(transformers.GPTNeoForCausalLM(neo), None, [[5, 6, 7, 8]], tmp_path / "nested.ponder", layers=True)
    assert flops_model(nested)["windows"] == [0, 0]


def test_a_model_without_attention_has_flops(tmp_path: Path) -> None:
    model = transformers.MambaForCausalLM(transformers.MambaConfig(vocab_size=97, hidden_size=32, num_hidden_layers=2, state_size=8))
    assert ps.record(model, None, [[5, 6, 7]], tmp_path / "m.ponder").columns()["flops"].all()


def test_the_model_is_given_back_as_it_was(tmp_path: Path) -> None:
    model, _ = load("vanilla-neox-1m")
    model.train()
    model.gpt_neox.layers[0].eval()
    before = [module.training for module in model.modules()]

    def broken(done: int, seconds: float) -> None:
        raise RuntimeError("a progress bar that breaks")

    with pytest.raises(RuntimeError):
        ps.record(model, None, [[1, 2, 3]] * 9, tmp_path / "cut.ponder", layers=True, progress=broken)
    assert [module.training for module in model.modules()] == before
    assert not any(module._forward_hooks for module in model.modules())
    assert ps.open(tmp_path / "cut.ponder").run().sequences == list(range(8))
    with torch.no_grad():
        model.get_output_embeddings().weight[3] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        ps.record(model, None, [[1, 2, 3]], tmp_path / "nan.ponder")
    assert not (tmp_path / "nan.ponder").exists()


def test_steps_that_cannot_be_are_refused(tmp_path: Path) -> None:
    model = LoopedLM(LoopedConfig())
    for last in (torch.tensor([[7]]), torch.tensor([[0.5]]), torch.tensor([[-1]])):

        def states(of: Any, ids: Any, mask: Any, last: Any = last) -> tuple[list[Any], Any]:
            return [of.model.embed(ids)] * 2, last.expand(ids.shape)

        with pytest.raises(ValueError, match="below the number of states"):
            ps.record(model, None, [[1, 2, 3]], tmp_path / "s.ponder", steps=states)
    assert not (tmp_path / "s.ponder").exists()
