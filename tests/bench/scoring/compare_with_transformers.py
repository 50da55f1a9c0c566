#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our scoring against Hugging Face transformers: same cores, same model, same tokens, in one run, as ratios.

    python3 tests/bench/scoring/compare_with_transformers.py --ponderscope build/release/bin/ponderscope

Needs torch and transformers in the Python that runs it (versions in resources/build/versions.env), e.g.
    python3 -m pip install --target /tmp/reference torch==2.11.0 transformers==5.23.0 numpy
    PYTHONPATH=/tmp/reference python3 tests/bench/scoring/compare_with_transformers.py ...

Comparisons of a shape in one dtype (--dtype), vanilla and PonderLM (3 steps): the NLL of every token alone; everything: entropy, rank of the true token,
maximum probability and top 10 as well, for PonderLM at every step; and, for PonderLM, with both Kullback-Leibler divergences between
neighbouring steps beside them. Every measurement is a process of its own;
its peak memory is the system's (ru_maxrss). Ours is `ponderscope record`: it computes and writes the trace in the time that counts.
Its `basic` level stands against "NLL alone", although it writes more, and against "everything", which is what it writes; `steps`
against the divergences. Loading is left out on both sides. On a GPU memory is what its tensors held there at most.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time

SHAPES = {
    # Pythia-70M: 6 layers, d 512, 8 heads, MLP 2048, vocabulary 50,304.
    "pythia-70m": dict(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, intermediate_size=2048, vocab_size=50304),
    # The size of sample_models.
    "pythia-160m": dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072, vocab_size=50304),
    "pythia-410m": dict(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096, vocab_size=50304),
    "pythia-1.4b": dict(hidden_size=2048, num_hidden_layers=24, num_attention_heads=16, intermediate_size=8192, vocab_size=50304),
    # A mixture: 32 experts of 384, of which a token takes 4, in each of 6 layers of d 512.
    "moe-32x4": dict(hidden_size=512, num_hidden_layers=6, num_attention_heads=8, num_key_value_heads=4, head_dim=64, moe_intermediate_size=384,
                     num_experts=32, num_experts_per_tok=4, norm_topk_prob=True, vocab_size=32000),
    "sample": dict(hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=512, vocab_size=2048),
}
PONDERING_STEPS = 3


def is_mixture(shape):
    return "num_experts" in SHAPES[shape]


def reference(argument):
    """Runs in a child process: transformers' forward and the same per-token quantities in plain torch. Prints seconds."""
    import torch
    from transformers import AutoModelForCausalLM

    job = json.loads(argument)
    torch.set_num_threads(job["threads"])
    torch.set_grad_enabled(False)
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=getattr(torch, job["dtype"]), attn_implementation=job["attention"]).eval().to(job["device"])
    ids = torch.tensor(json.load(open(job["ids"]))).to(job["device"])
    weight = model.get_input_embeddings().weight
    steps = job["steps"]

    def everything(logits, target, before):
        log_p = torch.log_softmax(logits.float(), -1)
        p = log_p.exp()
        divergences = ()
        if before is not None:
            change = log_p - before
            divergences = ((p * change).sum(-1), -(before.exp() * change).sum(-1))
        entropy = -(p * log_p).sum(-1)
        top = p.topk(10, -1)
        true = logits[:, :-1].gather(-1, target[..., None])
        rank = (logits[:, :-1] > true).sum(-1) + 1
        return (-log_p[:, :-1].gather(-1, target[..., None])[..., 0], entropy, rank, top.values, top.indices, *divergences), log_p

    def score(batch):
        target = batch[:, 1:]
        records = []
        before = None

        def record(logits):
            nonlocal before
            values, log_p = everything(logits, target, before)
            records.append(values)
            before = log_p if job["divergences"] else None

        if steps == 0:
            logits = model(batch, use_cache=False).logits
        else:
            scale = weight.shape[1] ** 0.5
            embeds = weight[batch] * scale
            for _ in range(steps):
                logits = model(inputs_embeds=embeds, use_cache=False).logits
                if job["everything"]:
                    record(logits)
                embeds = embeds + torch.softmax(logits, -1) @ weight * scale
            logits = model(inputs_embeds=embeds, use_cache=False).logits
        if job["everything"]:
            record(logits)
            return records
        return torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), target.reshape(-1), reduction="none")

    size = job["batch"]
    score(ids[:size])  # warm-up
    started = time.perf_counter()
    kept = [score(ids[at : at + size]) for at in range(0, len(ids), size)]
    if ids.is_cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    nll = kept[0][-1][0] if job["everything"] else kept[0]
    peak = {"gpu_memory_peak": torch.cuda.max_memory_allocated()} if ids.is_cuda else {}
    print(json.dumps({"seconds": seconds, "nll": float(nll.mean()), **peak}))


