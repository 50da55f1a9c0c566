# SPDX-License-Identifier: GPL-3.0-or-later
"""`ponderscope.harness` against lm-evaluation-harness's own `hf` model: the same numbers on the same checkpoints. Where lm_eval is not
installed these are skipped."""

from __future__ import annotations

import gc
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

lm_eval = pytest.importorskip("lm_eval", reason="lm-evaluation-harness is not installed (pip install lm_eval)")
transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

sys.path.append(str(Path(__file__).resolve().parents[3] / "sample_models" / "known_difficulty"))
import chains_tasks  # noqa: E402

os.environ.setdefault("HF_HUB_OFFLINE", "1")

DATA = Path(os.environ.get("PONDERSCOPE_TEST_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data") / "external" / "tokenizers"
WORDS = "the cat sat on a mat and counted three gulls before the lamp was lit again".split()
ODD = [
    ("", ["yes", "no", "perhaps not"]),
    ("word " * 80, [" mat", " a gull that counted", " lamp"]),  # longer than the window
    ("One token:", [" a", " b", " the"]),
    ("Space at the end ", ["mat", " two spaces", "gull"]),
    ("水很冷，所以", ["船晚了", "他走了", "🙂"]),
    ("Emoji 🦉🙂 and", [" 🙂", " no", "🦉🦉"]),
    ("A line\n\n", ["mat", "x", "\nline"]),
    ("ideographic space　", ["mat", "gull", "lamp"]),
]


def documents(count: int = 200) -> list[dict[str, Any]]:
    drawn = random.Random(5)
    made = [{"context": context, "choices": choices, "answer": i % 3} for i, (context, choices) in enumerate(ODD)]
    while len(made) < count:
        context = " ".join(drawn.choices(WORDS, k=drawn.randint(1, 40)))
        choices = [" " + " ".join(drawn.choices(WORDS, k=drawn.randint(1, 6))) for _ in range(3)]
        if len(set(choices)) == 3:
            made.append({"context": context, "choices": choices, "answer": drawn.randrange(3)})
    return made


def write_task(folder: Path, docs: list[dict[str, Any]], name: str = "odd", **more: Any) -> None:
    folder.mkdir(exist_ok=True)
    chains_tasks.write_task(folder, name, docs, **{"metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}], **more})


def evaluate(model: str, arguments: dict[str, Any], tasks: list[str], folder: Path) -> dict[str, Any]:
    from lm_eval.tasks import TaskManager

    import ponderscope.harness  # noqa: F401  (registers the model)

    return lm_eval.simple_evaluate(
        model=model, model_args=arguments, tasks=tasks, task_manager=TaskManager(include_path=str(folder)), bootstrap_iters=0, batch_size=8
    )


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 64}
CHECKPOINTS = {
    "gpt2": ("gpt2", transformers.GPT2Config, {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}),
    "gpt_neox": ("gpt_neox_pythia", transformers.GPTNeoXConfig, SMALL),
    "llama": ("llama2", transformers.LlamaConfig, SMALL),
    "qwen3": ("qwen3", transformers.Qwen3Config, {**SMALL, "num_key_value_heads": 1, "head_dim": 16}),
}


def make_checkpoint(kind: str, folder: Path) -> Path:
    tokenizer, config, sizes = CHECKPOINTS[kind]
    if not (DATA / tokenizer).exists():
        pytest.skip(f"{DATA / tokenizer} is not here")
    loaded = transformers.AutoTokenizer.from_pretrained(DATA / tokenizer)
    torch.manual_seed(1)
    size = max(len(loaded), max(loaded.get_vocab().values()) + 1)
    model = transformers.AutoModelForCausalLM.from_config(config(**sizes, vocab_size=size, tie_word_embeddings=False))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.2)
    model.save_pretrained(folder)
    for file in (DATA / tokenizer).iterdir():
        shutil.copy(file, folder)
    return folder


def answers_of(result: dict[str, Any], task: str) -> list[tuple[Any, ...]]:
    rows = sorted(result["samples"][task], key=lambda sample: sample["doc_id"])
    return [(sample["filtered_resps"], sample["acc"], sample["acc_norm"]) for sample in rows]


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_numbers_are_those_of_hf(kind: str, tmp_path: Path, program: Path) -> None:
    checkpoint = make_checkpoint(kind, tmp_path / "model")
    docs = documents()
    if kind == "qwen3":  # it has no start token, and hf takes its end token
        docs[0]["context"] = "not empty"
    write_task(tmp_path / "tasks", docs)
    theirs = evaluate("hf", {"pretrained": str(checkpoint), "dtype": "float32", "device": "cpu"}, ["odd"], tmp_path / "tasks")
    ours = evaluate("ponderscope", {"pretrained": str(checkpoint), "program": str(program)}, ["odd"], tmp_path / "tasks")
    for number, (a, b) in enumerate(zip(answers_of(theirs, "odd"), answers_of(ours, "odd"), strict=True)):
        for (their, their_greedy), (our, our_greedy) in zip(a[0], b[0], strict=True):
            assert our == pytest.approx(their, abs=1e-4, rel=1e-5), f"document {number}"
            assert our_greedy == their_greedy, f"document {number}"
        assert a[1:] == b[1:], f"document {number}"
    for metric in ("acc,none", "acc_norm,none"):
        assert ours["results"]["odd"][metric] == theirs["results"]["odd"][metric]


@pytest.mark.parametrize("kind", CHECKPOINTS)
def test_rolling_windows_and_generation_are_those_of_hf(kind: str, tmp_path: Path, program: Path) -> None:
    checkpoint = make_checkpoint(kind, tmp_path / "model")
    contexts = [context for context, _ in ODD] + [" ".join(WORDS), "word " * 80]
    docs = [{"context": context, "choices": ["a"], "answer": "a"} for context in contexts if context]
    write_task(tmp_path / "tasks", docs, "rolled", output_type="loglikelihood_rolling", doc_to_text="", doc_to_choice=None, doc_to_target="context",
               metric_list=[{"metric": "word_perplexity"}])
    write_task(tmp_path / "tasks", docs, "continued", output_type="generate_until", doc_to_choice=None, metric_list=[{"metric": "exact_match"}],
               generation_kwargs={"until": ["\n", " the"], "max_gen_toks": 12, "do_sample": False})  # fmt: skip
    tasks = ["rolled", "continued"]
    theirs = evaluate("hf", {"pretrained": str(checkpoint), "dtype": "float32", "device": "cpu"}, tasks, tmp_path / "tasks")
    ours = evaluate("ponderscope", {"pretrained": str(checkpoint), "program": str(program)}, tasks, tmp_path / "tasks")
    for task in tasks:
        for a, b in zip(*([row["filtered_resps"][0] for row in sorted(side["samples"][task], key=lambda row: row["doc_id"])] for side in (theirs, ours)), strict=True):
            assert b == (pytest.approx(a, abs=1e-3, rel=1e-5) if task == "rolled" else a)


def test_what_a_trace_keeps(tmp_path: Path, program: Path, tree: Path, ponderscope: Any) -> None:
    import ponderscope as ps

    docs = documents(12)
    write_task(tmp_path / "tasks", docs)
    trace = tmp_path / "out.ponder"
    model = {"pretrained": str(tree / "sample_models/adaponderlm-neox-1m"), "program": str(program), "trace": str(trace), "policy": "entropy:theta=2.5"}
    result = evaluate("ponderscope", model, ["odd"], tmp_path / "tasks")
    gc.collect()  # the model ends with its last reference, which completes the run
    run = ps.open(trace).run("adaponderlm-neox-1m")
    assert run.info["policy"] == "entropy:theta=2.5" and run.info["complete"]
    report = ponderscope("tasks", trace, "--json")["runs"][0]["tasks"][0]
    assert report["task"] == "odd" and report["documents"] == len(docs)
    assert report["acc"]["value"] == pytest.approx(result["results"]["odd"]["acc,none"])
    # lm_eval counts the white space that an option begins with, tasks does not; equal where options begin alike.
    assert report["by_step"][-1]["accuracy"]["value"] == pytest.approx(report["acc"]["value"])
    assert 0 < report["right_steps"]["value"] <= 3
    ponderscope("check", trace)


def test_the_worked_example_of_the_documents(tmp_path: Path, program: Path, tree: Path, ponderscope: Any) -> None:
    page = (tree / "resources/docs/tasks.md").read_text().split("## Worked example")[1]
    commands = page.split("```sh\n")[1].split("```")[0]
    (tmp_path / "sample_models").symlink_to(tree / "sample_models")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ponderscope").symlink_to(program)
    (tmp_path / "bin/python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (tmp_path / "bin/python").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(["sh", "-ec", commands], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    tasks = {one["task"]: one for one in ponderscope("tasks", tmp_path / "chains.ponder", "--json")["runs"][0]["tasks"]}
    shares = {name: [step["accuracy"]["value"] for step in one["by_step"]] for name, one in tasks.items()}
    assert shares["chains_1"] == [1, 1, 1, 1]
    for depth in (2, 3, 4):  # an answer that many look-ups away is guessed until its step has run
        by_step = shares[f"chains_{depth}"]
        assert all(share <= 0.5 for share in by_step[: depth - 1]) and by_step[depth - 1] >= 0.98, by_step
    printed = [line for line in page.splitlines() if line.startswith("| `chains_")]
    for line in printed:  # the table of the page is what the example gives
        name, *cells = [cell.strip(" `%") for cell in line.strip("|").split("|")]
        assert [round(100 * share) for share in shares[name]] == [int(cell) for cell in cells], line


@pytest.mark.parametrize("name", ["vanilla-neox-1m", "adaponderlm-neox-1m"])
def test_lambada_on_a_sample(name: str, tmp_path: Path, program: Path, tree: Path, ponderscope: Any) -> None:
    file = DATA.parent / "eval" / "lambada_test.jsonl"
    if not file.exists():
        pytest.skip(f"{file} is not here")
    texts = [json.loads(line)["text"] for line in file.read_text(encoding="utf-8").splitlines()[:60]]
    docs = [{"context": text.rsplit(" ", 1)[0], "answer": " " + text.rsplit(" ", 1)[1]} for text in texts]
    metrics = [{"metric": "perplexity", "aggregation": "perplexity"}, {"metric": "acc", "aggregation": "mean"}]
    write_task(tmp_path / "tasks", docs, "last_word", output_type="loglikelihood", doc_to_choice=None, metric_list=metrics)
    trace = tmp_path / "out.ponder"
    model = {"pretrained": str(tree / "sample_models" / name), "program": str(program), "trace": str(trace)}
    found = evaluate("ponderscope", model, ["last_word"], tmp_path / "tasks")["results"]["last_word"]
    gc.collect()  # the model ends with its last reference, which completes the run
    report = ponderscope("tasks", trace, "--json")["runs"][0]["tasks"][0]
    assert report["documents"] == len(docs) and report["acc"]["value"] == pytest.approx(found["acc,none"])
    assert report["perplexity"]["value"] == pytest.approx(found["perplexity,none"], rel=1e-4)
    assert (report["steps"]["value"] > 0) == (name != "vanilla-neox-1m")
    if name == "vanilla-neox-1m":  # and hf says the same
        theirs = evaluate("hf", {"pretrained": model["pretrained"], "dtype": "float32", "device": "cpu"}, ["last_word"], tmp_path / "tasks")
        assert found["perplexity,none"] == pytest.approx(theirs["results"]["last_word"]["perplexity,none"], rel=1e-4)
        assert found["acc,none"] == theirs["results"]["last_word"]["acc,none"]


def test_an_engine_that_ends_says_why_and_the_trace_keeps_what_it_finished(tmp_path: Path, program: Path, tree: Path) -> None:
    import ponderscope as ps
    from ponderscope.harness import EngineError, PonderscopeLM

    request = {"type": "loglikelihood", "context": "The ferry was", "continuation": " late", "group": "boats/0"}
    with pytest.raises(EngineError, match="nowhere"):
        PonderscopeLM(str(tmp_path / "nowhere"), program=str(program)).ask([request])
    model = PonderscopeLM(str(tree / "sample_models/ponderlm-neox-1m"), program=str(program), trace=str(tmp_path / "out.ponder"))
    assert model.ask([request] * 3)[2]["loglikelihood"] < 0
    with pytest.raises(EngineError, match="boats/0"):
        model.ask([{**request, "continuation": ""}])
    time.sleep(1.5)  # the writer commits twice a second
    model._process.kill()
    with pytest.raises(EngineError, match="0 of 1"):
        model.ask([request])
    run = ps.open(tmp_path / "out.ponder").run("ponderlm-neox-1m")
    assert not run.info["complete"] and run.info["sequences"] == 3


def test_options_that_do_not_exist_are_named(program: Path) -> None:
    from ponderscope.harness import PonderscopeLM

    with pytest.raises(ValueError, match="polcy"):
        PonderscopeLM("model", program=str(program), polcy="full")
