#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes reference.json beside a sample model: the NLL of every token of a text, computed in fp32 by the plain formulas below
and not by Ponderscope, so that a test can hold the program against it.

    make_reference.py MODEL TEXT [--context 256]

The text is cut into windows of `context` tokens without overlap; a window's first token has no NLL. Needs the packages torch
and tokenizers (versions in resources/build/versions.env).
"""
import argparse
import json
import math
import pathlib
import struct

import tokenizers
import torch
from torch.nn.functional import gelu, layer_norm, linear


def read_weights(path: pathlib.Path) -> dict:
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    kinds = {"BF16": torch.bfloat16, "F32": torch.float32}
    weights = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            flat = torch.frombuffer(bytearray(data[begin:end]), dtype=kinds[entry["dtype"]])
            weights[name] = flat.reshape(entry["shape"]).float()
    return weights


def rotated(x: torch.Tensor, dims: int, base: float) -> torch.Tensor:
    """Rotary embedding of the first `dims` elements of each head; x: [heads, positions, size]."""
    angles = torch.outer(torch.arange(x.shape[1]).float(), base ** (-torch.arange(0, dims, 2).float() / dims))
    cos, sin = angles.cos(), angles.sin()
    first, second, rest = x[..., : dims // 2], x[..., dims // 2 : dims], x[..., dims:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], -1)


def stack(x: torch.Tensor, w: dict, config: dict) -> torch.Tensor:
    """All layers of GPT-NeoX with parallel residual, and the final norm. x: [positions, hidden]."""
    heads, eps = config["num_attention_heads"], config.get("layer_norm_eps", 1e-5)
    size = config["hidden_size"] // heads
    dims = int(size * config["rotary_pct"])
    hidden = (config["hidden_size"],)
    ahead = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    for number in range(config["num_hidden_layers"]):
        def of(name):
            return w[f"gpt_neox.layers.{number}.{name}"]

        normed = layer_norm(x, hidden, of("input_layernorm.weight"), of("input_layernorm.bias"), eps)
        qkv = linear(normed, of("attention.query_key_value.weight"), of("attention.query_key_value.bias"))
        q, k, v = qkv.view(len(x), heads, 3, size).permute(2, 1, 0, 3)
        q, k = (rotated(part, dims, config.get("rotary_emb_base", 10000)) for part in (q, k))
        scores = (q @ k.transpose(1, 2) / math.sqrt(size)).masked_fill(ahead, -math.inf)
        attended = (scores.softmax(-1) @ v).transpose(0, 1).reshape(len(x), -1)
        normed = layer_norm(x, hidden, of("post_attention_layernorm.weight"), of("post_attention_layernorm.bias"), eps)
        inner = gelu(linear(normed, of("mlp.dense_h_to_4h.weight"), of("mlp.dense_h_to_4h.bias")))
        x = (
            x
            + linear(attended, of("attention.dense.weight"), of("attention.dense.bias"))
            + linear(inner, of("mlp.dense_4h_to_h.weight"), of("mlp.dense_4h_to_h.bias"))
        )
    return layer_norm(x, hidden, w["gpt_neox.final_layer_norm.weight"], w["gpt_neox.final_layer_norm.bias"], eps)


def logits(ids: torch.Tensor, w: dict, config: dict) -> torch.Tensor:
    """Of the model's last pass; with PonderLM (arXiv 2505.20674) after `pondering_steps` passes that only refine the input."""
    table, head = w["gpt_neox.embed_in.weight"], w["embed_out.weight"]
    if not config.get("ponderinglm", False):
        return stack(table[ids], w, config) @ head.T
    scale = math.sqrt(config["hidden_size"]) if config.get("scale_embeds", False) else 1.0
    x = scale * table[ids]
    for _ in range(config["pondering_steps"]):
        x = x + (stack(x, w, config) @ head.T).softmax(-1) @ (scale * table)
    return stack(x, w, config) @ head.T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--context", type=int, default=256)
    arguments = parser.parse_args()
    config = json.loads((arguments.model / "config.json").read_text(encoding="utf-8"))
    weights = read_weights(arguments.model / "model.safetensors")
    tokenizer = tokenizers.Tokenizer.from_file(str(arguments.model / "tokenizer.json"))
    ids = tokenizer.encode(arguments.text.read_text(encoding="utf-8")).ids

    nll = []
    with torch.no_grad():
        for begin in range(0, len(ids), arguments.context):
            window = torch.tensor(ids[begin : begin + arguments.context])
            logarithms = logits(window, weights, config).log_softmax(-1)
            nll.append([round(-logarithms[i, target].item(), 6) for i, target in enumerate(window[1:].tolist())])
    scored = [value for window in nll for value in window]
    result = {
        "text": arguments.text.name,
        "context": arguments.context,
        "ids": ids,
        "nll": nll,
        "mean_nll": round(sum(scored) / len(scored), 6),
        "made_with": {"torch": torch.__version__.split("+")[0], "tokenizers": tokenizers.__version__},
    }
    (arguments.model / "reference.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
    print(f"{arguments.model}: mean NLL {result['mean_nll']} over {len(scored)} tokens of {arguments.text.name}")


if __name__ == "__main__":
    main()
