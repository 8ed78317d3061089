"""One run per directory at a time: an advisory lock that the system releases however the process ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class DirectoryLock:
    """An exclusive lock on a file; `take` says whether this process has it now."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: int | None = None

    def take(self) -> bool:
        """Take the lock unless another process has it. The file is made where it is missing."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return False
        if os.fstat(handle).st_nlink == 0:  # its holder removed the file while this process was waiting at the door
            os.close(handle)
            return False
        self._handle = handle
        return True

    def release(self, *, remove: bool = False) -> None:
        """Give the lock back; with `remove` the file goes too."""
        if self._handle is None:
            return
        if remove:
            self._path.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = None
