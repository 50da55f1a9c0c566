# SPDX-License-Identifier: GPL-3.0-or-later
"""Distributions over the vocabulary from hidden states, some rows at a time: the logits of a whole text never exist at once."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import torch
from numpy.typing import NDArray

from .flops import Cost, CountedModel, UnknownFlops, count_products

TILE_BYTES = 64 << 20
"""Bytes of fp32 logits that exist at once."""
ROWS_BYTES = 2 << 20
"""Bytes of these logits that are processed together."""
PROBED_LOGIT = 100.0
"""Larger than every soft-cap, and within fp16."""


@dataclass
class Distributions:
    """Recorded values of the read-outs of some tokens at every step: tensors [tokens, steps, ...] on the CPU."""

    signals: dict[str, torch.Tensor] = field(default_factory=dict)
    output: dict[str, torch.Tensor] = field(default_factory=dict)
    """nll, entropy, max_probability and rank of each token's last step, [tokens]."""


def read_out(
    states: Sequence[torch.Tensor],
    targets: torch.Tensor,
    logits_of: Callable[[torch.Tensor, int], torch.Tensor],
    vocab_size: int,
    candidates: int,
    differences_of: Sequence[torch.Tensor] | None,
    last_steps: torch.Tensor | None = None,
) -> Distributions:
    """Reads out the states [n, d] of K + 1 steps.

    ``targets``: int64 [n], -1: no target. ``logits_of(state, step)``: float [n, V]. ``differences_of``: states whose changes
    from step to step are recorded. If there is only one step, signals that compare steps are left out.
    ``last_steps``: int64 [n], the step whose read-out is the output; None: the last step.
    """
    steps, n = len(states), targets.shape[0]
    count = min(candidates, vocab_size)
    result = Distributions()
    names = ["nll", "entropy", "max_probability", "margin", "rank", "argmax", "candidate_ids", "candidate_probabilities"]
    if steps > 1:
        names += ["kl_previous_current", "kl_current_previous"]
    device = targets.device
    for name in names:
        shape = (n, steps, count) if name.startswith("candidate") else (n, steps)
        whole = name in ("rank", "argmax", "candidate_ids")
        result.signals[name] = torch.zeros(shape, dtype=torch.int32 if whole else torch.float32, device=device)
    rows = max(1, TILE_BYTES // (4 * max(1, vocab_size)))
    for begin in range(0, n, rows):
        tile = slice(begin, min(begin + rows, n))
        _read_tile(states, targets[tile], logits_of, tile, count, result.signals)
    if steps > 1 and differences_of is not None:
        result.signals |= _movements(differences_of)
    if steps > 1:
        result.signals |= _answers(result.signals["argmax"], last_steps)
    index = torch.full((n, 1), steps - 1, device=device) if last_steps is None else last_steps.to(device).view(n, 1)
    for name in ("nll", "entropy", "max_probability", "rank"):
        result.output[name] = result.signals[name].gather(1, index).view(n).cpu()
    result.signals = {name: values.cpu() for name, values in result.signals.items()}
    return result


def read_out_logits(logits: Any, ids: Any, states: Any, steps: Any, candidates: int) -> dict[str, Any]:
    """See ``ponderscope.read_out``."""
    as_tensor = lambda values: torch.as_tensor(values).detach()  # noqa: E731
    logits = as_tensor(logits)
    logits = logits[:, None] if logits.dim() == 2 else logits
    if logits.dim() != 3 or not logits.is_floating_point():
        raise ValueError(f"logits: expected numbers [tokens, steps, vocabulary], found {logits.dtype} {list(logits.shape)}.")
    n, count, vocabulary = logits.shape
    tokens = as_tensor(ids)
    if tokens.shape != (n,) or tokens.is_floating_point() or (n and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocabulary):
        raise ValueError(f"ids: expected {n} whole numbers below the vocabulary of {vocabulary}, one a token, found {list(tokens.shape)}.")
    if states is not None:
        states = as_tensor(states)
        if states.dim() != 3 or states.shape[:2] != (n, count):
            raise ValueError(f"states: expected [{n}, {count}, width], found {list(states.shape)}.")
    last = as_tensor(np.full(n, count - 1) if steps is None else steps).long()
    if last.shape != (n,) or (n and not 0 <= int(last.min()) <= int(last.max()) < count):
        raise ValueError(f"steps: expected {n} whole numbers from 0 to {count - 1}, the last step that ran at each token.")
    targets = torch.cat([tokens[1:].long(), torch.tensor([-1], device=tokens.device)]).to(logits.device)
    with torch.inference_mode():
        read = read_out(
            list(logits.unbind(1)), targets, lambda state, _: state, vocabulary, candidates,
            None if states is None else list(states.to(logits.device).unbind(1)), last,
        )  # fmt: skip
    rank = torch.where(targets.cpu() < 0, 0, read.output["rank"])
    return {
        **{name: values.numpy() for name, values in read.output.items()}, "rank": rank.numpy(), "steps": last.cpu().numpy(),
        "signals": {name: values.numpy() for name, values in read.signals.items()},
    }  # fmt: skip


def _movements(states: Sequence[torch.Tensor]) -> dict[str, torch.Tensor]:
    """Signals [n, steps] that compare the states [n, d] of the steps, as in core/ponder/recording/recorder.cpp."""
    names = ["cosine", "latent_difference", "state_norm", "update_cosine"] + (["acceleration"] if len(states) > 2 else [])
    values = {name: states[0].new_zeros(states[0].shape[0], len(states), dtype=torch.float32) for name in names}
    before: torch.Tensor | None = None
    last: torch.Tensor | None = None
    for k, state in enumerate(states):
        now = state.float()
        norm = now.norm(dim=1)
        values["state_norm"][:, k] = norm
        if before is not None:
            update = now - before
            length = update.norm(dim=1)
            values["cosine"][:, k] = ((now * before).sum(1) / (norm * before.norm(dim=1))).nan_to_num()
            values["latent_difference"][:, k] = (length / norm).nan_to_num(0.0, 0.0)  # the state is zero, as for a padding token
            if last is not None:
                values["update_cosine"][:, k] = ((update * last).sum(1) / (length * last.norm(dim=1))).nan_to_num()
                values["acceleration"][:, k] = ((update - last).norm(dim=1) / length).nan_to_num(0.0, torch.inf)
            last = update
        before = now
    return values


def _answers(argmax: torch.Tensor, last_steps: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """The first step from which on the most likely token [n, steps] stays that of the last step, and how often the token changes."""
    n, steps = argmax.shape
    end = torch.full((n, 1), steps - 1, device=argmax.device) if last_steps is None else last_steps.to(argmax.device).view(n, 1)
    ran = torch.arange(steps, device=argmax.device)[None] <= end
    same = (argmax == argmax.gather(1, end)) | ~ran
    stays = same.flip(1).long().cumprod(1).sum(1)
    flips = ((argmax[:, 1:] != argmax[:, :-1]) & ran[:, 1:]).sum(1)
    return {"prediction_depth": (steps - stays).int(), "answer_flips": flips.int()}


def _read_tile(
    states: Sequence[torch.Tensor],
    targets: torch.Tensor,
    logits_of: Callable[[torch.Tensor, int], torch.Tensor],
    tile: slice,
    count: int,
    signals: dict[str, torch.Tensor],
) -> None:
    """Computes the logits of a tile at once, but its signals from a few rows at a time, which fit a processor's cache."""
    before: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    for k, state in enumerate(states):
        logits = logits_of(state[tile], k).float()
        rows = len(logits) if logits.is_cuda else max(1, ROWS_BYTES // (4 * logits.shape[1]))
        for begin in range(0, len(logits), rows):
            part = slice(begin, begin + rows)
            place = slice(tile.start + begin, min(tile.start + begin + rows, tile.stop))
            read, distribution = _read_rows(logits[part], targets[part], count, before.get(begin))
            for name, values in read.items():
                if name in signals:
                    signals[name][place, k] = values
            if "kl_previous_current" in signals:
                before[begin] = distribution


def _read_rows(
    logits: torch.Tensor, targets: torch.Tensor, count: int, before: tuple[torch.Tensor, torch.Tensor] | None
) -> tuple[dict[str, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
    """Signals from the logits [n, V] of some tokens, and (ln p, p)."""
    wanted = targets >= 0
    place = targets.clamp(min=0).view(-1, 1)
    at_target = logits.gather(1, place)
    top, ids = logits.topk(min(max(count, 2), logits.shape[1]), dim=1)
    rank = 1 + (top > at_target).sum(1, dtype=torch.int32)
    below = (at_target < top[:, -1:]).view(-1)  # logits outside the top may be larger, too
    if bool(below.any()):
        rank[below] = 1 + (logits[below] > at_target[below]).sum(1, dtype=torch.int32)
    argmax = ids[:, 0].to(torch.int32)
    if logits.shape[1] > 1:
        tied = top[:, 0] == top[:, 1]
        if bool(tied.any()):  # of equal logits, the lowest id
            argmax[tied] = logits[tied].argmax(1).to(torch.int32)
    log_p = torch.log_softmax(logits, 1)
    p = log_p.exp()
    entropy = -torch.linalg.vecdot(p, log_p)
    if bool(entropy.isnan().any()):  # logits of minus infinity contribute 0
        entropy = -(p * log_p.clamp(min=-1e30)).sum(1)
    top_p = log_p.gather(1, ids).exp()
    signals = {
        "nll": torch.where(wanted, -log_p.gather(1, place).view(-1), torch.nan),
        "rank": torch.where(wanted, rank, 0),
        "entropy": entropy,
        "max_probability": top_p[:, 0],
        "margin": top_p[:, 0] - (top_p[:, 1] if top_p.shape[1] > 1 else 0),
        "argmax": argmax,
        "candidate_ids": ids[:, :count].to(torch.int32),
        "candidate_probabilities": top_p[:, :count],
    }
    if before is not None:
        log_q, q = before
        ratio = (log_p - log_q).nan_to_num(nan=0.0)
        signals["kl_previous_current"] = -(q * ratio).sum(1)
        signals["kl_current_previous"] = (p * ratio).sum(1)
    return signals, (log_p, p)


class Anatomy:
    """The parts of a causal model of transformers, found while it computes ``sample`` [1, T].

    ``base``: the model without its head. ``head``: computes logits from states. ``norm``: the module whose output is the
    base's last states, or None. ``plain``: the logits are ``head(base(ids))``, with a soft-cap or factor if the config names
    one, so they can be computed some rows at a time.
    """

    def __init__(self, model: Any, sample: torch.Tensor) -> None:
        self.model = model
        base = getattr(model, "base_model", None)
        head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
        if base is None or base is model or head is None:
            raise ValueError(
                f"{type(model).__name__} has no base model with an output head that transformers knows "
                "(base_model, get_output_embeddings); load it as a causal model."
            )
        self.base, self.head = base, head
        seen: list[tuple[Any, torch.Tensor]] = []
        self.calls: dict[str, int] = {}
        with torch.inference_mode():
            whole = model(input_ids=sample, use_cache=False)
            states = self._last_states(base, sample, seen)
        self.norm: Any = None
        for module, output in seen:
            if not list(module.children()) and output.shape == states.shape and torch.equal(output, states):
                self.norm = module
                break
        if bool(whole.logits.isnan().any()):
            raise ValueError(f"the logits of {type(model).__name__} are NaN; its weights are damaged, or {model.dtype} is too narrow for them.")
        self._check_causal(sample, whole.logits)
        self.vocab_size = int(whole.logits.shape[-1])
        self.width = int(states.shape[-1])
        self._behind_head = self._find_behind_head(sample, states, whole.logits)
        self.plain = self._behind_head is not None
        self.flops: CountedModel | None = None
        self.doubt = ""
        try:
            self.flops = count_products(lambda ids: [self.base_states(ids)], base, sample)
            self.key_flops = self._key_flops(self.flops)
        except UnknownFlops as error:
            self.flops, self.doubt = None, f"FLOPs are not known: {error}."

    def read(self, states: torch.Tensor) -> torch.Tensor:
        """Logits of states in the form that the head takes. The model must be ``plain``."""
        assert self._behind_head is not None
        return self._behind_head(self.head(states))

    def base_states(self, ids: torch.Tensor) -> torch.Tensor:
        states = states_in(self.base(input_ids=ids, use_cache=False))
        assert states is not None
        return states

    def _find_behind_head(
        self, sample: torch.Tensor, states: torch.Tensor, logits: torch.Tensor
    ) -> Callable[[torch.Tensor], torch.Tensor] | None:
        """The function that the model applies to the head's output; None: a function that the config does not name.

        The head's output is made large, because a soft-cap hardly changes the logits of a small or an untrained model.
        """
        heard: list[tuple[torch.Tensor, torch.Tensor]] = []

        def enlarge(module: Any, inputs: Any, output: torch.Tensor) -> torch.Tensor:
            large = output * (PROBED_LOGIT / float(output.abs().max().clamp(min=1e-6)))
            heard.append((inputs[0], large))
            return large

        handle = self.head.register_forward_hook(enlarge)
        try:
            with torch.inference_mode():
                probed = self.model(input_ids=sample, use_cache=False).logits.float()
        finally:
            handle.remove()
        near = 1e-3 if logits.dtype == torch.float32 else 2e-2
        close = lambda a, b: a.shape == b.shape and torch.allclose(  # noqa: E731
            a.float(), b.float(), rtol=near, atol=near * float(b.abs().max())
        )
        if len(heard) != 1:  # the model multiplies by the head's matrix without calling the head
            with torch.inference_mode():
                return (lambda x: x) if not self._changes_logits() and close(self.head(states), logits) else None
        if not close(heard[0][0], states):
            return None
        return next((change for change in [lambda x: x, *self._changes_logits()] if close(change(heard[0][1]), probed)), None)

    def _changes_logits(self) -> list[Callable[[torch.Tensor], torch.Tensor]]:
        """The functions that the config may apply to the head's output."""
        value = lambda name: getattr(self.config, name, None)  # noqa: E731
        caps = [cap for name in ("final_logit_softcapping", "logits_soft_cap", "output_logit_soft_cap") if (cap := value(name))]
        factors = [factor for name in ("logit_scale", "lm_head_multiplier") if (factor := value(name))]
        factors += [1 / divisor for name in ("logits_scaling",) if (divisor := value(name))]
        cap_by = lambda cap: lambda x: torch.tanh(x / cap) * cap  # noqa: E731
        multiply_by = lambda factor: lambda x: x * factor  # noqa: E731
        return [cap_by(cap) for cap in caps] + [multiply_by(factor) for factor in factors if factor != 1]

    def _check_causal(self, sample: torch.Tensor, logits: torch.Tensor) -> None:
        """ValueError if the logits at a token depend on later tokens, as in an encoder, or in a decoder after an encoder."""
        half = sample.shape[1] // 2
        other = torch.cat([sample[:, :half], (sample[:, half:] + 1) % logits.shape[-1]], 1)
        with torch.inference_mode():
            changed = self.model(input_ids=other, use_cache=False).logits[:, :half].float()
        before = logits[:, :half].float()
        narrow = 1e-4 if logits.dtype == torch.float32 else 2e-2
        if half and not torch.allclose(before, changed, rtol=narrow, atol=narrow * float(before.abs().max())):
            raise ValueError(
                f"the logits of {type(self.model).__name__} at a token depend on later tokens, so its NLL of the next token "
                "means nothing; load a causal language model."
            )

    def _last_states(self, base: Any, sample: torch.Tensor, seen: list[tuple[Any, torch.Tensor]]) -> torch.Tensor:
        """Runs the base alone. Adds the states of its modules to ``seen`` and counts the modules' calls."""
        handles = []

        def count(name: str) -> Callable[..., None]:
            def hook(module: Any, inputs: Any, output: Any) -> None:
                self.calls[name] = self.calls.get(name, 0) + 1
                states = states_in(output)
                if states is not None and module is not base:
                    seen.append((module, states))

            return hook

        for name, module in base.named_modules():
            handles.append(module.register_forward_hook(count(name)))
        try:
            output = base(input_ids=sample, use_cache=False)
        finally:
            for handle in handles:
                handle.remove()
        states = states_in(output)
        if states is None:
            raise ValueError(f"{type(base).__name__} gives no hidden states; load a model that gives hidden states.")
        return states

    def block_list(self, path: str | None = None) -> tuple[str, list[Any]]:
        """Path and blocks of the stack: the list of modules at ``path``, or the longest list whose modules ran once each."""
        if path is not None:
            return path, list(find_module(self.model, path).children())
        best: tuple[str, list[Any]] = ("", [])
        for name, module in self.base.named_modules():
            if isinstance(module, torch.nn.ModuleList) and len(module) > len(best[1]):
                if all(self.calls.get(f"{name}.{i}") == 1 for i in range(len(module))):
                    best = (name, list(module))
        if not best[1]:
            raise ValueError(f"{type(self.model).__name__} has no list of blocks that run once each; name the blocks: layers=\"path.of.blocks\".")
        return best

    @functools.cached_property
    def config(self) -> Any:
        return getattr(self.model.config, "get_text_config", lambda: self.model.config)()

    def head_width(self) -> int:
        """Width of an attention head; 0: the config does not say."""
        heads = getattr(self.config, "num_attention_heads", None)
        return (getattr(self.config, "head_dim", None) or self.config.hidden_size // heads) if heads else 0

    def _key_flops(self, counted: CountedModel) -> int:
        """FLOPs of a visible key in one layer: 4 times the head's width for each query head, if the layers compute this. Otherwise
        0: every token then sees all keys, at the counted cost. UnknownFlops: the attention is not as in the config."""
        said = 4 * self.head_width() * self.config.num_attention_heads if self.head_width() else 0
        if said and (not counted.keys_are_known or said * len(self.windows) == counted.whole.key):
            return said
        if not counted.keys_are_known or (counted.whole.key and any(self.windows)):
            raise UnknownFlops("the model's attention differs from its config")
        return 0

    @functools.cached_property
    def windows(self) -> list[int]:
        """For each attention, the largest number of keys that a query sees; 0: all keys."""
        # Of nested attention modules (attn.attention in GPT-Neo) only the outer module counts.
        places = [[part in ATTENTION_NAMES for part in name.split(".")] for name in self.calls]
        calls = sum(n for n, place in zip(self.calls.values(), places) if place[-1] and sum(place) == 1)
        width = getattr(self.config, "sliding_window", None) or 0
        kinds = getattr(self.config, "layer_types", None)
        if kinds and len(kinds) == calls:
            return [width if kind == "sliding_attention" else 0 for kind in kinds]
        return [width if getattr(self.config, "use_sliding_window", True) else 0] * calls

    def token_flops(self, visible: NDArray[np.int64], cost: Cost | None = None) -> NDArray[np.int64]:
        """FLOPs of tokens that see ``visible`` keys, with one read-out. ``cost``: of a part of the forward; None: of the whole."""
        read_out = 2 * self.vocab_size * self.width
        if cost is None:
            assert self.flops is not None
            if self.key_flops:
                seen = sum((np.minimum(visible, w) if w else visible for w in self.windows), np.zeros_like(visible))
                return self.flops.whole.token + read_out + self.key_flops * seen
            cost = self.flops.whole
        return cost.token + read_out + cost.key * visible

    def flops_model(self, blocks: str | None = None) -> str:
        """JSON of core/policy/flops_model.h. ``blocks``: the path of the list of blocks, if the blocks are the steps. Empty: the
        cost of a step is unknown, so FLOPs of other choices of steps are unknown, too."""
        if self.flops is None or not self.key_flops or not self.plain:
            return ""
        steps, exited = [self.flops.whole.token], []
        if blocks is not None:
            count = sum(re.fullmatch(re.escape(blocks) + r"\.\d+", name) is not None for name in self.calls)
            if count != len(self.windows):
                return ""
            products = self.flops.modules.items()
            steps = [sum(c.token for name, c in products if f"{name}.".startswith(f"{blocks}.{i}.")) for i in range(count)]
            if sum(steps) != self.flops.whole.token:
                return ""  # there are products before or after the blocks
            heads = getattr(self.config, "num_key_value_heads", None) or self.config.num_attention_heads
            exited = [4 * heads * self.head_width() * self.config.hidden_size] * count  # keys and values of a token that has exited
        return json.dumps(
            {
                "visibility": "per_step", "steps": steps, "key": self.key_flops, "windows": self.windows, "input": 0,
                "decisions": [], "read_out": 2 * self.vocab_size * self.width, "input_reads_out": False, "exited": exited,
            }
        )  # fmt: skip


ATTENTION_NAMES = {"attention", "attn", "self_attn", "self_attention"}


def states_in(output: Any) -> torch.Tensor | None:
    """The states in a module's output: the tensor itself, ``last_hidden_state``, or the first of a tuple; None: no states."""
    if isinstance(output, torch.Tensor):
        return output if output.dim() >= 2 and output.is_floating_point() else None
    last = getattr(output, "last_hidden_state", None)
    if last is not None:
        return last
    if isinstance(output, (tuple, list)) and output:
        return states_in(output[0])
    return None


def find_module(model: Any, path: str) -> Any:
    """The module at a path. ValueError: there is none; names the modules with the most similar names."""
    import difflib

    names = [name for name, _ in model.named_modules() if name]
    if path in names:
        return model.get_submodule(path)
    ends = [name for name in names if name.rsplit(".", 1)[-1] == path.rsplit(".", 1)[-1]]
    near = (ends or difflib.get_close_matches(path, names, n=5, cutoff=0.3))[:5]
    raise ValueError(
        f'{type(model).__name__} has no module "{path}"' + (f"; the nearest are {', '.join(near)}." if near else ".")
    )
