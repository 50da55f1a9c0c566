# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks values from users and converts them to what a trace holds. Wrong values raise ValueError."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

TokenTable = Union[Callable[[int], Union[bytes, str]], Mapping[int, Union[bytes, str]], Sequence[Union[bytes, str]]]
"""The bytes or text of each token id: a function, a dictionary or a list."""

PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}\Z")
INT32_MAX = (1 << 31) - 1

NUMPY_TYPES = {
    "BOOL": "?", "U8": "u1", "I8": "i1", "U16": "<u2", "I16": "<i2", "U32": "<u4", "I32": "<i4", "U64": "<u8",
    "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8",
}  # fmt: skip
"""dtype names of chunks; BF16, which NumPy does not know, is read but not written."""
TRACE_TYPES = {np.dtype(numpy_type): name for name, numpy_type in NUMPY_TYPES.items()}

NUMBERS_AT_EVERY_STEP = {
    "entropy", "max_probability", "margin", "kl_previous_current", "kl_current_previous", "cosine", "latent_difference",
    "gate", "halting_mass", "candidate_probabilities", "state_norm", "update_cosine",
}  # fmt: skip
"""Known signals that may not be NaN where a step ran. `nll` may be NaN only where the token has no target or the step did not run."""


@dataclass(frozen=True)
class Signal:
    """A quantity that a run records in addition to the scalar columns of its tokens.

    ``axes``: the first axis is always ``"token"``. A second axis ``"step"`` has ``max_steps`` + 1 entries, or ``max_steps`` entries if
    the last step has no value (as for a gate). Other names are free: ``"candidate"``, ``"layer"``, ``"head"``. A last
    axis ``"back"`` counts tokens back from the token itself; zeros at its end are not stored.
    ``dtype``: NumPy name of the stored type; None: float16, float32, int32 or bool, by the type of the values.
    ``every_step``: True for values that exist for all steps, even for steps that did not run (as from a router). False: for steps
    that did not run, the trace stores NaN (-1 in whole numbers), whatever was given.
    ``of_target``: the quantity depends on the next token. A token without a next token has NaN, or 0 in whole numbers.
    """

    axes: Sequence[str] = ("token", "step")
    unit: str = ""
    title: str = ""
    description: str = ""
    dtype: str | None = None
    every_step: bool = False
    of_target: bool = False

    @property
    def storage(self) -> str:
        """Value of the column ``storage`` of the table ``signal``."""
        return "trimmed" if len(self.axes) > 1 and self.axes[-1] == "back" else "plain"

    def completed(self, name: str) -> Signal:
        """A copy in which KNOWN_SIGNALS fills in ``dtype`` and ``of_target`` where they are not set."""
        known = KNOWN_SIGNALS.get(name)
        if known is None:
            return self
        return replace(self, dtype=self.dtype or known.dtype, of_target=self.of_target or known.of_target)

    def check(self, name: str) -> None:
        """ValueError unless a trace can hold a signal of this name."""
        axes = self.axes
        good = not isinstance(axes, str) and len(axes) > 0 and axes[0] == "token"
        if not PLAIN_NAME.match(name) or not good or not all(isinstance(a, str) and PLAIN_NAME.match(a) for a in axes):
            raise ValueError(
                f'signal "{name}" needs a name and axes of letters, digits and underscores, the first axis token; '
                f"its axes are {list(axes)!r}."
            )
        for what in ("unit", "title", "description"):
            line_of(getattr(self, what), f'the {what} of signal "{name}"')
        if self.dtype is not None and np.dtype(self.dtype).newbyteorder("<") not in TRACE_TYPES:
            raise ValueError(
                f'signal "{name}" has dtype {self.dtype}, which a trace cannot hold; use one of '
                + ", ".join(np.dtype(t).name for t in NUMPY_TYPES.values())
                + "."
            )

    def stored_type(self, values: NDArray[Any]) -> np.dtype[Any]:
        """The dtype in which the values are stored."""
        if self.dtype is not None:
            return np.dtype(self.dtype).newbyteorder("<")
        kind = values.dtype.kind
        if values.dtype == np.float16:
            return np.dtype("<f2")
        return np.dtype({"f": "<f4", "i": "<i4", "u": "<i4", "b": "?"}.get(kind, "<f4"))


