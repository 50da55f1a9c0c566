#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Training steps of ours against PyTorch: same cores, same model, same batch shape, in one run, as ratios.

    python3 tests/bench/train/compare_with_pytorch.py --ponderscope build/release/bin/ponderscope

Needs torch and transformers in the Python that runs it (versions in resources/build/versions.env). Theirs is a plain script: transformers'
GPT-NeoX with its sdpa attention, cross-entropy, clip_grad_norm_, AdamW (fused); PonderLM is a loop around that model. Ours is
`ponderscope train` on random text of our own making. A measurement is a process of its own; its time is that of the steps after the first
few, its memory the system's ru_maxrss. Both sides do the same number of steps, taking turns. PonderLM-3 is set against our plain model alone.
"""

import argparse
import json
import os
import pathlib
import random
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

SHAPES = {
    # The size of sample_models.
    "sample": dict(hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512),
    # Pythia-70M without its vocabulary.
    "70m": dict(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048),
}
# Three further steps each.
METHODS = ("vanilla", "ponderlm", "ponderlm3")
THEIRS = METHODS[:2]
STEPS = 3
VOCABULARY = 2048
WARM = 3


def reference(argument):
    """Runs in a child process: prints seconds a step and ru_maxrss."""
    import torch
    from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

    job = json.loads(argument)
    torch.set_num_threads(job["threads"])
    torch.manual_seed(0)
    config = GPTNeoXConfig(**job["model"], vocab_size=VOCABULARY, max_position_embeddings=job["context"])
    config._attn_implementation = "sdpa"
    model = GPTNeoXForCausalLM(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    embedding, head = model.get_input_embeddings().weight, model.get_output_embeddings()
    scale = job["model"]["hidden_size"] ** 0.5

    def logits_of(ids):
        if job["method"] == "vanilla":
            return model(input_ids=ids, use_cache=False).logits
        inputs = embedding[ids] * scale
        for _ in range(STEPS):
            state = model.gpt_neox(inputs_embeds=inputs, use_cache=False).last_hidden_state
            inputs = inputs + torch.softmax(head(state), -1) @ (embedding * scale)
        return model(inputs_embeds=inputs, use_cache=False).logits

    seconds = []
    for _ in range(job["count"]):
        rows = torch.randint(VOCABULARY, (job["batch"], job["context"] + 1))
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(logits_of(rows[:, :-1]).reshape(-1, VOCABULARY), rows[:, 1:].reshape(-1)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": statistics.median(seconds[WARM:]), "memory": peak(resource.RUSAGE_SELF)}))


def peak(who):
    return resource.getrusage(who).ru_maxrss * 1024


def theirs(job):
    done = subprocess.run(
        [sys.executable, __file__, "--reference", json.dumps(job)], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def ours(job, program, folder):
    model = dict(job["model"], model_type="gpt_neox", vocab_size=VOCABULARY)
    if job["method"] != "vanilla":
        model["pondering"] = {"method": job["method"], "max_steps": STEPS, "embed_scale": "sqrt_d"}
        if job["method"] == "ponderlm3":
            model["pondering"]["threshold"] = 1e-4
    recipe = {
        "model": model,
        "tokenizer": str(job["tokenizer"]),
        "texts": {"train": ["text.txt"]},
        "training": {"steps": job["count"], "context": job["context"], "batch": job["batch"]},
        "optimizer": {"weight_decay": 0.1, "warmup_steps": 0},
        "log": {"every": 1},
    }
    path = folder / "recipe.json"
    path.write_text(json.dumps(recipe))
    out = folder / "out"
    child = subprocess.Popen(
        [program, "train", str(path), "-o", str(out), "--overwrite"],
        env=dict(os.environ, OMP_NUM_THREADS=str(job["threads"])),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"{program} train ended with {os.waitstatus_to_exitcode(status)}; run it on {path} to see why")
    trace = sqlite3.connect(out / "training.ponder")
    at = [seconds for seconds, in trace.execute("SELECT seconds FROM training_point WHERE quantity = 'loss' ORDER BY step")]
    seconds = [after - before for before, after in zip(at, at[1:])]
    return {"seconds": statistics.median(seconds[WARM - 1 :]), "memory": usage.ru_maxrss * 1024}


def write_text(folder, options):
    """Enough random words for a measurement."""
    chance = random.Random(1)
    words = ["".join(chance.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(1 + chance.randrange(8))) for _ in range(9000)]
    needed = options.count * options.batch * (options.context + 1)
    (folder / "text.txt").write_text(" ".join(chance.choice(words) for _ in range(max(needed, 20000))))


TOKENIZER = pathlib.Path(__file__).resolve().parents[3] / "sample_models" / "tokenizer" / "tokenizer.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ponderscope", default="build/release/bin/ponderscope")
    parser.add_argument("--shape", choices=SHAPES, action="append", help="default: all")
    parser.add_argument("--method", choices=METHODS, action="append", help="default: all")
    parser.add_argument("--context", type=int, default=256)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--count", type=int, default=14, help="steps of a measurement; the first three do not count")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--reference", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reference:
        reference(options.reference)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_text(folder, options)
        print(f"{options.threads} threads, batch {options.batch} x {options.context}")
        print(f"{'':8} {'':20} {'tokens/s':>8}  {'over theirs':>11}  {'memory over theirs':>18}  {'over our plain':>14}")
        for shape in options.shape or SHAPES:
            plain = None
            for method in options.method or METHODS:
                job = dict(model=SHAPES[shape], method=method, context=options.context, batch=options.batch, count=options.count, threads=options.threads, tokenizer=str(TOKENIZER))
                pairs = [(ours(job, options.ponderscope, folder), theirs(job) if method in THEIRS else None) for _ in range(options.repeats)]
                rate = options.batch * options.context / statistics.median(a["seconds"] for a, _ in pairs)
                plain = rate if method == "vanilla" else plain
                speed = memory = ""
                if method in THEIRS:
                    speed = f"{statistics.median(b['seconds'] / a['seconds'] for a, b in pairs):.2f}"
                    memory = f"{statistics.median(a['memory'] / b['memory'] for a, b in pairs):.2f}"
                print(f"{shape:8} {method:20} {rate:8,.0f}  {speed:>11}  {memory:>18}  {f'{rate / plain:.3f}' if plain else '':>14}", flush=True)


if __name__ == "__main__":
    main()
