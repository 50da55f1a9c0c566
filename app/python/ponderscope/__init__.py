# SPDX-License-Identifier: GPL-3.0-or-later
"""Traces of language models that decide per token how long to think.

``Writer`` makes a trace from anyone's model, ``record`` from a transformers model, ``open`` reads one into arrays and
tables, and ``page`` (a method of a trace) makes one HTML file to send.
"""

__version__ = "0.1.0"

from typing import Any

from .columns import KNOWN_SIGNALS, Signal, byte_spans
from .reader import Run, Trace, open  # noqa: A004
from .sequence_writer import SequenceWriter
from .writer import RunWriter, Writer



def record(*arguments: Any, **options: Any) -> Run:
    """Records a transformers model over texts; see ``ponderscope.recording.record``. Needs torch and transformers."""
    from .recording import record as record_model

    return record_model(*arguments, **options)


__all__ = ["KNOWN_SIGNALS", "Run", "RunWriter", "SequenceWriter", "Signal", "Trace", "Writer", "byte_spans", "open", "record"]
