# SPDX-License-Identifier: GPL-3.0-or-later
"""Records any causal model of transformers as the engine records its own models. Imports torch only when a recording begins."""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .columns import INT32_MAX, Rule, text_of, whole_numbers
from .reader import Run
from .reader import open as open_trace
from .token_bytes import TokenBytes
from .writer import RunWriter, SequenceWriter, Writer

if TYPE_CHECKING:
    import torch

    from .forward import Forward

Texts = Union[str, Mapping[str, str], Iterable[Union[str, tuple[str, str], Sequence[int]]]]
StepCallback = Callable[[Any, "torch.Tensor", "torch.Tensor | None"], Any]


@dataclass(frozen=True)
class Window:
    """Tokens [begin, end) are computed together. Tokens [report_begin, report_end) are read out in this window only."""

    begin: int
    end: int
    report_begin: int
    report_end: int


def plan_windows(tokens: int, context: int, stride: int) -> list[Window]:
    """The windows of a sequence, as in core/trace/windows.h. A token is read out in the first window that has the token and its
    successor."""
    if not 1 <= stride <= context:
        raise ValueError(f"stride: expected a number from 1 to the context ({context}), found {stride}.")
    windows, reported, begin = [], 0, 0
    while reported < tokens:
        end = min(begin + context, tokens)
        next_holds_last = end < tokens and begin + stride < end
        report_end = end - 1 if next_holds_last else end
        if report_end > reported:
            windows.append(Window(begin, end, reported, report_end))
            reported = report_end
        begin += stride
    return windows


@dataclass
class Text:
    title: str
    text: str
    ids: NDArray[np.int64]
    spans: NDArray[np.int64] | None


def read_out(
    logits: ArrayLike,
    ids: ArrayLike,
    *,
    states: ArrayLike | None = None,
    steps: ArrayLike | None = None,
    candidates: int = 10,
) -> dict[str, Any]:
    """Computes from the logits of your own model what a trace records, for ``RunWriter.sequence`` or ``append``. Needs torch.

    ``logits``: [tokens, steps, vocabulary], or [tokens, vocabulary] for a model without steps; an array or a tensor.
    ``ids``: the tokens. The last token has no target. ``states``: [tokens, steps, width], for signals that compare the states of
    steps. ``steps``: the last step that ran at each token; its read-out is the output. None: all steps ran.

    Returns ``nll``, ``entropy``, ``max_probability``, ``rank`` and ``steps`` [tokens], and ``signals`` by name::

        read = ps.read_out(logits, ids)
        with writer.run("mine", max_steps=logits.shape[1] - 1, signals=list(read["signals"])) as run:
            run.sequence(ids, **read)
    """
    from .readout import read_out_logits

    return read_out_logits(logits, ids, states, steps, candidates)


