"""Files that are whole or absent: written beside under a hidden name, flushed to disk, renamed."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from causalab_mini.errors import OutputRefusal, Problem

PARTIAL = ".part"


def partial_name(path: Path) -> Path:
    """Where `path` is written before it is renamed: hidden, in the same directory."""
    return path.with_name(f".{path.name[:60]}{PARTIAL}")


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A path to write the whole file to; it becomes `path` when the block ends, and vanishes if the block fails."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = partial_name(path)
    beside.unlink(missing_ok=True)  # A link would be written through.
    try:
        yield beside
        _flush(beside)
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    _flush(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Make `path` hold `content`, or leave it as it was."""
    with replacing(path) as beside:
        beside.write_bytes(content)


def write_file(path: Path, content: bytes) -> None:
    """The same for a file the command line names; `OutputRefusal` where it cannot be written."""
    try:
        write_bytes(path, content)
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise OutputRefusal(Problem("", message, "choose another --out")) from error


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
