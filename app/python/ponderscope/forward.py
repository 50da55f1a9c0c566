# SPDX-License-Identifier: GPL-3.0-or-later
"""Forward passes of a causal model of transformers, and their read-outs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from .columns import KNOWN_SIGNALS, Signal
from .flops import Cost, UnknownFlops, count_products
from .readout import Anatomy, find_module, read_out, states_in
from .recording import StepCallback, Text, Window



@dataclass
class Results:
    """Values for the reported tokens of one window."""

    output: dict[str, NDArray[Any]]
    """nll, entropy, max_probability and rank."""
    signals: dict[str, NDArray[Any]]
    steps: NDArray[np.int64] | None


class Forward:
    """Computes windows and their read-outs."""

    def __init__(
        self,
        model: Any,
        layers: bool | str,
        steps: str | StepCallback | None,
        gates: Mapping[str, str],
        readout: Callable[[torch.Tensor], torch.Tensor] | None,
        candidates: int,
        context: int,
    ) -> None:
        self.model, self.candidates = model, candidates
        self.device = next(model.parameters()).device
        sample = torch.arange(min(8, context), device=self.device).view(1, -1) % _vocabulary(model)
        self.parts = Anatomy(model, sample)
        self.readout = readout or self.parts.read
        self.whole_logits = not self.parts.plain and readout is None
        self.callback = steps if callable(steps) else None
        self.step_modules: list[Any] = []
        self.normed = True
        """True: the head takes the states as they are. False: the final norm comes between states and head."""
        if self.whole_logits and (layers or steps is not None):
            raise ValueError(
                f"the logits of {type(model).__name__} are not the output of its head, even with the soft-cap or factor of its "
                "config, so the head cannot read out steps; give readout=function, from states to logits."
            )
        self.flops_model = self.parts.flops_model() if steps is None and not layers and readout is None else ""
        if layers:
            path, self.step_modules = self.parts.block_list(layers if isinstance(layers, str) else None)
            if readout is None:
                self.flops_model = self.parts.flops_model(path)
        elif isinstance(steps, str):
            self.step_modules = [find_module(model, steps)]
        self.notices = [self.parts.doubt] if self.parts.doubt else []
        self.step_costs: list[Cost] = []
        """Cost up to the states of each step, if a function gives the states. Empty: no function, or unknown."""
        if self.callback is not None:
            self._count_steps(sample)
        self.gates = {name: find_module(model, path) for name, path in gates.items()}
        with torch.inference_mode():
            states, last, heard = self._run(sample, None)
        self.max_steps = len(states) - 1
        if self.max_steps == 0 and (layers or steps is not None):
            what = "layers: the stack has one block" if layers else "steps: the module runs once in a forward pass"
            raise ValueError(f"{what}, so there are no steps; name a module that runs several times.")
        self._check_norm(states, sample)
        self.signals = self._signals(bool(layers), heard)

    def _check_norm(self, states: list[torch.Tensor], sample: torch.Tensor) -> None:
        """ValueError unless the model reads out the states of the last step, with the final norm or without."""
        if not self.step_modules:
            return
        with torch.inference_mode():
            output = self.parts.base_states(sample)
            close = lambda s: s.shape == output.shape and torch.allclose(s.float(), output.float(), rtol=1e-3, atol=1e-4)  # noqa: E731
            if close(states[-1]):
                return
            if self.parts.norm is not None and close(self.parts.norm(states[-1])):
                self.normed = False
                return
        raise ValueError(
            "steps: the head does not give the model's logits from the last step's states, with or without the final norm; "
            "give steps=function, which returns the states that the head takes."
        )

    def _signals(self, layers: bool, heard: dict[str, list[torch.Tensor]]) -> dict[str, Signal]:
        unit = "layer" if layers else "step"
        names = ["nll", "entropy", "max_probability", "margin", "rank", "argmax", "candidate_ids", "candidate_probabilities"]
        if self.max_steps > 0:
            names += ["kl_previous_current", "kl_current_previous", "cosine", "latent_difference", "state_norm", "update_cosine"]
            names += ["acceleration"] * (self.max_steps > 1) + ["prediction_depth", "answer_flips"]
        states = "residual stream after the block" if not self.normed else "state after the final norm"
        result = {}
        for name in names:
            known = KNOWN_SIGNALS[name]
            result[name] = Signal(
                known.axes, known.unit, known.title.replace("step", unit),
                known.description.replace("state after the final norm", states).replace("step", unit), known.dtype,
            )  # fmt: skip
        for name, outputs in heard.items():
            axes = ["token"]
            if len(outputs) > 1:
                axes.append("step" if len(outputs) in (self.max_steps, self.max_steps + 1) and self.max_steps else "call")
            if outputs[0].dim() == 3 and outputs[0].shape[-1] > 1:
                axes.append("column")
            module = next(path for path, m in self.model.named_modules() if m is self.gates[name])
            result[name] = Signal(tuple(axes), "", name.replace("_", " ").capitalize(), f"Output of {module} at each token.")
        return result

    def _count_steps(self, sample: torch.Tensor) -> None:
        callback = self.callback
        assert callback is not None

        def states_of(ids: torch.Tensor) -> list[torch.Tensor]:
            answer = callback(self.model, ids, None)
            return list(answer[0] if isinstance(answer, tuple) and isinstance(answer[0], (list, tuple)) else answer)

        try:
            self.step_costs = count_products(states_of, self.model, sample).steps
            self.notices = []  # the cost of the model's own forward is not needed
        except UnknownFlops as error:
            self.notices = [f"FLOPs are not known: {error}."]

    def check_ids(self, sequence: Text) -> None:
        wrong = np.flatnonzero((sequence.ids < 0) | (sequence.ids >= self.parts.vocab_size))
        if wrong.size:
            raise ValueError(
                f"{sequence.title}: expected token ids below the model's vocabulary of {self.parts.vocab_size}, found "
                f"{sequence.ids[wrong[0]]}; these ids belong to another tokenizer."
            )

    def flops(self, window: Window, steps: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """FLOPs of the matrix products for each reported token: the stack up to the token's last step, the head, and the keys
        that the token sees. None: unknown."""
        visible = np.arange(window.report_begin, window.report_end) - window.begin + 1
        if self.callback is None:
            return None if self.parts.flops is None else self.parts.token_flops(visible)
        if not self.step_costs:
            return None
        last = np.full(len(visible), self.max_steps) if steps is None else steps
        by_step = np.stack([self.parts.token_flops(visible, cost) for cost in self.step_costs])
        return by_step[last, np.arange(len(visible))]

    def compute(self, windows: Sequence[tuple[Text, Window]]) -> list[Results]:
        """One forward pass. If memory runs out, one pass for each half of the windows."""
        try:
            with torch.inference_mode():
                return self._compute(windows)
        except torch.OutOfMemoryError:
            if len(windows) == 1:
                raise
        torch.cuda.empty_cache()
        half = len(windows) // 2
        return self.compute(windows[:half]) + self.compute(windows[half:])

    def _compute(self, windows: Sequence[tuple[Text, Window]]) -> list[Results]:
        lengths = [w.end - w.begin for _, w in windows]
        longest = max(lengths)
        ids = torch.zeros(len(windows), longest, dtype=torch.long)
        for row, (sequence, w) in enumerate(windows):
            ids[row, : lengths[row]] = torch.from_numpy(sequence.ids[w.begin : w.end])
        ids = ids.to(self.device)
        mask = None
        if min(lengths) < longest:
            mask = (torch.arange(longest)[None] < torch.tensor(lengths)[:, None]).long().to(self.device)
        states, last, heard = self._run(ids, mask)
        rows = [slice(w.report_begin - w.begin, w.report_end - w.begin) for _, w in windows]
        targets = []
        for sequence, w in windows:
            target = np.full(w.report_end - w.report_begin, -1)
            known = min(w.report_end, w.end - 1) - w.report_begin  # tokens whose next token is in this window
            target[:known] = sequence.ids[w.report_begin + 1 : w.report_begin + 1 + known]
            targets.append(torch.from_numpy(target))
        joined = lambda tensor: torch.cat([tensor[b, r] for b, r in enumerate(rows)])  # noqa: E731
        flat = [joined(state) for state in states]
        norm = self.parts.norm if not self.normed else (lambda state: state)
        logits_of = (lambda state, k: state) if self.whole_logits else (lambda state, k: self.readout(norm(state)))
        read = read_out(
            flat, torch.cat(targets).to(self.device), logits_of, self.parts.vocab_size, self.candidates,
            flat, None if last is None else joined(last),
        )  # fmt: skip
        results, begin = [], 0
        for b, r in enumerate(rows):
            n = r.stop - r.start
            output, signals = (
                {name: values[begin : begin + n].numpy() for name, values in tensors.items()} for tensors in (read.output, read.signals)
            )
            signals |= {name: self._gate_values(name, outputs, b, r) for name, outputs in heard.items()}
            results.append(Results(output, signals, None if last is None else last[b, r].cpu().numpy().astype(np.int64)))
            begin += n
        return results

    def _run(
        self, ids: torch.Tensor, mask: torch.Tensor | None
    ) -> tuple[list[torch.Tensor], torch.Tensor | None, dict[str, list[torch.Tensor]]]:
        """States of every step [B, T, d]; each token's last step (None: all ran); outputs of the gates by name."""
        states: list[torch.Tensor] = []
        heard: dict[str, list[torch.Tensor]] = {name: [] for name in self.gates}
        handles = [m.register_forward_hook(_keeper(states)) for m in self.step_modules]
        handles += [m.register_forward_hook(_gate_keeper(heard[name], ids)) for name, m in self.gates.items()]
        last = None
        try:
            if self.callback is not None:
                answer = self.callback(self.model, ids, mask)
                if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], (list, tuple)):
                    answer, last = answer
                states = list(answer)
                self._check_answer(states, last, ids)
            else:
                target = self.model if self.whole_logits else self.parts.base
                output = target(input_ids=ids, attention_mask=mask, use_cache=False)
                if self.whole_logits:
                    states = [output.logits]
                elif not self.step_modules:
                    final = states_in(output)
                    assert final is not None
                    states = [final]
        finally:
            for handle in handles:
                handle.remove()
        for name, outputs in heard.items():
            if not outputs:
                raise ValueError(f"gates: the module of {name} did not run, or its output has no value for each token; name another module.")
        return states, last, heard

    def _check_answer(self, states: list[Any], last: Any, ids: torch.Tensor) -> None:
        good = states and all(isinstance(s, torch.Tensor) and s.dim() == 3 and s.shape[:2] == ids.shape for s in states)
        good = good and all(s.shape == states[0].shape for s in states)
        if good and last is not None:
            good = isinstance(last, torch.Tensor) and last.shape == ids.shape and not last.is_floating_point()
            good = good and 0 <= int(last.min()) and int(last.max()) < len(states)
        if not good:
            raise ValueError(
                "steps=function must give a list of states, each [batch, tokens, width], or a pair of this list and the last step of "
                "each token, whole numbers [batch, tokens] below the number of states."
            )

    def _gate_values(self, name: str, outputs: list[torch.Tensor], b: int, r: slice) -> NDArray[Any]:
        values = [o[b, r].float().cpu() for o in outputs]
        values = [v.squeeze(-1) if v.dim() == 2 and v.shape[-1] == 1 else v for v in values]
        return (torch.stack(values, 1) if len(values) > 1 else values[0]).numpy()


def _keeper(states: list[torch.Tensor]) -> Callable[..., None]:
    def hook(module: Any, inputs: Any, output: Any) -> None:
        found = states_in(output)
        if found is None:
            raise ValueError(f"a {type(module).__name__} gives no states; name a module whose output is hidden states.")
        states.append(found)

    return hook


def _gate_keeper(outputs: list[torch.Tensor], ids: torch.Tensor) -> Callable[..., None]:
    """Keeps outputs with one or more numbers a token. [B * T, ...] becomes [B, T, ...]."""

    def hook(module: Any, inputs: Any, output: Any) -> None:
        value = output[0] if isinstance(output, (tuple, list)) else output
        if not isinstance(value, torch.Tensor):
            return
        if value.shape[0] == ids.numel() and value.shape[:2] != ids.shape:
            value = value.view(*ids.shape, *value.shape[1:])
        if value.shape[:2] == ids.shape and value.dim() <= 3:
            outputs.append(value)

    return hook


def _vocabulary(model: Any) -> int:
    return int(model.get_input_embeddings().weight.shape[0])
