# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the case vanilla_phi: a small random Phi and what transformers computes on it, in the layout that
`ponder_golden_test` reads.

    python3 tests/golden/make_phi.py tests/golden/vanilla_phi        (made with transformers 5.23.0, torch 2.11.0)
"""
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers import PhiConfig, PhiForCausalLM

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
torch.manual_seed(20261121)
# Grouped keys, half of each head rotated, every odd size different from the others.
config = PhiConfig(vocab_size=71, hidden_size=32, intermediate_size=44, num_hidden_layers=3, num_attention_heads=4,
                   num_key_value_heads=2, max_position_embeddings=64, partial_rotary_factor=0.5, rope_theta=1000.0,
                   layer_norm_eps=1e-3, bos_token_id=1, eos_token_id=2, attn_implementation="eager")
model = PhiForCausalLM(config).float().eval()
with torch.no_grad():
    for name, tensor in model.named_parameters():
        if tensor.dim() == 2:
            tensor.normal_(0, 0.3 if "proj" in name else 0.2)
        elif name.endswith("layernorm.weight"):
            tensor.uniform_(0.5, 1.5)
        else:
            tensor.normal_(0, 0.3)
        tensor.copy_(tensor.half().float())  # the file holds F16: half the size, and exactly these numbers
    ids = torch.randint(0, config.vocab_size, (2, 24))
    logits = model(ids, use_cache=False).logits
    nll = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
    text = ids.clone()
    for _ in range(16):
        text = torch.cat([text, model(text, use_cache=False).logits[:, -1:].argmax(-1)], 1)
state = {name: tensor.half().contiguous() for name, tensor in model.state_dict().items()}
save_file(state, folder / "model.safetensors")
save_file({"input_ids": ids, "logits": logits.contiguous(), "nll": nll.view(2, -1), "generated": text[:, 24:].contiguous()},
          folder / "golden.safetensors")
config.save_pretrained(folder)
case = {"method": "vanilla", "depth_mixing": "none", "backbone": "phi", "arguments": [],
        "oracle": {"repository": "huggingface/transformers", "class": "PhiForCausalLM",
                   "transformers_version": transformers.__version__, "torch_version": torch.__version__},
        "settings": {"weight_seed": 20261121}, "tolerance": 1e-4}
(folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
print("logits std", logits.std().item())
