# SPDX-License-Identifier: GPL-3.0-or-later
"""Traces of language models that decide per token how long to think.

``Writer`` makes a trace from anyone's model, ``record`` from a transformers model, ``open`` reads one into arrays and
tables, ``annotate`` gives tokens columns of your own, and ``page`` (a method of a trace) makes one HTML file to send.
"""

__version__ = "0.1.0"

from typing import Any

from .annotations import annotate
from .columns import KNOWN_SIGNALS, Signal, byte_spans
from .reader import Run, Trace, open  # noqa: A004
from .sequence_writer import SequenceWriter
from .writer import RunWriter, Writer


def record(model: Any, tokenizer: Any, texts: Any, path: Any, **options: Any) -> Run:
    """Records a causal model of transformers over texts into a trace and gives the run back, opened. Needs torch and
    transformers; ``help(ponderscope.recording.record)`` describes the options (imported when it is first used, for torch
    takes seconds)."""
    from .recording import record as record_model

    return record_model(model, tokenizer, texts, path, **options)


__all__ = ["KNOWN_SIGNALS", "Run", "RunWriter", "SequenceWriter", "Signal", "Trace", "Writer", "annotate", "byte_spans", "open", "record"]
