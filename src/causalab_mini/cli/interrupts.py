"""Ctrl-C in a run: the first lets the call in flight end and its points be written, the second stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from causalab_mini.cli.progress import STOPPING, Report


@contextmanager
def interruptible(report: Report) -> Generator[Callable[[], bool]]:
    """Whether a Ctrl-C has come, for as long as the block lasts. Outside the main thread none does."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return
    before = signal.getsignal(signal.SIGINT)

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        asked.set()
        report("", STOPPING)

    signal.signal(signal.SIGINT, first)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
