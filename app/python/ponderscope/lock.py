# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock that gives a trace one writer at a time, in Python or in the engine."""

from __future__ import annotations

import os
from pathlib import Path

from .schema import refusal

try:
    import fcntl
except ImportError:  # Windows: SQLite's own locks protect the file, but a second writer is refused later.
    fcntl = None  # type: ignore[assignment]


class TraceLock:
    """Locks TRACE-lock beside the trace, as core/trace/writing/lock_file.h does. The lock ends with the process."""

    def __init__(self, trace: Path) -> None:
        self._path = trace.with_name(trace.name + "-lock")
        self._descriptor = -1
        if fcntl is None:
            return
        while True:
            try:
                descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
            except OSError as error:
                what = f"the trace cannot be written ({error.strerror}); choose a folder that you may write to"
                raise OSError(error.errno, what, str(trace)) from None
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise refusal(
                    trace, "a trace without a writer", "a trace that a recording is writing", "wait for its end, or choose another file"
                ) from None
            # The previous holder may have removed the file between our open and our lock. Others would not see this lock.
            try:
                if os.path.samestat(os.fstat(descriptor), os.stat(self._path)):
                    self._descriptor = descriptor
                    return
            except FileNotFoundError:
                pass
            os.close(descriptor)

    def release(self) -> None:
        if self._descriptor >= 0:
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1