def run_child(command, environment):
    """(printed JSON, peak memory in MB: the GPU's where it says so, else resident) of one process."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True)
    out = process.stdout.read()
    errors = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command[:3])} failed:\n{errors}")
    result = json.loads(out.strip().splitlines()[-1])
    return result, result.get("gpu_memory_peak", usage.ru_maxrss * 1024) / (1 << 20)


def make_model(folder, shape, steps, context):
    import torch
    from transformers import AutoModelForCausalLM, GPTNeoXConfig, Qwen3MoeConfig

    torch.manual_seed(7)
    kind = Qwen3MoeConfig if is_mixture(shape) else GPTNeoXConfig
    config = kind(**SHAPES[shape], max_position_embeddings=max(context, 512), tie_word_embeddings=False)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    if steps:
        path = os.path.join(folder, "config.json")
        values = json.load(open(path))
        values.update(ponderinglm=True, pondering_steps=steps, mutiply_pondering_steps=False, scale_embeds=True)
        json.dump(values, open(path, "w"), indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ponderscope", required=True)
    parser.add_argument("--shapes", nargs="+", default=["pythia-70m", "sample"], choices=SHAPES)
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"], help="of both sides")
    parser.add_argument("--device", default="cpu", help="of both sides; there, memory is what it holds at most")
    parser.add_argument("--attention", nargs="+", default=["sdpa"], choices=["sdpa", "eager"], help="of transformers")
    parser.add_argument("--json", help="also write the rows here")
    options = parser.parse_args()

    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), MKL_NUM_THREADS=str(options.threads))
    rows = []
    compare(options, environment, rows)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)


def compare(options, environment, rows):
    print(f"{options.sequences} x {options.context} tokens, batch {options.batch}, {options.dtype}, {options.threads} threads, medians of {options.repeats}")
    print(f"{'shape':<12}{'method':<10}{'theirs':<6}{'quantities':<13}{'theirs s':>9}{'ours s':>9}{'times faster':>14}{'theirs MB':>11}{'ours MB':>9}{'memory':>8}{'load':>6}")
    with tempfile.TemporaryDirectory() as folder:
        import random

        for shape in options.shapes:
            random.seed(11)
            vocabulary = SHAPES[shape]["vocab_size"]
            ids = os.path.join(folder, f"{shape}.json")
            with open(ids, "w") as file:
                json.dump([[random.randrange(vocabulary) for _ in range(options.context)] for _ in range(options.sequences)], file)
            for method, steps, attention in ((method, steps, attention) for method, steps in (("vanilla", 0), ("ponderlm", PONDERING_STEPS))[: 1 if is_mixture(shape) else 2] for attention in options.attention):
                model = os.path.join(folder, f"{shape}-{method}")
                # In a process of its own: what is started by one that holds PyTorch has that one's peak memory, not its own.
                making = multiprocessing.Process(target=make_model, args=(model, shape, steps, options.context))
                making.start()
                making.join()
                if making.exitcode != 0:
                    sys.exit(f"{shape}: the model could not be made.")
                for quantities in ("nll", "everything") + (("divergences",) if steps else ()):
                    theirs, ours = [], []
                    for repeat in range(options.repeats):
                        job = dict(model=model, ids=ids, steps=steps, everything=quantities != "nll", divergences=quantities == "divergences", batch=options.batch, threads=options.threads, dtype=options.dtype, device=options.device, attention=attention)
                        theirs.append(run_child([sys.executable, os.path.abspath(__file__), "--reference", json.dumps(job)], environment))
                        trace = os.path.join(folder, f"{shape}-{method}-{quantities}-{repeat}.ponder")
                        level = "steps" if quantities == "divergences" else "basic"
                        ours.append(
                            run_child(
                                [options.ponderscope, "record", model, "--ids", ids, "-o", trace, "--record", level, "--context", str(options.context),
                                 "--stride", str(options.context), "--batch", str(options.batch), "--dtype", options.dtype, "--device", options.device, "--progress", "none", "--json"],
                                environment,
                            )
                        )
                        os.remove(trace)
                    seconds = [statistics.median(run[0]["seconds"] for run in side) for side in (theirs, ours)]
                    memory = [statistics.median(run[1] for run in side) for side in (theirs, ours)]
                    row = dict(shape=shape, method=method, attention=attention, quantities=quantities, theirs_seconds=seconds[0], ours_seconds=seconds[1],
                               speed_ratio=seconds[0] / seconds[1], theirs_mb=memory[0], ours_mb=memory[1], memory_ratio=memory[1] / memory[0])
                    rows.append(row)
                    print(f"{shape:<12}{method:<10}{attention:<6}{quantities:<13}{seconds[0]:>9.2f}{seconds[1]:>9.2f}{row['speed_ratio']:>13.2f}x{memory[0]:>11.0f}{memory[1]:>9.0f}{row['memory_ratio']:>8.2f}{os.getloadavg()[0]:>6.1f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--reference":
        reference(sys.argv[2])
    else:
        main()
