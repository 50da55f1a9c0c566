# SPDX-License-Identifier: GPL-3.0-or-later
"""A plain transformers model, layer by layer: where in the stack is the next word known?

    python layer_by_layer.py CHECKPOINT TEXT.txt [-o FOLDER]

CHECKPOINT is a folder, or a name on the hub. Every block is read out by the model's own norm and head (the logit lens), so
that the trace can be asked what any rule of early exit would have done: ponderscope policy.
"""

import argparse
from pathlib import Path

import numpy as np
import transformers

import ponderscope as ps


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("checkpoint")
    arguments.add_argument("text", type=Path)
    arguments.add_argument("-o", "--output", type=Path, default=Path("."))
    wanted = arguments.parse_args()
    model = transformers.AutoModelForCausalLM.from_pretrained(wanted.checkpoint, dtype="float32")
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(wanted.checkpoint)
    wanted.output.mkdir(parents=True, exist_ok=True)
    path = wanted.output / "layers.ponder"
    texts = {wanted.text.name: wanted.text.read_text(encoding="utf-8")}
    run = ps.record(model, tokenizer, texts, path, layers=True, overwrite=True)

    nll, argmax = run.signal("nll"), run.signal("argmax")
    for layer, loss in enumerate(np.nanmean(nll, axis=0)):
        agrees = (argmax[:, layer] == argmax[:, -1]).mean()
        print(f"layer {layer:2}  NLL {loss:.3f}  says already what the last one says at {100 * agrees:.0f} % of the tokens")
    settled = (argmax == argmax[:, -1:])[:, ::-1].cumprod(axis=1).sum(axis=1)
    print(f"the answer stands after layer {nll.shape[1] - settled.mean():.2f} on average")
    ps.open(path).page(path.with_suffix(".html"), title=f"{run.name}, layer by layer")
    print(f"{path} and {path.with_suffix('.html')}")


if __name__ == "__main__":
    main()