@dataclass(frozen=True)
class Rule:
    """When a token of your model stops: the halting rule that ``learned`` replays on the run.

    A token stops at the first step at which ``signal``, a signal of the run over ``("token", "step")``, is below ``theta``.
    With ``stops="above"`` it stops at the first step at which the signal is ``theta`` or more.
    """

    signal: str
    stops: str = "below"
    theta: float = 0.5

    def check(self, signals: Mapping[str, Signal]) -> None:
        """ValueError unless a run with these signals can be replayed under the rule."""
        if self.signal not in signals or tuple(signals[self.signal].axes) != ("token", "step"):
            by_step = ", ".join(name for name, signal in signals.items() if tuple(signal.axes) == ("token", "step"))
            raise ValueError(
                f'rule: expected the name of a signal over ("token", "step"), found {self.signal!r}; '
                f"the signals of the run by step: {by_step or 'none'}."
            )
        if self.stops not in ("below", "above"):
            raise ValueError(f'rule: stops must be "below" or "above", not {self.stops!r}.')
        theta = self.theta
        if isinstance(theta, bool) or not isinstance(theta, (int, float, np.integer, np.floating)) or not np.isfinite(theta):
            raise ValueError(f"rule: theta must be a finite number, not {theta!r}.")

    def choices(self) -> str:
        """JSON for the column ``choices`` of the table ``run``."""
        return json.dumps({"rule": {"signal": self.signal, "stops": self.stops, "theta": float(self.theta)}})


QUOTIENTS = {"acceleration"}
"""Known signals that are infinite if the state changed in the previous step but not in this step."""

KNOWN_SIGNALS = {
    "nll": Signal(("token", "step"), "nats", "NLL by step", "Negative log-likelihood of the next token of the read-out at each step.", of_target=True),
    "entropy": Signal(("token", "step"), "nats", "Entropy by step", "Entropy of the distribution of the read-out at each step."),
    "max_probability": Signal(("token", "step"), "probability", "Maximum probability by step", "Largest probability of the read-out at each step."),
    "margin": Signal(("token", "step"), "probability", "Margin by step", "Largest minus second largest probability of the read-out at each step."),
    "rank": Signal(("token", "step"), "", "Rank by step", "1 + the number of logits above the next token's of the read-out at each step.", "int32", of_target=True),
    "argmax": Signal(("token", "step"), "", "Most likely token by step", "Id of the largest logit of the read-out at each step; of equal logits the lowest id.", "int32"),
    "candidate_ids": Signal(("token", "step", "candidate"), "", "Candidates by step", "Ids of the most likely tokens of the read-out at each step.", "int32"),
    "candidate_probabilities": Signal(("token", "step", "candidate"), "probability", "Candidate probabilities by step", "Probabilities of the most likely tokens of the read-out at each step.", "float16"),
    "kl_previous_current": Signal(("token", "step"), "nats", "D_KL(p_k−1 ‖ p_k)", "KL(P_{k-1} || P_k), P_k the distribution of the read-out at each step k; 0 at step 0."),
    "kl_current_previous": Signal(("token", "step"), "nats", "D_KL(p_k ‖ p_k−1)", "KL(P_k || P_{k-1}); 0 at step 0."),
    "cosine": Signal(("token", "step"), "", "Cosine to the step before", "Cosine of h^k and h^{k-1}, h^k the state after the final norm; 0 at step 0."),
    "latent_difference": Signal(("token", "step"), "", "Latent difference", "|h^k - h^{k-1}| / |h^k|, h^k the state after the final norm; 0 at step 0."),
    "state_norm": Signal(("token", "step"), "", "Norm by step", "|h^k|, h^k the state after the final norm."),
    "update_cosine": Signal(("token", "step"), "", "Cosine of successive updates", "Cosine of u^k = h^k - h^{k-1} and u^{k-1}: near 1 the state keeps its direction, below 0 it turns back; 0 before the second update."),
    "acceleration": Signal(("token", "step"), "", "Acceleration", "|(h^k - h^{k-1}) - (h^{k-1} - h^{k-2})| / |h^k - h^{k-1}|, h^k the state after the final norm; 0 at steps 0 and 1."),
    "prediction_depth": Signal(("token",), "", "Prediction depth", "First step from which the most likely token is the same as at the last step.", "int32"),
    "answer_flips": Signal(("token",), "", "Answer flips", "How often the most likely token changes from one step to the next.", "int32"),
}  # fmt: skip
"""Signals that views and policies know by name, with the engine's descriptions."""


