"""When python looks for garbage in cycles: not while a verb reads, plans and imports, but while a model runs.

Importing torch makes a million objects that all stay, and every look at them costs; so do the plans of a long sweep.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Generator[None]:
    """No look for garbage inside the block, unless a block of `collected` lies in it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def collected() -> Generator[None]:
    """Looks for garbage among what is made inside the block; what was there before is left out."""
    collecting = gc.isenabled()
    gc.freeze()
    gc.enable()
    try:
        yield
    finally:
        if not collecting:
            gc.disable()
        gc.unfreeze()
