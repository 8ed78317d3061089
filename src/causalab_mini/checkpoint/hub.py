"""Checkpoints of the hub: the layout of its local cache, and the one function that downloads.

Reading the cache needs no import; `huggingface_hub` is imported only where something is downloaded.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from causalab_mini.checkpoint import files
from causalab_mini.errors import ModelUnavailable

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")
_REVISION = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_TRUE = ("1", "ON", "YES", "TRUE")


@dataclass(frozen=True)
class Snapshot:
    """One commit of a hub checkpoint in the local cache."""

    folder: Path
    commit: str


def is_id(key: str) -> bool:
    """Whether `key` can be a hub id: `name` or `organization/name`."""
    return _ID.fullmatch(key) is not None and ".." not in key and "--" not in key


def cache() -> Path:
    """The folder of the local hub cache."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(name):
            return Path(os.environ[name]).expanduser()
    if os.environ.get("HF_HOME"):
        return Path(os.environ["HF_HOME"]).expanduser() / "hub"
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface" / "hub"


def offline() -> bool:
    """Whether the environment forbids the network."""
    return any(os.environ.get(name, "").upper() in _TRUE for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))


def cached(key: str, revision: str) -> Snapshot | None:
    """The snapshot of `key` at `revision` in the local cache, if its config is there."""
    if _REVISION.fullmatch(revision) is None or ".." in revision:
        return None
    repository = cache() / f"models--{key.replace('/', '--')}"
    commit = revision
    if _COMMIT.fullmatch(revision) is None:
        reference = repository / "refs" / revision
        if not reference.is_file():
            return None
        commit = reference.read_text("utf-8").strip()
    if not commit.isalnum():
        return None
    folder = repository / "snapshots" / commit
    return Snapshot(folder, commit) if (folder / files.CONFIG).is_file() else None


def snapshot(key: str, revision: str, need_weights: bool) -> Snapshot:
    """The snapshot of `key` at `revision`, downloaded if it has to be. `ModelUnavailable` says why there is none."""
    found = cached(key, revision)
    if found is not None and not (need_weights and files.missing_weights(found.folder)):
        return found
    if offline():
        missing = "its weights are" if found is not None else "it is"
        raise ModelUnavailable(
            f"'{key}' ({revision}) is no local folder, and {missing} not in the hub cache while the network is off "
            "(HF_HUB_OFFLINE)",
            "give a folder with --weights",
        )
    return _download(key, revision, need_weights)


def _download(key: str, revision: str, need_weights: bool) -> Snapshot:
    import httpx
    from huggingface_hub import errors, snapshot_download

    patterns = [*files.LIGHT, *(files.HEAVY if need_weights else ())]
    try:
        folder = Path(snapshot_download(key, revision=revision, allow_patterns=patterns))
    except errors.GatedRepoError as error:
        raise ModelUnavailable(f"'{key}' needs a licence to be accepted on the hub, and a token") from error
    except errors.RevisionNotFoundError as error:
        raise ModelUnavailable(f"'{key}' has no revision '{revision}'") from error
    except errors.RepositoryNotFoundError as error:
        raise ModelUnavailable(f"no such folder, and no such checkpoint on the hub: '{key}'") from error
    except (
        errors.HfHubHTTPError,
        errors.HFValidationError,
        errors.RevisionResolutionError,
        errors.XetDownloadError,
        httpx.HTTPError,
        OSError,
    ) as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelUnavailable(
            f"'{key}' ({revision}) is not in the hub cache and cannot be downloaded: {why}",
            "give a folder with --weights",
        ) from error
    if not (folder / files.CONFIG).is_file():
        raise ModelUnavailable(f"'{key}' ({revision}) has no {files.CONFIG}")
    return Snapshot(folder, folder.name)
