#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns a PyTorch pickle of tensors into a safetensors file of the same names, beside it.

    python3 resources/convert_pickle.py CHECKPOINT/iter_decider.bin

Only tensors are loaded (torch.load with weights_only=True, from torch 2.6 on): a file that holds anything else
is refused. Needs the packages torch and safetensors; Ponderscope itself never opens a pickle.
"""

import argparse
import pathlib
import sys


def tensors_of(content, path):
    """The mapping of names to tensors, of a file that holds one or wraps it in "state_dict" or "model"."""
    import torch

    for key in ("state_dict", "model", "model_state_dict"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict):
        sys.exit(f"{path}: expected names and tensors, found {type(content).__name__}.")
    others = [name for name, value in content.items() if not isinstance(value, torch.Tensor)]
    if others:
        print(f"left out, since it is no tensor: {', '.join(map(str, others))}", file=sys.stderr)
    # Tensors that share memory cannot be stored so.
    return {str(name): value.detach().clone().contiguous()
            for name, value in content.items() if isinstance(value, torch.Tensor)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pickle", type=pathlib.Path, help="*.bin, *.pt or *.pth")
    parser.add_argument("-o", "--output", type=pathlib.Path, help="default: the same name, .safetensors")
    arguments = parser.parse_args()
    try:
        import torch
        from safetensors.torch import save_file
    except ImportError as missing:
        sys.exit(f"{missing.name} is not installed; use: python3 -m pip install torch safetensors")
    if tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2]) < (2, 6):
        sys.exit(f"torch {torch.__version__} does not keep a file from running code; use 2.6 or newer.")
    if not arguments.pickle.is_file():
        sys.exit(f"{arguments.pickle}: expected a file, found none.")
    content = torch.load(arguments.pickle, map_location="cpu", weights_only=True)
    output = arguments.output or arguments.pickle.with_suffix(".safetensors")
    if output.exists():
        sys.exit(f"{output} is there already; name another with -o.")
    tensors = tensors_of(content, arguments.pickle)
    save_file(tensors, output, metadata={"format": "pt"})
    print(f"{output}  {len(tensors)} tensors")


if __name__ == "__main__":
    main()
