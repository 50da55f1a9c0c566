# SPDX-License-Identifier: GPL-3.0-or-later
"""What users give by mistake to `record` and `open`: one sentence each, and no trace is begun or lost."""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ponderscope as ps

from conftest import TREE, made_up

torch = pytest.importorskip("torch", reason="torch is not here: PONDERSCOPE_TORCH names a folder that holds it")
transformers = pytest.importorskip("transformers")

SAMPLE = TREE / "sample_models" / "vanilla-neox-1m"


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    config = transformers.GPTNeoXConfig(
        vocab_size=2048, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64
    )
    return transformers.GPTNeoXForCausalLM(config)


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return transformers.PreTrainedTokenizerFast(tokenizer_file=str(SAMPLE / "tokenizer.json"), name_or_path=str(SAMPLE))


def test_the_signature_is_the_real_one() -> None:
    names = inspect.signature(ps.record).parameters
    assert {"layers", "steps", "gates", "on_bad", "resume"} <= names.keys() and not any(
        p.kind is inspect.Parameter.VAR_KEYWORD for p in names.values()
    )
    assert "steps=function" in (inspect.getdoc(ps.record) or "")


def test_models_and_tokenizers_that_are_none(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.ponder"
    with torch.device("meta"):
        empty = transformers.GPTNeoXForCausalLM(model.config)
    for arguments, sentence in (
        ((tokenizer, model, "the cat sat"), "swapped"),
        ((None, tokenizer, "the cat sat"), "None"),
        ((torch.nn.Linear(2, 2), tokenizer, "the cat sat"), "ps.read_out"),
        ((model, tokenizer.backend_tokenizer, "the cat sat"), "PreTrainedTokenizerFast"),
        ((empty, tokenizer, "the cat sat"), '"meta"'),
    ):
        with pytest.raises(ValueError, match=sentence):
            ps.record(*arguments, path)
    assert not path.exists()


def test_texts_that_are_none(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.ponder"
    for texts, sentence in (
        (None, "None"),
        (3, "int"),
        ([None], "text 0: "),
        ("half \ud83e a character", " 5"),
        (b"the cat sat", "decode"),
        (["the cat sat", b"the cat sat"], "text 1"),
        (tokenizer("the cat sat"), "tokenizer"),
        ([tokenizer("the cat sat")], "tokenizer"),
    ):
        path.unlink(missing_ok=True)
        with pytest.raises(ValueError, match=sentence):
            ps.record(model, tokenizer, texts, path)


def test_options_that_cannot_be(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.ponder"
    for options, sentence in (
        ({"steps": "gpt_neox.layer"}, '"gpt_neox.layer".* gpt_neox.layers'),
        ({"gates": {"gate": "layers.0.mlp.dense"}}, "no module"),
        ({"layers": True, "steps": "x"}, "give one of them"),
        ({"context": 0}, "context: .* 0"),
        ({"context": 1000}, " 64"),
        ({"stride": 0}, "stride: "),
        ({"stride": 300}, "stride"),
        ({"batch": 1.5}, "batch: "),
        ({"on_bad": "ignore"}, '"raise".*"skip"'),
        ({"resume": True, "overwrite": True}, "give one of them"),
    ):
        with pytest.raises(ValueError, match=sentence):
            ps.record(model, tokenizer, "the cat sat", path, **options)
    assert not path.exists()


def test_a_file_that_is_not_there_is_pythons_error_too(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ps.open(tmp_path / "none.ponder")
    with pytest.raises(ValueError, match="none.ponder"):
        ps.open(tmp_path / "none.ponder")
    (tmp_path / "t.ponder").touch()
    with pytest.raises(FileNotFoundError, match=r"take its run\('a'\)"):  # as the command line names a run
        ps.open(f"{tmp_path}/t.ponder#a")


def test_a_model_from_memory_has_the_name_of_its_class(model: Any, tmp_path: Path) -> None:
    assert ps.record(model, None, [[1, 2, 3]], tmp_path / "t.ponder").name == "GPTNeoXForCausalLM"


def test_a_context_without_a_limit(tmp_path: Path) -> None:
    """XLNet says -1 positions, and is refused for what it is."""
    model = transformers.XLNetLMHeadModel(transformers.XLNetConfig(vocab_size=97, d_model=32, n_layer=2, n_head=4, d_inner=48))
    with pytest.raises(ValueError, match="XLNetLMHeadModel"):
        ps.record(model, None, [[1, 2, 3]], tmp_path / "t.ponder")


@pytest.mark.parametrize("family", ["gemma2", "cohere", "granite"])
def test_logits_are_changed_as_the_config_says(family: str, tmp_path: Path) -> None:
    """A soft-cap hardly moves the logits of a fresh model, and must be found all the same."""
    torch.manual_seed(0)
    sizes = {
        "vocab_size": 97, "hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "max_position_embeddings": 64,
        "num_key_value_heads": 2, "intermediate_size": 48,
    }  # fmt: skip
    config = {
        "gemma2": lambda: transformers.Gemma2Config(**sizes, head_dim=8, final_logit_softcapping=0.5),
        "cohere": lambda: transformers.CohereConfig(**sizes, logit_scale=0.0625),
        "granite": lambda: transformers.GraniteConfig(**sizes, logits_scaling=8.0),
    }[family]()
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.inference_mode():
        logits = model(torch.arange(10)[None]).logits[0]
    wanted = torch.nn.functional.cross_entropy(logits[:-1], torch.arange(1, 10), reduction="none").numpy()
    run = ps.record(model, None, [list(range(10))], tmp_path / "t.ponder", layers=True)
    np.testing.assert_allclose(run.signal("nll")[:-1, 2], wanted, rtol=1e-6)


def test_read_out_makes_the_signals_of_a_model_of_ones_own(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(6, 3, 20)).astype(np.float32)
    ids = random.integers(0, 20, 6)
    read = ps.read_out(logits, ids, states=random.normal(size=(6, 3, 4)), candidates=5)
    with ps.Writer(tmp_path / "own.ponder") as writer:
        with writer.run("own", max_steps=2, vocab_size=20, signals=list(read["signals"])) as run:
            run.sequence(ids, **read)
    own = ps.open(tmp_path / "own.ponder").run()
    assert set(own.signals) == set(ps.KNOWN_SIGNALS)
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    nll = -np.take_along_axis(log_p[:-1], ids[1:, None, None], 2)[..., 0]
    np.testing.assert_allclose(own.signal("nll")[:-1], nll, rtol=1e-5)
    np.testing.assert_allclose(own.columns()["nll"][:-1], nll[:, 2], rtol=1e-5)
    np.testing.assert_allclose(own.columns()["entropy"], -(np.exp(log_p) * log_p).sum(-1)[:, 2], rtol=1e-5)
    halted = ps.read_out(torch.from_numpy(logits), ids, steps=[0, 1, 2, 0, 1, 2])
    np.testing.assert_allclose(halted["nll"][:-1], nll[np.arange(5), [0, 1, 2, 0, 1]], rtol=1e-5)
    plain = ps.read_out(logits[:, 0], ids)
    np.testing.assert_allclose(plain["nll"][:-1], nll[:, 0], rtol=1e-5)
    assert "kl_previous_current" not in plain["signals"]
    for arguments, options, sentence in (
        ((logits[0, 0], ids), {}, "tokens, steps, vocabulary"),
        ((logits, ids[:3]), {}, "ids: .* 6"),
        ((logits, ids + 20), {}, "below the vocabulary"),
        ((logits, ids), {"steps": [3] * 6}, "steps.* 2"),
        ((logits, ids), {"states": logits[:, :1]}, "states: "),
    ):
        with pytest.raises(ValueError, match=sentence):
            ps.read_out(*arguments, **options)


def test_one_bad_text_among_many(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    texts = [f"the cat sat {i}" for i in range(5)] + ["", "the mat"]
    with pytest.raises(ValueError, match="text 5: "):
        ps.record(model, tokenizer, texts, tmp_path / "r.ponder", batch=4)
    partial = ps.open(tmp_path / "r.ponder").run()
    assert len(partial.sequences) == 5 and not partial.info["complete"]
    with pytest.warns(UserWarning, match="1 "):
        run = ps.record(model, tokenizer, texts, tmp_path / "s.ponder", batch=4, on_bad="skip")
    assert [row["title"] for row in run.sequence_rows()] == [*texts[:5], "the mat"] and run.info["complete"]
    assert "text 5" in run._trace._query("SELECT message FROM fault")[0][0]
    with pytest.warns(UserWarning):
        ps.record(model, tokenizer, ["", "the mat"], tmp_path / "first.ponder", on_bad="skip")

    def broken() -> Any:
        yield from texts[:3]
        raise RuntimeError("a file that cannot be read")

    with pytest.raises(RuntimeError):
        ps.record(model, tokenizer, broken(), tmp_path / "b.ponder")
    assert len(ps.open(tmp_path / "b.ponder").run().sequences) == 3


def test_a_recording_goes_on(ponderscope, model: Any, tmp_path: Path) -> None:
    rows = [np.random.default_rng(i).integers(0, 2048, 30 + i).tolist() for i in range(6)]
    whole = ps.record(model, None, rows, tmp_path / "whole.ponder", name="r", layers=True)

    def stop(tokens: int, seconds: float) -> None:
        if tokens > 100:
            raise KeyboardInterrupt

    path = tmp_path / "cut.ponder"
    with pytest.raises(KeyboardInterrupt):
        ps.record(model, None, rows, path, name="r", layers=True, batch=1, context=20, progress=stop)
    with pytest.raises(ValueError, match="context"):
        ps.record(model, None, rows, path, name="r", layers=True, resume=True)
    path.unlink()
    with pytest.raises(KeyboardInterrupt):
        ps.record(model, None, rows, path, name="r", layers=True, batch=1, progress=stop)
    had = len(ps.open(path).run().sequences)
    assert 0 < had < 6
    with pytest.raises(ValueError, match=" r "):
        ps.record(model, None, [[7, 8, 9], *rows[1:]], path, name="r", layers=True, resume=True)
    run = ps.record(model, None, rows, path, name="r", layers=True, resume=True)
    assert ps.open(path).run_names == ["r"] and run.info["complete"] and run.sequences == whole.sequences
    for total in ("text_digest", "sequences", "tokens", "scored_tokens", "steps_sum", "flops_sum", "vocab_size", "context"):
        assert run.info[total] == whole.info[total], total
    assert run.info["nll_sum"] == pytest.approx(whole.info["nll_sum"])
    for number in whole.sequences:
        np.testing.assert_allclose(run.signal("nll", number), whole.signal("nll", number), rtol=1e-5)
    assert ponderscope("check", path, "--json")["sound"]


def test_the_digest_of_a_tokenizer_is_of_its_content(ponderscope, tokenizer: Any, model: Any, tmp_path: Path) -> None:
    """Other bytes, other keys and defaults: the same tokenizer, here and in the engine."""
    digests = set()
    folders = [tmp_path / name for name in ("as_it_was", "saved", "rewritten")]
    for folder in folders:
        shutil.copytree(SAMPLE, folder)
    tokenizer.save_pretrained(folders[1])
    file = folders[2] / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    content["model"]["merges"] = [" ".join(merge) if isinstance(merge, list) else merge for merge in content["model"]["merges"]]
    content["model"]["vocab"] = dict(reversed(content["model"]["vocab"].items()))
    content["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [content["pre_tokenizer"]]}
    file.write_text(json.dumps(dict(reversed(content.items())), indent=3), encoding="utf-8")
    (tmp_path / "t.txt").write_text("the cat sat", encoding="utf-8")
    for folder in folders:
        loaded = transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), name_or_path="org/name")
        digests.add(ps.record(model, loaded, "the cat sat", tmp_path / f"{folder.name}.python.ponder").info["tokenizer_digest"])
        ponderscope("record", folder, "--text", tmp_path / "t.txt", "-o", tmp_path / f"{folder.name}.ponder")
        digests.add(ps.open(tmp_path / f"{folder.name}.ponder").run().info["tokenizer_digest"])
    assert len(digests) == 1
    content["pre_tokenizer"] = {"type": "Digits", "individual_digits": True}
    other = tmp_path / "other.json"
    other.write_text(json.dumps(content), encoding="utf-8")
    loaded = transformers.PreTrainedTokenizerFast(tokenizer_file=str(other))
    assert ps.record(model, loaded, "sat", tmp_path / "other.ponder").info["tokenizer_digest"] not in digests


def test_runs_whose_digests_differ_are_compared_by_their_ids(ponderscope, tmp_path: Path) -> None:
    path = tmp_path / "t.ponder"
    with ps.Writer(path) as writer:
        for number, digest in enumerate(("a" * 64, "b" * 64)):
            text = made_up(0)
            values = {**made_up(number), **{key: text[key] for key in ("ids", "text", "spans")}, "signals": {}}
            with writer.run(f"r{number}", max_steps=3, vocab_size=10, tokens=lambda i: b"x", tokenizer_digest=digest) as run:
                run.sequence(**values)
    pair = ponderscope("compare", path, "--json")["pairs"][0]
    assert pair["tokens"] == 299 and "pearson" in pair


def test_a_tokenizer_that_cuts_otherwise_than_its_file_is_noticed(model: Any, tokenizer: Any, tmp_path: Path) -> None:
    """As classes of transformers do that rebuild a tokenizer without its pre-tokenizer."""
    other = transformers.PreTrainedTokenizerFast(tokenizer_file=str(SAMPLE / "tokenizer.json"), name_or_path=str(tmp_path))

    def notices(content: dict, name: str, **options: Any) -> list[str]:
        (tmp_path / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
        return json.loads(ps.record(model, other, "in 2026 it was", tmp_path / name, **options).info["notices"])

    content = json.loads((SAMPLE / "tokenizer.json").read_text(encoding="utf-8"))
    assert notices(content, "same.ponder") == []
    content["pre_tokenizer"]["add_prefix_space"] = True
    assert "tokenizer.json" in notices(content, "cut.ponder")[0]
    # The same cuts, and a start token that only the file's template adds.
    content["pre_tokenizer"]["add_prefix_space"] = False
    start = content["added_tokens"][0]
    piece = {"id": start["content"], "ids": [start["id"]], "tokens": [start["content"]]}
    single = [{"SpecialToken": {"id": start["content"], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    content["post_processor"] = {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": {start["content"]: piece}}
    assert "from token 0 on" in notices(content, "start.ponder")[0]
    assert notices(content, "without.ponder", add_special=False) == []
