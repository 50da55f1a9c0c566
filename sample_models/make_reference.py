#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes reference.json beside a sample model: the NLL of every token of a text, computed in fp32 by the plain formulas below
and not by Ponderscope, so that a test can compare the program's NLL with it.

    make_reference.py MODEL TEXT [--context 256]

The text is cut into windows of `context` tokens without overlap. The first token of a window has no NLL. Needs the packages torch
and tokenizers (versions in resources/build/versions.env).
"""
import argparse
import json
import math
import pathlib
import struct

import tokenizers
import torch
from torch.nn.functional import gelu, layer_norm, linear, silu


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


def rotated(x: torch.Tensor, dims: int, base: float, positions: torch.Tensor) -> torch.Tensor:
    """Rotary embedding of the first `dims` elements of each head; x: [slots, heads, size]."""
    angles = torch.outer(positions.float(), base ** (-torch.arange(0, dims, 2).float() / dims))[:, None, :]
    cos, sin = angles.cos(), angles.sin()
    first, second, rest = x[..., : dims // 2], x[..., dims // 2 : dims], x[..., dims:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], -1)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


class Store:
    """Keys and values of `rows` slots in every layer, and a bias of the attention logits for each row."""

    def __init__(self, config: dict, rows: int):
        heads = config.get("num_key_value_heads", config["num_attention_heads"])
        shape = (config["num_hidden_layers"], rows, heads, config["hidden_size"] // config["num_attention_heads"])
        self.k, self.v = torch.zeros(shape), torch.zeros(shape)
        self.bias = torch.zeros(rows)  # PonderLM-3's log w


class Slots:
    """The slots of one pass: positions in the text, rows of the store that they fill, rows that they see (bool [slots, rows])."""

    def __init__(self, positions: torch.Tensor, rows: torch.Tensor, visible: torch.Tensor, store: Store):
        self.positions, self.rows, self.visible, self.store = positions, rows, visible, store

    def attend(self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        store, group = self.store, q.shape[1] // k.shape[1]
        store.k[layer, self.rows], store.v[layer, self.rows] = k, v
        keys, values = (side[layer].repeat_interleave(group, 1) for side in (store.k, store.v))
        scores = torch.einsum("qhd,khd->hqk", q, keys) / math.sqrt(q.shape[2]) + store.bias
        weights = scores.masked_fill(~self.visible, -math.inf).softmax(-1)
        return torch.einsum("hqk,khd->qhd", weights, values).reshape(len(q), -1)


class NeoX:
    """GPT-NeoX; MLP beside the attention (parallel residual) or after it."""

    def __init__(self, weights: dict, config: dict):
        self.w, self.config = weights, config
        self.table, self.head = weights["gpt_neox.embed_in.weight"], weights["embed_out.weight"]

    def norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight, bias = self.w[f"gpt_neox.{name}.weight"], self.w[f"gpt_neox.{name}.bias"]
        return layer_norm(x, (x.shape[-1],), weight, bias, self.config.get("layer_norm_eps", 1e-5))

    def linear(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return linear(x, self.w[f"gpt_neox.{name}.weight"], self.w[f"gpt_neox.{name}.bias"])

    def layers(self, x: torch.Tensor, slots: Slots) -> torch.Tensor:
        """The residual stream before the final norm."""
        heads = self.config["num_attention_heads"]
        size = x.shape[1] // heads
        dims, base = int(size * self.config["rotary_pct"]), self.config.get("rotary_emb_base", 10000)
        for number in range(self.config["num_hidden_layers"]):
            of = f"layers.{number}."
            qkv = self.linear(self.norm(x, of + "input_layernorm"), of + "attention.query_key_value")
            q, k, v = qkv.view(len(x), heads, 3, size).unbind(2)
            q, k = (rotated(part, dims, base, slots.positions) for part in (q, k))
            attended = self.linear(slots.attend(number, q, k, v), of + "attention.dense")
            read = x if self.config.get("use_parallel_residual", True) else x + attended
            inner = gelu(self.linear(self.norm(read, of + "post_attention_layernorm"), of + "mlp.dense_h_to_4h"))
            x = x + attended + self.linear(inner, of + "mlp.dense_4h_to_h")
        return x

    def final(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x, "final_layer_norm")


class Llama:
    """Llama, plain or with depth mixing (Depth-Attention, mHC, Block AttnRes or DenseFormer)."""

    def __init__(self, weights: dict, config: dict):
        self.w, self.config = weights, config
        self.eps = config.get("rms_norm_eps", 1e-6)
        self.table, self.head = weights["model.embed_tokens.weight"], weights["lm_head.weight"]

    def norm(self, x: torch.Tensor, name: str) -> torch.Tensor:
        return rms_norm(x, self.w[f"model.{name}.weight"], self.eps)

    def attention(self, number: int, x: torch.Tensor, slots: Slots, depth: list) -> torch.Tensor:
        """Norm and attention on the residual stream x. `depth`: keys and mixed values of the earlier layers in this pass."""
        config, of = self.config, f"model.layers.{number}.self_attn."
        heads, base = config["num_attention_heads"], config.get("rope_theta", 10000)
        size = x.shape[1] // heads
        normed = self.norm(x, f"layers.{number}.input_layernorm")
        q, k, v = (linear(normed, self.w[of + f"{name}_proj.weight"]).view(len(x), -1, size) for name in "qkv")
        if config.get("use_qk_norm", False):
            q = rms_norm(q, self.w[of + "q_norm.weight"], self.eps)
        q, k = (rotated(part, size, base, slots.positions) for part in (q, k))
        if config.get("use_qk_norm", False):
            k = rms_norm(k, self.w[of + "k_norm.weight"], self.eps)
        if config.get("use_depth_attention", False):
            stride, window = config.get("depth_attention_stride", 1), config.get("depth_attention_recent_window", 0)
            mean = q.view(len(x), k.shape[1], -1, size).mean(2)
            sources = [depth[j] for j in range(number) if stride <= 1 or j % stride == 0 or j >= number - window] + [(k, v)]
            scores = torch.stack([(mean * key).sum(-1) for key, _ in sources]) / math.sqrt(size)
            v = (scores.softmax(0)[..., None] * torch.stack([value for _, value in sources])).sum(0)
            depth.append((k, v))
        return linear(slots.attend(number, q, k, v), self.w[of + "o_proj.weight"])

    def mlp(self, number: int, x: torch.Tensor) -> torch.Tensor:
        of = f"model.layers.{number}.mlp."
        normed = self.norm(x, f"layers.{number}.post_attention_layernorm")
        gate, up = (linear(normed, self.w[of + name + "_proj.weight"]) for name in ("gate", "up"))
        return linear(silu(gate) * up, self.w[of + "down_proj.weight"])

    def layers(self, x: torch.Tensor, slots: Slots) -> torch.Tensor:
        depth: list = []
        parts = []
        for number in range(self.config["num_hidden_layers"]):
            parts.append(lambda h, number=number: self.attention(number, h, slots, depth))
            parts.append(lambda h, number=number: self.mlp(number, h))
        mode = self.config.get("baseline_mode")
        if mode is None:
            for part in parts:
                x = x + part(x)
            return x
        return {"mhc": self.mhc, "attnres": self.attnres, "denseformer": self.denseformer}[mode](x, parts)

    def mhc(self, x: torch.Tensor, parts: list) -> torch.Tensor:
        n = self.config.get("mhc_num_streams", 4)
        streams = x[:, None, :].repeat(1, n, 1)
        for number, part in enumerate(parts):
            of = f"model.layers.{number // 2}.{('attn', 'mlp')[number % 2]}_residual_connector."
            w = {name[len(of) :]: tensor for name, tensor in self.w.items() if name.startswith(of)}
            maps = rms_norm(streams.flatten(1), w["mhc_input_norm.weight"], self.eps) @ w["mhc_dynamic_projection.weight"].T
            a, b, c = maps[:, :n], maps[:, n : 2 * n], maps[:, 2 * n :].view(-1, n, n)
            p = torch.sigmoid(w["alpha_pre"] * a + w["pre_logits"])
            out = 2 * torch.sigmoid(w["alpha_post"] * b + w["post_logits"])
            z = w["alpha_res"] * c + w["residual_logits"]
            m = (z - z.amax((1, 2), keepdim=True)).exp().clamp_min(1e-12)
            for _ in range(self.config.get("mhc_sinkhorn_iters", 20)):
                m = m / m.sum(2, keepdim=True).clamp_min(1e-12)
                m = m / m.sum(1, keepdim=True).clamp_min(1e-12)
            u = part((p[:, :, None] * streams).sum(1))
            streams = m @ streams + out[:, :, None] * u[:, None, :]
        share = self.w["model.residual_stream_projector.reduce_logits"].softmax(0)
        return (share[None, :, None] * streams).sum(1)

    def attnres(self, x: torch.Tensor, parts: list) -> torch.Tensor:
        snapshots, running, count = [x], x, 0

        def aggregate(name: str) -> torch.Tensor:
            of = f"model.{name}_aggregator."
            query = self.w[of + "pseudo_query"] * self.w[of + "norm.weight"]
            sources = torch.stack(snapshots + [running])
            scores = (sources * query).sum(-1) / torch.sqrt(sources.square().mean(-1) + self.eps)
            scores[-1] += self.w[of + "recency_bias"]
            return (scores.softmax(0)[..., None] * sources).sum(0)

        for number, part in enumerate(parts):
            running = running + part(aggregate(f"layers.{number // 2}.attnres_{('attn', 'mlp')[number % 2]}"))
            if number % 2 == 1:
                count += 2
                if count >= self.config.get("attnres_block_size", 12):
                    snapshots, count = snapshots + [running], 0
        return aggregate("attnres_final")

    def denseformer(self, x: torch.Tensor, parts: list) -> torch.Tensor:
        dilation, period = (self.config.get(f"denseformer_dwa_{name}", 1) for name in ("dilation", "period"))
        history = [x]
        for number in range(len(parts) // 2):
            for part in parts[2 * number : 2 * number + 2]:
                x = x + part(x)
            history.append(x)
            if (number + 1) % period == 0:
                alphas = self.w[f"model.densetransformer_dwa.alphas.{number}"]
                chosen = history[(number + 1) % dilation :: dilation]
                x = (alphas[:, None, None] * torch.stack(chosen)).sum(0)
        return x

    def final(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x, "norm")


def scale_of(config: dict, section: dict) -> float:
    d = config["hidden_size"]
    if section["from_public_keys"]:
        return math.sqrt(d) if config.get("scale_embeds", False) else 1.0
    return {"none": 1.0, "sqrt_d": math.sqrt(d), "sqrt_2.5d": math.sqrt(2.5 * d)}[section.get("embed_scale", "none")]


def outputs(ids: torch.Tensor, model, config: dict) -> tuple:
    """The states that the head reads, and the last step of each token."""
    section = dict(config.get("pondering", {"method": "vanilla", "max_steps": 0}), from_public_keys="pondering" not in config)
    if config.get("ponderinglm", False):
        section.update(method="ponderlm", max_steps=config["pondering_steps"])
    scale = scale_of(config, section)
    run = {"pause": interleaved, "ponderlm2": interleaved, "ponderlm3": interleaved, "adaptive_latent_cot": adaptive}
    return run.get(section["method"], per_step)(ids, model, config, section, scale)


def per_step(ids, model, config, section, scale):
    """vanilla, looped, ponderlm, ponderlm_reset, ponderlm_hidden, adaponderlm: one row for each token, which each step overwrites."""
    method, last = section["method"], section["max_steps"]
    count, token = len(ids), torch.arange(len(ids))
    causal = token[:, None] >= token[None, :]
    store, active = Store(config, count), token
    start = x = scale * model.table[ids]
    read, steps = torch.zeros_like(x), torch.zeros(count, dtype=torch.long)
    for step in range(last + 1):
        stream = model.layers(x[active], Slots(active, active, causal[active], store))
        h = model.final(stream)
        read[active], steps[active] = h, step
        if step == last:
            break
        if method == "looped":
            x = stream
            continue
        if method == "ponderlm_hidden":
            x = x + h
            continue
        mixture = (h @ model.head.T).softmax(-1) @ (scale * model.table)
        if method == "adaponderlm":
            w = {name: model.w[f"pondering.gates.{step}.{name}"] for name in ("fc_in.weight", "fc_in.bias", "fc_out.weight", "fc_out.bias")}
            gate = torch.sigmoid(linear(gelu(linear(h, w["fc_in.weight"], w["fc_in.bias"])), w["fc_out.weight"], w["fc_out.bias"]))[:, 0]
            going = gate >= section.get("threshold", 1e-4)
            active = active[going]
            if len(active) == 0:
                break
            x = x.clone()
            x[active] += gate[going, None] * mixture[going]
        else:
            x = (start if method == "ponderlm_reset" else x) + mixture
    return read, steps


def adaptive(ids, model, config, section, scale):
    """Adaptive latent chain of thought: one row of the store for each slot, two-dimensional visibility."""
    last, count, token = section["max_steps"], len(ids), torch.arange(len(ids))
    store, owner = Store(config, count * (last + 1)), torch.full((count * (last + 1),), count)
    active, x, reach = token, scale * model.table[ids], torch.ones(count)
    read, steps = torch.zeros_like(x), torch.zeros(count, dtype=torch.long)
    router, bias = model.w["pondering.router.weight"], model.w["pondering.router.bias"]
    for step in range(last + 1):
        rows = step * count + active
        owner[rows] = active
        h = model.final(model.layers(x, Slots(active, rows, active[:, None] >= owner[None, :], store)))
        steps[active] = step
        if step == last:
            read[active] += reach[:, None] * h
            break
        go = torch.sigmoid(linear(h, router[step if len(router) > 1 else 0][None], bias[step if len(router) > 1 else 0])[:, 0])
        going = reach * go >= section.get("threshold", 1e-4)
        stays = reach if section.get("remainder", "last") == "last" else reach * (1 - go)
        read[active] += torch.where(going, reach * (1 - go), stays)[:, None] * h
        active, x, reach = active[going], h[going], (reach * go)[going]
        if len(active) == 0:
            break
    return read, steps


def interleaved(ids, model, config, section, scale):
    """pause, ponderlm2, ponderlm3: all slots of a token, one after the other as in decoding, then the next token."""
    method, last, count = section["method"], section["max_steps"], len(ids)
    store, filled = Store(config, count * (last + 1)), 0
    read, steps = torch.zeros(count, config["hidden_size"]), torch.full((count,), last)
    seen = torch.arange(count * (last + 1))
    for t in range(count):
        x, limit, masses = scale * model.table[ids[t]][None], last, None
        for k in range(last + 1):
            row = torch.tensor([filled])
            if masses is not None:
                store.bias[filled] = reach[k]  # noqa: F821, set with masses
            h = model.final(model.layers(x, Slots(torch.tensor([t]), row, seen[None, :] <= filled, store)))
            filled += 1
            if method == "ponderlm3" and k == 0:
                z = linear(h, model.w["pondering.router.weight"], model.w["pondering.router.bias"])[0]
                reach = z.flip(0).logcumsumexp(0).flip(0) - z.logsumexp(0)
                limit = max([0] + [j for j in range(last + 1) if reach[j].exp() >= section.get("threshold", 1e-4)])
                masses = z.softmax(0)
                if section.get("remainder", "last") == "last":
                    masses = torch.where(torch.arange(last + 1) == limit, reach.exp(), masses)
            if masses is not None:
                read[t] += masses[k] * h[0]
            if k == limit:
                break
            x = scale * model.table[config["pause_token_id"]][None] if method == "pause" else h
        steps[t] = limit
        if masses is None:
            read[t] = h[0]
    return read, steps


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

    model = (Llama if config["model_type"] == "llama" else NeoX)(weights, config)

    nll, steps = [], []
    with torch.no_grad():
        for begin in range(0, len(ids), arguments.context):
            window = torch.tensor(ids[begin : begin + arguments.context])
            read, last = outputs(window, model, config)
            logarithms = (read @ model.head.T).log_softmax(-1)
            steps.append(last.tolist())
            nll.append([round(-logarithms[i, target].item(), 6) for i, target in enumerate(window[1:].tolist())])
    scored = [value for window in nll for value in window]
    result = {
        "text": arguments.text.name,
        "context": arguments.context,
        "ids": ids,
        "nll": nll,
        "steps": steps,
        "mean_nll": round(sum(scored) / len(scored), 6),
        "made_with": {"torch": torch.__version__.split("+")[0], "tokenizers": tokenizers.__version__},
    }
    (arguments.model / "reference.json").write_text(json.dumps(result) + "\n", encoding="utf-8")
    print(f"{arguments.model}: mean NLL {result['mean_nll']} over {len(scored)} tokens of {arguments.text.name}")


if __name__ == "__main__":
    main()
