#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""transformers on the same card, in one process, and our figures over it.

    transformers_on_device.py --ours LOG [--device cuda] [--dtype bfloat16] [--shape 410m] [--rounds 5]

LOG is what device_bench printed for the same shape, device and dtype: its rows "recording vanilla" and "decoding vanilla". The model is
a GPT-NeoX with weights drawn on the device and attention by SDPA. NLL: of every token. Everything: entropy, rank of the true token,
maximum probability and the ten likeliest tokens as well, which is what our level `basic` records. All texts in one batch, as ours. Decoding: greedy, with a cache.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import statistics
import sys
import time

SHAPES = {"tiny": (256, 4, 4, 8192), "160m": (768, 12, 12, 50304), "410m": (1024, 24, 16, 50304), "1.4b": (2048, 24, 16, 50304)}
PROMPT, WARM, MORE = 32, 3, 16  # as device_bench decodes


def our_figures(log: str) -> dict[str, float]:
    figures: dict[str, float] = {}
    if row := re.search(r"recording +vanilla *: NLL (\d+) tokens/s, basic ([\d.]+)", log):
        figures["NLL"] = float(row[1])
        figures["everything"] = float(row[1]) / float(row[2])
    for batch, speed in re.findall(r"decoding +vanilla *, batch +(\d+): ([\d.]+) tokens/s", log):
        figures[f"decoding, batch {batch}"] = float(speed)
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--ours", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--shape", choices=SHAPES, default="410m")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    try:
        import torch
        import transformers
    except ImportError as error:
        print(f"figure transformers: not compared, {error}")
        return 0
    ours = our_figures(options.ours.read_text(encoding="utf-8", errors="replace"))
    if not ours:
        print(f"Error: {options.ours} has no row 'recording vanilla' of device_bench", file=sys.stderr)
        return 1
    device, dtype = torch.device(options.device), getattr(torch, options.dtype)
    width, layers, heads, vocabulary = SHAPES[options.shape]
    config = transformers.GPTNeoXConfig(
        hidden_size=width, intermediate_size=4 * width, num_hidden_layers=layers, num_attention_heads=heads, vocab_size=vocabulary,
        max_position_embeddings=2048, rotary_pct=0.25, tie_word_embeddings=False, attn_implementation="sdpa", eos_token_id=None,
    )  # fmt: skip
    with torch.device(device):
        torch.set_default_dtype(dtype)
        model = transformers.GPTNeoXForCausalLM(config).eval()
        torch.set_default_dtype(torch.float32)
    ids = torch.randint(0, vocabulary, (8, 1024 if device.type == "cuda" else 256), device=device)

    def nll() -> None:
        logits = model(ids).logits[:, :-1].float()
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none").cpu()

    def everything() -> None:
        logits = model(ids).logits.float()
        logs = logits.log_softmax(-1)
        true = logits[:, :-1].gather(-1, ids[:, 1:, None])
        found = [-logs[:, :-1].gather(-1, ids[:, 1:, None]), -(logs.exp() * logs).sum(-1), (logits[:, :-1] > true).sum(-1) + 1,
                 logs.amax(-1).exp(), *logs.topk(10, -1)]  # fmt: skip
        for one in found:
            one.cpu()

    def decode(batch: int, tokens: int) -> None:
        prompt = ids[:1, :PROMPT].expand(batch, -1).contiguous()
        model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)

    def seconds(work) -> float:
        times = []
        for _ in range(options.rounds + 1):
            begin = time.perf_counter()
            work()
            if device.type == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - begin)
        return statistics.median(times[1:])

    with torch.inference_mode():
        theirs = {"NLL": ids.numel() / seconds(nll), "everything": ids.numel() / seconds(everything)}
        for batch in (1, 32):
            each = (seconds(lambda: decode(batch, WARM + MORE)) - seconds(lambda: decode(batch, WARM))) / MORE  # noqa: B023
            theirs[f"decoding, batch {batch}"] = batch / each
    for what, speed in theirs.items():
        ratio = f"{ours[what] / speed:.2f} times" if what in ours else "not measured"
        print(f"figure transformers {transformers.__version__}, {what}: {speed:.0f} tokens/s; ours {ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
