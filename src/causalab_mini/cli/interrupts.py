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
    """Whether a Ctrl-C has come, for as long as the block lasts.

    Outside the main thread none does, nor where it is ignored, as it is in what a script runs in the background.
    """
    asked = threading.Event()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is signal.SIG_IGN:
        yield asked.is_set
        return

    def first(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        asked.set()
        report("", STOPPING)

    signal.signal(signal.SIGINT, first)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