def text_of(value: Any, what: str) -> str:
    """Returns the text. ValueError: not a text, or UTF-8 cannot encode it."""
    if not isinstance(value, str):
        raise ValueError(f"{what} must be a text, not {type(value).__name__}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} has a lone surrogate at character {error.start}, which UTF-8 cannot encode; remove the surrogate.") from None
    return value


MOST_LINE_BYTES = 1 << 17


def line_of(value: Any, what: str) -> str:
    """Returns the text. ValueError: too long for the lines of windows and tables (core/trace/schema.h)."""
    if len(text_of(value, what).encode("utf-8")) > MOST_LINE_BYTES:
        raise ValueError(f"{what} has more than {MOST_LINE_BYTES} bytes; give a shorter one.")
    return value


def whole_numbers(values: ArrayLike, what: str, low: int, high: int) -> NDArray[np.int64]:
    """Checks whole numbers in [low, high] along one axis."""
    array = np.asarray(values)
    if array.dtype.kind == "f" and array.size and np.all(np.isfinite(array)) and np.all(array == np.floor(array)):
        array = array.astype(np.int64)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(f"{what} must be whole numbers along one axis, not {array.dtype} of shape {list(array.shape)}.")
    wrong = np.flatnonzero((array < low) | (array > high))
    if wrong.size:
        raise ValueError(f"{what} must lie between {low} and {high}; token {wrong[0]} has {array[wrong[0]]}.")
    return array.astype(np.int64)


def real_numbers(values: ArrayLike | None, what: str, count: int, low: float, high: float) -> NDArray[np.float32]:
    """Checks one number a token; NaN: no number. ``values`` None: all NaN."""
    if values is None:
        return np.full(count, np.nan, np.float32)
    array = np.asarray(values)
    if array.dtype.kind not in "fiu":
        raise ValueError(f"{what} must be numbers, not {array.dtype}.")
    if array.shape != (count,):
        raise ValueError(
            f"{what} has shape {list(array.shape)} for {count} tokens: give one number a token, and NaN for a token without one, "
            "such as the last token of a text."
        )
    array = array.astype(np.float32)
    wrong = np.flatnonzero((array < low) | (array > high) | np.isinf(array))
    if wrong.size:
        allowed = f"from {low:g} on" if high == np.inf else f"between {low:g} and {high:g}"
        raise ValueError(f"{what} must be finite and {allowed}, or NaN; token {wrong[0]} has {array[wrong[0]]}.")
    return array


def spans_of(spans: ArrayLike | None, count: int, text_bytes: int) -> NDArray[np.int64]:
    """Checks byte spans [tokens, 2]: in order, without overlap, inside the text."""
    if spans is None:
        if text_bytes:
            raise ValueError(
                "a text needs spans: the first byte of each token in its UTF-8, and the byte after the last "
                "(ponderscope.byte_spans makes them from character offsets)."
            )
        return np.zeros((count, 2), np.int64)
    array = np.asarray(spans)
    if array.shape != (count, 2) or array.dtype.kind not in "iu":
        raise ValueError(f"spans must be whole numbers of shape [{count}, 2], not {array.dtype} of shape {list(array.shape)}.")
    array = array.astype(np.int64)
    before = np.concatenate([[0], array[:-1, 1]]) if count else array[:, 0]
    wrong = np.flatnonzero((array[:, 0] < before) | (array[:, 1] < array[:, 0]) | (array[:, 1] > text_bytes))
    if wrong.size:
        at = int(wrong[0])
        raise ValueError(
            f"token {at} spans bytes {array[at, 0]} to {array[at, 1]}; expected a span in bytes of UTF-8, from byte {before[at]} "
            f"on, inside the text of {text_bytes} bytes."
        )
    return array


