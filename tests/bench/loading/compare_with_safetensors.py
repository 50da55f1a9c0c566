# SPDX-License-Identifier: GPL-3.0-or-later
"""Loading a checkpoint of about 1 GB: this program against the Python `safetensors` library.

    python3 tests/bench/loading/compare_with_safetensors.py build/release/bench/loading/loading_bench

Makes random checkpoints in F32, BF16, F16 and F64 in a temporary folder (--folder to choose it), and loads each
in turn with both, several times, with the file in the page cache. "mapped" is the library's load_file alone,
which maps the file and reads nothing; "read" also brings every tensor into memory of its own in the run's
precision, which is what a run needs and what we do. Prints the ratio of the fastest times, and our peak memory
over the weights."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

PYTHON_SIDE = """
import json, sys, time
import torch
from safetensors.torch import load_file
wanted = getattr(torch, sys.argv[2])
begin = time.perf_counter()
tensors = load_file(sys.argv[1])
mapped = time.perf_counter() - begin
own = {name: tensor.to(wanted, copy=True) for name, tensor in tensors.items()}
print(json.dumps({"mapped": mapped, "read": time.perf_counter() - begin}))
"""


def make(folder, dtype, layers):
    import torch
    from safetensors.torch import save_file
    d, inner, vocabulary = 1024, 2816, 32000
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "vocab_size": vocabulary, "hidden_size": d, "num_hidden_layers": layers,
        "num_attention_heads": 16, "intermediate_size": inner, "max_position_embeddings": 2048}))
    generator = torch.Generator().manual_seed(1)
    shapes = {"model.embed_tokens.weight": (vocabulary, d), "lm_head.weight": (vocabulary, d), "model.norm.weight": (d,)}
    for l in range(layers):
        block = f"model.layers.{l}."
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            shapes[block + f"self_attn.{name}.weight"] = (d, d)
        shapes[block + "mlp.gate_proj.weight"] = shapes[block + "mlp.up_proj.weight"] = (inner, d)
        shapes[block + "mlp.down_proj.weight"] = (d, inner)
        shapes[block + "input_layernorm.weight"] = shapes[block + "post_attention_layernorm.weight"] = (d,)
    save_file({name: torch.randn(shape, generator=generator).to(dtype) for name, shape in shapes.items()},
              folder / "model.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16", "float16", "float64"])
    arguments = parser.parse_args()
    import torch
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        for stored in arguments.dtypes:
            size = torch.empty(0, dtype=getattr(torch, stored)).element_size()
            folder = pathlib.Path(temporary) / stored
            # 65.5 M elements of tables and 12.8 M a layer: about 1 GB in any type.
            make(folder, getattr(torch, stored), max(1, round((1e9 / size - 65.5e6) / 12.85e6)))
            runs = "bfloat16" if stored == "bfloat16" else "float16" if stored == "float16" else "float32"
            for precision in dict.fromkeys([runs, "float32"]):
                ours, mapped, read, over = [], [], [], 0.0
                for _ in range(arguments.rounds):
                    result = json.loads(subprocess.run([arguments.program, folder, precision], check=True,
                                                       capture_output=True, text=True).stdout)
                    ours.append(result["seconds"])
                    over = max(over, result["peak_over_weights"])
                    theirs = json.loads(subprocess.run([sys.executable, "-c", PYTHON_SIDE,
                                                        folder / "model.safetensors", precision], check=True,
                                                       capture_output=True, text=True).stdout)
                    mapped.append(theirs["mapped"])
                    read.append(theirs["read"])
                bytes_of_file = (folder / "model.safetensors").stat().st_size
                print(f"{stored:>8} -> {precision:8} {bytes_of_file / 1e9:.2f} GB  ours {min(ours):.3f} s  "
                      f"safetensors mapped {min(mapped):.3f} s, read {min(read):.3f} s  "
                      f"ours / read {min(ours) / min(read):.2f}  peak memory / weights {over:.3f}", flush=True)
            (folder / "model.safetensors").unlink()


if __name__ == "__main__":
    main()