def record(
    model: Any,
    tokenizer: Any,
    texts: Texts,
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    layers: bool | str = False,
    steps: str | StepCallback | None = None,
    gates: Mapping[str, str] | None = None,
    readout: Callable[[torch.Tensor], torch.Tensor] | None = None,
    method: str | None = None,
    rule: Rule | None = None,
    context: int | None = None,
    stride: int | None = None,
    batch: int = 8,
    candidates: int = 10,
    add_special: bool = True,
    on_bad: Literal["raise", "skip"] = "raise",
    resume: bool = False,
    overwrite: bool = False,
    progress: bool | Callable[[int, float], None] | None = None,
) -> Run:
    """Records a causal model of transformers over texts into a trace and returns the opened run. Needs torch and
    transformers.

    ``texts``: one text or several, pairs (title, text), or a dictionary from title to text. With ``tokenizer=None``: lists of token
    ids, one list a text, without padding. Texts are read one after the other, so a generator of any length works. Windows are
    as in the engine: ``context`` (None: the model's maximum, at most 2048) and ``stride`` (None: half the context).

    What a step is:

    * ``layers=True``: each block is a step and is read out by the final norm and the head. Policies then are early exits.
      A path instead of True names the list of blocks, if it is not found.
    * ``steps="path.of.module"``: a module that runs several times in a forward pass; its n-th call is step n.
    * ``steps=function``: ``function(model, input_ids, attention_mask)`` returns the states of the steps, each [B, T, d] as
      the head takes them, or a pair: these states and the last step that ran at each token, [B, T].
    * neither: one step, the model's output.

    ``gates``: signals by name, each the output of the module at this path for every token. If the module runs several times,
    its n-th call is step n. ``rule``: a ``Rule`` that says which signal by step (a gate or another) stops a token. The
    policy ``learned`` then applies this rule. ``readout``: computes logits from states, if the head alone does not.

    ``on_bad``: if a text cannot be recorded, "raise" writes the texts before it and raises ValueError; "skip" leaves the text
    out, with a warning and a fault in the trace. ``resume=True`` continues the partial run of this name. Give the same texts
    again: those that the run has are checked, but not computed.

    The run stores the engine's digest of the folder from which the model was loaded, so the window treats recordings by Python
    and by the engine as the same checkpoint. If the weights differ from the folder's, there is no digest, and a notice says so.
    """
    _check_model(model, tokenizer)
    if layers and steps is not None:
        raise ValueError("layers and steps both define the steps; give one of them.")
    counts = {"batch": batch, "candidates": candidates, "context": context, "stride": stride}
    for what, value in counts.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1):
            raise ValueError(f"{what}: expected a whole number from 1 on, found {value!r}.")
    if on_bad not in ("raise", "skip"):
        raise ValueError(f'on_bad: expected "raise" or "skip", found {on_bad!r}.')
    if resume and overwrite:
        raise ValueError("resume continues the trace that overwrite replaces; give one of them.")
    items = _items(texts)
    config = getattr(model.config, "get_text_config", lambda: model.config)()
    sizes = (getattr(config, name, None) for name in ("max_position_embeddings", "n_positions"))
    made_for = next((size for size in sizes if size and size > 0), None)  # XLNet says -1: any length
    if context is not None and made_for and context > made_for:
        raise ValueError(f"context: expected at most {made_for} (the maximum of the model), found {context}.")
    context = context or min(int(made_for or 2048), 2048)
    stride = stride or max(1, context // 2)
    plan_windows(1, context, stride)

    import torch

    from .checkpoint import digest_of_checkpoint
    from .forward import Forward

    digest, doubt = digest_of_checkpoint(model)
    was_training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        forward = Forward(model, layers, steps, gates or {}, readout, candidates, context)
        words = TokenBytes(tokenizer) if tokenizer is not None else None
        sequences = _sequences(items, words, add_special, forward, on_bad == "skip")
        # Before a trace begins: a recording that cannot start neither leaves nor replaces a trace.
        before_first: list[str] = []
        first = next(sequences, None)
        while isinstance(first, str):
            before_first.append(first)
            first = next(sequences, None)
        if first is None:
            raise ValueError(before_first[0] if before_first else "there is no text to record; give at least one text.")
        folder_name = os.path.basename(os.path.normpath(str(getattr(model, "name_or_path", "") or "")))
        with Writer(path, overwrite=overwrite) as writer:
            with writer.run(
                name or (folder_name if folder_name not in ("", ".") else type(model).__name__),
                method=method or ("vanilla" if steps is None else "custom"),
                policy="full" if layers else "learned",
                rule=rule,
                max_steps=forward.max_steps,
                step_unit="layer" if layers else "step",
                layers=int(getattr(config, "num_hidden_layers", 0) or 0),
                vocab_size=forward.parts.vocab_size,
                tokens=words,
                tokenizer_digest=words.digest if words else "",
                signals=forward.signals,
                architecture=str(getattr(model.config, "model_type", "")),
                checkpoint=str(getattr(model, "name_or_path", "") or ""),
                device=str(model.device) + (f" {torch.cuda.get_device_name(model.device)}" if model.device.type == "cuda" else ""),
                dtype=str(model.dtype).removeprefix("torch."),
                checkpoint_digest=digest,
                flops_model=forward.flops_model,
                text_source="ids" if tokenizer is None else "texts",
                # SQLite and the engine read JSON without Python's NaN and Infinity.
                config=json.dumps(json.loads(model.config.to_json_string(use_diff=False), parse_constant=lambda _: None), indent=2),
                versions={"torch": torch.__version__, "transformers": _transformers_version()},
                notices=list(filter(None, (doubt, words.doubt(first.text, add_special) if words else "", *forward.notices))),
                context=context,
                stride=stride,
                resume=resume,
            ) as run:
                run_name = run.name
                for sentence in before_first:
                    run.fault(sentence)
                skipped = _record_all(run, forward, itertools.chain([first], sequences), context, stride, batch, progress)
        if skipped := skipped + before_first:
            warnings.warn(f"{len(skipped)} of the texts could not be recorded and were skipped; the first: {skipped[0]}", stacklevel=2)
    finally:  # the caller's model gets its modes back
        for module in was_training:
            module.training = True
    return open_trace(path).run(run_name)


def _check_model(model: Any, tokenizer: Any) -> None:
    """ValueError, with a remedy, unless these are a model and a tokenizer of transformers."""
    is_module = lambda thing: hasattr(thing, "named_modules") and hasattr(thing, "forward")  # noqa: E731
    if is_module(tokenizer) and not is_module(model):
        raise ValueError("model and tokenizer are swapped; call ps.record(model, tokenizer, texts, path).")
    if not is_module(model):
        raise ValueError(f"model: expected a causal model of transformers, found {_kind(model)}; load it with AutoModelForCausalLM.")
    if not hasattr(getattr(model, "config", None), "to_json_string") or not hasattr(model, "get_input_embeddings"):
        raise ValueError(
            f"model: expected a causal model of transformers, found {type(model).__name__}, a module of your own; record it with "
            "ps.Writer, and make its signals with ps.read_out(logits, ids)."
        )
    if tokenizer is not None and not hasattr(tokenizer, "convert_ids_to_tokens"):
        raise ValueError(
            f"tokenizer: expected a tokenizer of transformers, or None with lists of ids, found {_kind(tokenizer)}; load it with "
            "AutoTokenizer, or wrap it: PreTrainedTokenizerFast(tokenizer_object=...)."
        )
    offloaded = any(hasattr(module, "_hf_hook") for module in model.modules())
    if not offloaded and (name := next((n for n, p in model.named_parameters() if p.is_meta), None)):
        raise ValueError(f'model: expected weights in memory, found {name} on the device "meta", which holds none; load the weights.')


def _kind(thing: Any) -> str:
    return "None" if thing is None else f"a {type(thing).__name__}"


def _items(texts: Any) -> Iterable[Any]:
    if isinstance(texts, (str, bytes)):
        return [texts]
    if isinstance(texts, Mapping) and not isinstance(texts.get("input_ids", ""), str):  # a BatchEncoding
        raise ValueError('texts: expected texts or lists of ids, found the output of a tokenizer; give its ["input_ids"], without padding.')
    if isinstance(texts, Mapping):
        return texts.items()
    if not isinstance(texts, Iterable):
        raise ValueError(f"texts: expected one or several texts, or lists of ids, found {_kind(texts)}.")
    return texts


def _sequences(items: Iterable[Any], words: TokenBytes | None, add_special: bool, forward: Forward, skips: bool) -> Iterator[Text | str]:
    """Texts with their ids. If a text cannot be recorded: ValueError, or with ``skips`` the error's message in its place."""
    for number, item in enumerate(items):
        try:
            sequence = _sequence(item, number, words, add_special)
            forward.check_ids(sequence)
        except ValueError as error:
            if not skips:
                raise
            yield str(error)
        else:
            yield sequence


def _sequence(item: Any, number: int, words: TokenBytes | None, add_special: bool) -> Text:
    title = None
    if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str):
        title, item = item
    what = f"text {number}" if title is None else text_of(title, f"the title of text {number}")
    if isinstance(item, str):
        if words is None:
            raise ValueError("texts need a tokenizer; give a tokenizer, or lists of ids.")
        ids, spans = words.encode(text_of(item, what), add_special)
        title = title or " ".join(item[:60].split()) or what
        sequence = Text(title, item, ids, spans)
    else:
        if item is None or isinstance(item, (bytes, bytearray)):
            raise ValueError(f"{what}: expected a text or a list of ids, found {_kind(item)}" + ("." if item is None else "; decode it first."))
        if isinstance(item, Mapping):
            raise ValueError(f'{what}: expected a text or a list of ids, found the output of a tokenizer; give its ["input_ids"].')
        title = title or f"ids {number}"
        row = np.asarray(item.cpu() if hasattr(item, "cpu") else item)
        row = row[0] if row.ndim == 2 and len(row) == 1 else row  # a batch of one
        sequence = Text(title, "", whole_numbers(row, title, 0, INT32_MAX), None)
    if len(sequence.ids) < 2:
        raise ValueError(f"{what}: expected at least two tokens, found {len(sequence.ids)}; give a longer text.")
    return sequence


