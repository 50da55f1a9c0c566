#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares our logits with those of transformers' own classes on small random models.

  architecture_differential.py PONDERSCOPE [FAMILY...] [--count N] [--seed S] [--tolerance T]

For each family N configurations are drawn (sizes, heads, windows, rotations, scales, biases, ties, with keys left
out), with random weights, saved by transformers and read by PONDERSCOPE. Prints the worst difference of each family.
Ends with 0 when none exceeds the tolerance, 1 otherwise, and with 77 (skipped, for ctest) without transformers.
A difference counts in units of max(1, largest logit). Draws whose result moves more than the tolerance under a change
of the weights by one unit in the last place are drawn again: they measure rounding.
"""
import argparse
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

VOCABULARY = 61


def kinds(rng, layers):
    return [rng.choice(["full_attention", "sliding_attention"]) for _ in range(layers)]


def scaling(rng, head_dim, positions):
    kind = rng.choice(["default", "default", "linear", "yarn", "llama3", "dynamic"] if head_dim > 2 else ["default"])
    keys = {"rope_type": kind, "rope_theta": rng.choice([10.0, 300.0, 10000.0])}
    if kind != "default":
        keys["factor"] = rng.choice([2.0, 3.5, 8.0])
    if kind in ("yarn", "llama3"):
        keys["original_max_position_embeddings"] = rng.choice([8, 16, positions])
    if kind == "llama3":
        keys.update(low_freq_factor=1.0, high_freq_factor=4.0)
    return keys


def common(rng):
    heads = rng.choice([1, 2, 3, 4])
    layers = rng.choice([1, 2, 3, 5])
    head_dim = rng.choice([4, 6, 8, 10])
    return {"vocab_size": VOCABULARY, "hidden_size": heads * rng.choice([6, 8, 10]), "intermediate_size": rng.choice([20, 36]),
            "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": rng.choice([k for k in (1, 2, 3, 4) if heads % k == 0]), "head_dim": head_dim,
            "max_position_embeddings": 64, "tie_word_embeddings": rng.random() < 0.5,
            "rms_norm_eps": rng.choice([1e-6, 1e-5, 1e-3]), "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def windowed(rng, keys):
    keys["sliding_window"] = rng.choice([1, 3, 7, 40])
    if rng.random() < 0.6:
        keys["layer_types"] = kinds(rng, keys["num_hidden_layers"])
    return keys


def gemma2(rng):
    keys = windowed(rng, common(rng))
    keys.update(attn_logit_softcapping=rng.choice([None, 0.7, 5.0]), final_logit_softcapping=rng.choice([None, 2.0, 30.0]),
                query_pre_attn_scalar=rng.choice([3, 17, 256]), attention_bias=rng.random() < 0.3,
                rope_parameters=scaling(rng, keys["head_dim"], 64))
    return keys


def gemma3_text(rng):
    keys = windowed(rng, common(rng))
    keys.update(final_logit_softcapping=rng.choice([None, 2.0]), query_pre_attn_scalar=rng.choice([3, 17, 256]))
    if rng.random() < 0.5:
        keys["sliding_window_pattern"] = rng.choice([1, 2, 3])
    if rng.random() < 0.7:
        keys["rope_parameters"] = {"full_attention": scaling(rng, keys["head_dim"], 64),
                                   "sliding_attention": {"rope_type": "default", "rope_theta": rng.choice([7.0, 100.0])}}
    return keys


def gemma3(rng):
    text = gemma3_text(rng)
    tie = text["tie_word_embeddings"]
    return {"text_config": text, "tie_word_embeddings": tie, "mm_tokens_per_image": 4,
            "vision_config": {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1,
                              "image_size": 8, "patch_size": 4}}


def without_head_dim(keys):
    del keys["head_dim"]
    keys["hidden_size"] = keys["num_attention_heads"] * (keys["hidden_size"] // keys["num_attention_heads"])
    return keys


def olmo2(rng):
    keys = without_head_dim(common(rng))
    keys.update(attention_bias=rng.random() < 0.3,
                rope_parameters=scaling(rng, keys["hidden_size"] // keys["num_attention_heads"], 64))
    return keys


def olmo3(rng):
    keys = windowed(rng, without_head_dim(common(rng)))
    keys.update(attention_bias=rng.random() < 0.3)
    if rng.random() < 0.7:
        keys["rope_parameters"] = {
            "full_attention": scaling(rng, keys["hidden_size"] // keys["num_attention_heads"], 64),
            "sliding_attention": {"rope_type": "default", "rope_theta": rng.choice([7.0, 100.0])}}
    return keys


def smollm3(rng):
    keys = without_head_dim(common(rng))
    layers = keys["num_hidden_layers"]
    if rng.random() < 0.5:
        keys["no_rope_layers"] = [rng.randrange(2) for _ in range(layers)]
    else:
        keys["no_rope_layer_interval"] = rng.choice([1, 2, 3, 4])
    if rng.random() < 0.5:
        keys.update(use_sliding_window=True, sliding_window=rng.choice([1, 3, 7]))
        if rng.random() < 0.5:
            keys["layer_types"] = kinds(rng, layers)
    keys.update(attention_bias=rng.random() < 0.3, mlp_bias=rng.random() < 0.3,
                rope_parameters=scaling(rng, keys["hidden_size"] // keys["num_attention_heads"], 64))
    return keys


def phi3(rng):
    keys = without_head_dim(common(rng))
    size = keys["hidden_size"] // keys["num_attention_heads"]
    part = rng.choice([1.0, 0.5 if size % 4 == 0 else 1.0])
    keys["sliding_window"] = rng.choice([None, None, 3, 7])
    keys["rope_parameters"] = {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": part}
    if rng.random() < 0.7:
        pairs = int(size * part) // 2
        keys["original_max_position_embeddings"] = rng.choice([4, 12, 16, 40])
        keys["rope_parameters"].update(rope_type="longrope", short_factor=[rng.uniform(1, 2) for _ in range(pairs)],
                                       long_factor=[rng.uniform(1, 8) for _ in range(pairs)])
        if rng.random() < 0.3:
            keys["rope_parameters"]["attention_factor"] = rng.choice([1.0, 1.3])
        if rng.random() < 0.3:
            keys["rope_parameters"]["factor"] = rng.choice([1.0, 6.0])
    return keys


def ministral(rng):
    keys = windowed(rng, common(rng))
    keys["rope_parameters"] = scaling(rng, keys["head_dim"], 64)
    return keys


def nanochat(rng):
    keys = without_head_dim(common(rng))
    keys.update(final_logit_softcapping=rng.choice([None, 2.0, 15.0]), attention_bias=rng.random() < 0.3,
                hidden_act="relu2", rope_parameters=scaling(rng, keys["hidden_size"] // keys["num_attention_heads"], 64))
    return keys


def granite(rng):
    keys = without_head_dim(common(rng))
    keys.update(attention_bias=rng.random() < 0.3, mlp_bias=rng.random() < 0.3,
                rope_parameters=scaling(rng, keys["hidden_size"] // keys["num_attention_heads"], 64))
    for name in ("embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"):
        if rng.random() < 0.7:
            keys[name] = rng.choice([0.22, 0.5, 3.0])
    return keys


def dory(rng):
    keys = windowed(rng, common(rng))
    layers = keys["num_hidden_layers"]
    first = rng.randrange(layers)
    last = rng.randrange(layers - first)
    keys.update(n_input_layers=first, n_output_layers=last, n_recurrent_loops=rng.choice([1, 2, 3]),
                initializer_range=rng.choice([0.02, 0.3]), ngpt_alpha_init=rng.choice([0.05, 0.3]), tie_word_embeddings=False)
    del keys["rms_norm_eps"]
    if "layer_types" in keys and rng.random() < 0.5:
        keys["rope_parameters"] = {kind: {"rope_type": "default", "rope_theta": rng.choice([7.0, 900.0])}
                                   for kind in set(keys["layer_types"])}
    return keys


def hrm_text(rng):
    keys = common(rng)
    keys.update(num_key_value_heads=keys["num_attention_heads"], num_hidden_layers=rng.choice([1, 2]),
                H_cycles=rng.choice([1, 2, 3]), L_cycles=rng.choice([1, 2, 3]), prefix_lm=rng.random() < 0.5,
                rope_parameters={"rope_type": "default", "rope_theta": rng.choice([50.0, 10000.0])})
    if rng.random() < 0.5:
        keys["embedding_scale"] = rng.choice([1.0, 7.0])
    return keys


def mixture(rng, keys, head_dim):
    experts = rng.choice([1, 4, 7])
    keys.update(num_experts_per_tok=rng.randint(1, min(experts, 4)), attention_bias=rng.random() < 0.5,
                rope_parameters=scaling(rng, head_dim, 64))
    return experts


def qwen3_moe(rng):
    keys = common(rng)
    keys.update(num_experts=mixture(rng, keys, keys["head_dim"]), moe_intermediate_size=rng.choice([6, 10, 16]),
                norm_topk_prob=rng.random() < 0.5, decoder_sparse_step=rng.choice([1, 1, 2]),
                mlp_only_layers=[l for l in range(keys["num_hidden_layers"]) if rng.random() < 0.2],
                use_sliding_window=rng.random() < 0.5, sliding_window=rng.choice([None, 3, 7]))
    return keys


def olmoe(rng):
    keys = without_head_dim(common(rng))
    keys["num_experts"] = mixture(rng, keys, keys["hidden_size"] // keys["num_attention_heads"])
    keys.update(norm_topk_prob=rng.random() < 0.5, clip_qkv=rng.choice([None, 0.4, 2.0]))
    return keys


def gpt_oss(rng):
    keys = windowed(rng, common(rng))
    keys["num_local_experts"] = mixture(rng, keys, keys["head_dim"])
    keys.update(swiglu_alpha=rng.choice([1.0, 1.702]), swiglu_limit=rng.choice([0.8, 7.0]))
    if rng.random() < 0.2:
        del keys["rope_parameters"]
    return keys


FAMILIES = {f.__name__: f for f in (gemma2, gemma3_text, gemma3, olmo2, olmo3, smollm3, phi3, ministral, nanochat, granite,
                                    dory, hrm_text, qwen3_moe, olmoe, gpt_oss)}


def read_logits(path):
    import torch
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    entry = json.loads(data[8:8 + length])["logits"]
    begin, end = entry["data_offsets"]
    return torch.frombuffer(bytearray(data[8 + length + begin:8 + length + end]), dtype=torch.float32).view(entry["shape"])


def draw_weights(model, generator):
    import torch
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            noise = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() > 1:
                tensor.copy_(noise * (1.5 / tensor.shape[-1] ** 0.5))
            elif "norm" in name or "suv" in name:
                tensor.copy_(noise * 0.3 + (0.0 if "Gemma" in type(model).__name__ else 1.0))
            elif any(part in name for part in ("sqk", "s_gate", "lambda", "logit_scale")):
                tensor.copy_(tensor * (1 + 0.3 * noise))
            else:
                tensor.copy_(noise * 0.3)


def compare(program, family, rng, folder):
    """The difference of one drawn model, or None where rounding alone moves it."""
    import torch
    import transformers
    keys = FAMILIES[family](rng)
    config = transformers.AutoConfig.for_model(family, **keys)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"  # grouped products need sizes that are multiples of 16 bytes
    if family == "gemma3":
        model = transformers.Gemma3ForConditionalGeneration(config)
    else:
        model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model = model.float().eval()
    generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
    draw_weights(model, generator)
    length = rng.choice([1, 5, 14, 30])
    ids = torch.randint(3, VOCABULARY, (2, length), generator=generator)
    with torch.no_grad():
        theirs = model(input_ids=ids, use_cache=False).logits.float()
        for tensor in model.parameters():
            tensor.copy_(torch.nextafter(tensor, tensor + torch.randn(tensor.shape, generator=generator)))
        nudged = model(input_ids=ids, use_cache=False).logits.float()
    unit = max(1.0, theirs.abs().max().item())
    if not torch.isfinite(theirs).all() or (nudged - theirs).abs().max().item() / unit > 1e-5:
        return None, keys
    model.save_pretrained(folder)
    with torch.no_grad():
        theirs = nudged
    (folder / "ids.json").write_text(json.dumps(ids.tolist()))
    (folder / "result").mkdir(exist_ok=True)
    out = folder / "result" / "out.safetensors"
    done = subprocess.run([program, "logits", str(folder), "--ids", str(folder / "ids.json"), "-o", str(out)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr.strip(), keys
    return (read_logits(out) - theirs).abs().max().item() / unit, keys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("family", nargs="*", default=[])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    arguments = parser.parse_args()
    try:
        import transformers
    except ImportError:
        print("transformers is not installed")
        return 77
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    failed = False
    for family in arguments.family or FAMILIES:
        rng = random.Random(f"{family} {arguments.seed}")
        worst, at, drawn, redrawn = 0.0, None, 0, 0
        while drawn < arguments.count and redrawn < 4 * arguments.count:
            with tempfile.TemporaryDirectory() as name:
                difference, keys = compare(arguments.program, family, rng, pathlib.Path(name))
            if difference is None:
                redrawn += 1
                continue
            drawn += 1
            if isinstance(difference, str):
                failed = True
                print(f"{family}: refused: {difference}\n  {json.dumps(keys)}", flush=True)
            elif difference > worst:
                worst, at = difference, keys
        failed = failed or worst > arguments.tolerance
        print(f"{family:12} {drawn} models, worst difference {worst:.2e}, {redrawn} drawn again", flush=True)
        if worst > arguments.tolerance:
            print(f"  {json.dumps(at)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
