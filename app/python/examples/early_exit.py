# SPDX-License-Identifier: GPL-3.0-or-later
"""A small GPT with an early-exit gate, written, trained and recorded here: nothing of it is known to ponderscope.

    python early_exit.py [TEXT.txt] [-o FOLDER] [--steps 150]

It learns a text byte by byte (this file, if none is given). After every block a gate says which share of a token stops
there; they learn from the loss that is expected under them, and a price a layer. Two runs go into one trace, the gate's exits and
all layers, and a page shows them side by side.
"""

import argparse
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

import ponderscope as ps

CONTEXT, WIDTH, LAYERS, PRICE = 96, 64, 4, 0.04
RULE = ps.Rule("stopped", stops="above", theta=0.5)  # a byte exits where half of it has stopped


class EarlyExitGpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(256, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        layer = lambda: nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, 0.0, F.gelu, batch_first=True, norm_first=True)  # noqa: E731
        self.blocks = nn.ModuleList(layer() for _ in range(LAYERS))
        self.norm, self.head, self.gate = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256), nn.Linear(WIDTH, 1)

    def forward(self, ids):
        """Logits [layer, batch, token, 256] and the share that stops after each layer [layer, batch, token]."""
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        x = self.embed(ids) + self.position.weight[: ids.shape[1]]
        logits, gates = [], []
        for block in self.blocks:
            x = block(x, src_mask=mask, is_causal=True)
            logits.append(self.head(self.norm(x)))
            gates.append(torch.sigmoid(self.gate(x)).squeeze(-1))
        gates[-1] = torch.ones_like(gates[-1])  # whoever comes so far stops here
        gates = torch.stack(gates)
        goes_on = torch.cumprod(1 - gates, 0)
        return torch.stack(logits), gates * torch.cat([torch.ones_like(gates[:1]), goes_on[:-1]])


def train(model, text, steps):
    optimiser = torch.optim.AdamW(model.parameters(), 2e-3)
    for step in range(steps):
        starts = torch.randint(len(text) - CONTEXT - 1, (8,))
        batch = torch.stack([text[s : s + CONTEXT + 1] for s in starts])
        logits, stops = model(batch[:, :-1])
        losses = F.cross_entropy(logits.flatten(0, 2), batch[:, 1:].repeat(LAYERS, 1).flatten(), reduction="none")
        depth = torch.arange(LAYERS).view(-1, 1, 1)
        losses = losses.view(stops.shape)
        # The last layer learns to answer, the others a little of it; the gates learn where one more is worth its price.
        loss = (losses * (depth == LAYERS - 1)).sum(0).mean() + 0.1 * losses.mean() + (stops * (losses.detach() + PRICE * depth)).sum(0).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step % 50 == 0:
            print(f"step {step:4}  loss {loss.item():.3f}  mean exit {(stops * depth).sum(0).mean().item():.2f}")


def numbers(model, ids, policy):
    """What the trace shall hold of one window."""
    with torch.inference_mode():
        logits, stops = (t[:, 0].transpose(0, 1) for t in model(ids[None]))  # [token, layer, ...]
    exits = (stops.cumsum(1) >= RULE.theta).int().argmax(1)
    read = ps.read_out(logits, ids, steps=exits if policy == "learned" else torch.full_like(exits, LAYERS - 1), candidates=5)
    read["signals"][RULE.signal] = stops.cumsum(1).numpy()
    return read


def record(model, text, path):
    """One window a sequence, so that every byte was seen with all that stands before it there."""
    a_layer = 2 * sum(p.numel() for p in model.blocks[0].parameters() if p.dim() == 2)
    known = ps.read_out(torch.zeros(1, LAYERS, 256), [0])["signals"]
    kinds = {**{name: ps.KNOWN_SIGNALS[name] for name in known},
             RULE.signal: ps.Signal(("token", "step"), "probability", "Share that has stopped", "Share of the token that the gates have stopped up to each layer.")}  # fmt: skip
    about = {"method": "early exit", "max_steps": LAYERS - 1, "layers": LAYERS, "step_unit": "layer",
             "tokens": [bytes([b]) for b in range(256)], "signals": kinds, "rule": RULE}  # fmt: skip
    with ps.Writer(path, overwrite=True) as writer:
        for name, policy in (("gate", "learned"), ("all layers", "full")):
            with writer.run(name, policy=policy, notices=["Exits were chosen after a whole forward: later bytes saw all layers of earlier ones."], **about) as run:
                for begin in range(0, len(text), CONTEXT):
                    ids = text[begin : begin + CONTEXT]
                    read = numbers(model, ids, policy)
                    run.sequence(ids.numpy(), title=f"bytes from {begin}", flops=a_layer * (read["steps"] + 1), **read)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("text", nargs="?", default=__file__)
    arguments.add_argument("-o", "--output", type=Path, default=Path("."))
    arguments.add_argument("--steps", type=int, default=150)
    wanted = arguments.parse_args()
    torch.manual_seed(0)
    text = torch.tensor(list(Path(wanted.text).read_bytes()))
    model = EarlyExitGpt()
    train(model, text, wanted.steps)
    wanted.output.mkdir(parents=True, exist_ok=True)
    path = wanted.output / "early_exit.ponder"
    record(model.eval(), text[: 32 * CONTEXT], path)
    trace = ps.open(path)
    for run in trace:
        summary = run.summary()
        print(f"{run.name:12} NLL {summary['mean_nll']:.3f}  mean exit {summary['mean_steps']:.2f} of {LAYERS - 1}")
    trace.page(path.with_suffix(".html"), a="all layers", b="gate", title="Exits of a small gate")
    print(f"{path} and {path.with_suffix('.html')}\nThe gate against other rules, from the same record: ponderscope referee '{path}#all layers'")


if __name__ == "__main__":
    main()