def _record_all(
    run: RunWriter, forward: Forward, sequences: Iterator[Text | str], context: int, stride: int, batch: int,
    progress: bool | Callable[[int, float], None] | None,
) -> list[str]:  # fmt: skip
    """Computes windows in batches across sequences and writes results in order. Returns the messages of skipped texts."""
    waiting: list[tuple[Text, Window]] = []
    skipped: list[str] = []
    open_sequence: SequenceWriter | None = None
    done, began = 0, time.monotonic()
    if progress is None:
        progress = sys.stderr.isatty()

    def flush() -> None:
        nonlocal open_sequence, done
        if not waiting:
            return
        for (sequence, window), result in zip(waiting, forward.compute(waiting)):
            if window.report_begin == 0:
                open_sequence = run.stream(text=sequence.text, title=sequence.title)
            assert open_sequence is not None
            part = slice(window.report_begin, window.report_end)
            nll = result.output["nll"]
            open_sequence.append(
                sequence.ids[part],
                spans=None if sequence.spans is None else sequence.spans[part],
                nll=nll,
                entropy=result.output["entropy"],
                max_probability=result.output["max_probability"],
                rank=np.where(np.isnan(nll), 0, result.output["rank"]),
                steps=result.steps,
                flops=forward.flops(window, result.steps),
                signals=result.signals,
            )
            done += window.report_end - window.report_begin
            if window.report_end == len(sequence.ids):
                open_sequence.end()
        waiting.clear()
        seconds = time.monotonic() - began
        if callable(progress):
            progress(done, seconds)
        elif progress:
            print(f"\rrecording  {done:,} tokens, {done / max(seconds, 1e-9):,.0f} a second", end="", file=sys.stderr)

    had = run.sequences  # the sequences that a resumed run has
    number = 0
    while True:
        try:
            sequence = next(sequences, None)
        except Exception:
            flush()  # write the texts before the bad text
            raise
        if sequence is None:
            break
        if isinstance(sequence, str):
            skipped.append(sequence)
            run.fault(sequence)
            continue
        number += 1
        if number <= had:
            run.check_same(number - 1, sequence.ids, sequence.title)
            continue
        for window in plan_windows(len(sequence.ids), context, stride):
            waiting.append((sequence, window))
            if len(waiting) == batch:
                flush()
    flush()
    if progress and not callable(progress):
        print(file=sys.stderr)
    return skipped


def _transformers_version() -> str:
    try:
        import transformers
    except ImportError:
        return ""
    return str(transformers.__version__)
