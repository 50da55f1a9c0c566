# SPDX-License-Identifier: GPL-3.0-or-later
"""Traces of language models that decide per token how long to think.

``record`` writes a trace from a transformers model. ``Writer`` writes a trace from any other model; ``read_out`` computes its
signals. ``open`` reads a trace into arrays and tables. ``annotate`` adds columns of your own to tokens. ``Trace.page`` makes
one HTML file to send.
"""

__version__ = "0.1.0"

from .annotations import annotate
from .columns import KNOWN_SIGNALS, Rule, Signal, byte_spans
from .reader import Run, Trace, open  # noqa: A004
from .recording import read_out, record
from .sequence_writer import SequenceWriter
from .writer import RunWriter, Writer

__all__ = [
    "KNOWN_SIGNALS", "Rule", "Run", "RunWriter", "SequenceWriter", "Signal", "Trace", "Writer", "annotate", "byte_spans", "open", "read_out",
    "record",
]  # fmt: skip