def byte_spans(text: str, offsets: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Byte spans from the character offsets of a fast tokenizer (``return_offsets_mapping=True``).

    If several tokens share a character (its bytes were split), the first token has the character and the others have empty
    spans. Tokens that a template added have empty spans, too. Text that the tokenizer left out is in no span.
    """
    characters = np.fromiter((len(c.encode("utf-8")) for c in text), np.int64, len(text))
    place = np.concatenate([[0], np.cumsum(characters)])
    spans = np.zeros((len(offsets), 2), np.int64)
    end = 0
    for i, (first, last) in enumerate(offsets):
        if not 0 <= first <= last <= len(text):
            raise ValueError(f"token {i} has offsets {first} to {last}, but the text has {len(text)} characters.")
        begin = max(int(place[first]), end) if last > first else end
        end = max(int(place[last]), begin) if last > first else end
        spans[i] = begin, end
    return spans


DID_NOT_RUN = -1
"""Value of steps that did not run in signals of whole numbers. Other signals have NaN."""


def set_unrun_steps_to_nan(values: NDArray[Any], signal: Signal, steps: NDArray[np.int64]) -> NDArray[Any]:
    """A copy with NaN (DID_NOT_RUN in whole numbers) after each token's last step. In a trimmed signal only entry 0 of ``back``,
    the token itself, is set, and the other entries are 0. Unsigned numbers do not change."""
    if len(signal.axes) < 2 or signal.axes[1] != "step" or signal.every_step or values.dtype.kind not in "fi":
        return values
    behind = np.arange(values.shape[1])[None, :] > steps[:, None]
    if not behind.any():
        return values
    behind = behind.reshape(behind.shape + (1,) * (values.ndim - 2))
    mark = np.array(np.nan if values.dtype.kind == "f" else DID_NOT_RUN, values.dtype)
    replaced = np.broadcast_to(behind, values.shape)
    if signal.storage == "trimmed":
        replaced = replaced.copy()
        replaced[..., 1:] = False
        values = np.where(behind, np.zeros((), values.dtype), values)
    return np.where(replaced, mark, values)


def signal_values(
    name: str, signal: Signal, values: ArrayLike, steps: NDArray[np.int64], max_steps: int, nll: NDArray[np.float32]
) -> NDArray[Any]:
    """Checks a signal's values for consecutive tokens and returns them as the trace stores them."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"signal {name} must be numbers, not {array.dtype}.")
    count = len(steps)
    if array.ndim != len(signal.axes) or array.shape[0] != count or 0 in array.shape[1:]:
        raise ValueError(
            f"signal {name} has shape {list(array.shape)}; expected the axes {list(signal.axes)} and {count} tokens."
        )
    for axis, axis_name in enumerate(signal.axes):
        if axis == 1 and axis_name == "step" and array.shape[axis] not in (max_steps, max_steps + 1):
            raise ValueError(
                f"signal {name} has {array.shape[axis]} steps, but the run has max_steps {max_steps}: "
                f"give {max_steps + 1} steps, from 0 on, or {max_steps} if the last step has no value."
            )
    stored = signal.stored_type(array)
    if stored.kind in "iu":
        if array.dtype.kind == "f":
            raise ValueError(f"signal {name} is stored as {stored.name}; expected values of this type, found {array.dtype}.")
        limits = np.iinfo(stored)
        if array.size and (int(array.min()) < limits.min or int(array.max()) > limits.max):
            raise ValueError(f"signal {name} has values that {stored.name} cannot hold; name a wider dtype in its Signal.")
    with np.errstate(over="ignore"):
        result = array.astype(stored)
    if stored.kind == "f":
        if np.isinf(result).any() and name not in QUOTIENTS:
            raise ValueError(f"signal {name} has values that are infinite or too large for {stored.name}.")
        must = name in NUMBERS_AT_EVERY_STEP or name == "nll"
        if must and result.ndim > 1 and signal.axes[1] == "step":
            ran = np.ones(result.shape, bool)
            ran &= (np.arange(result.shape[1])[None, :] <= steps[:, None]).reshape(count, -1, *[1] * (result.ndim - 2))
            if name == "nll":
                ran &= ~np.isnan(nll).reshape([count] + [1] * (result.ndim - 1))
            wrong = np.argwhere(np.isnan(result) & ran)
            if len(wrong):
                raise ValueError(
                    f"signal {name} is NaN at {wrong[0].tolist()} {list(signal.axes)}, where a step ran "
                    f"(the token's last step is {steps[wrong[0][0]]})."
                )
    return np.ascontiguousarray(set_unrun_steps_to_nan(result, signal, steps))
