"""What a self-test of the loaded weights found, component by component, and where it is kept between runs. Torch-free.

A verdict belongs to the bytes of a checkpoint, the code that tests and the library that computes. It lies in the user's
cache directory; what cannot be read or written there is as if it were not there.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import causalab_mini
from causalab_mini.checkpoint import files

if TYPE_CHECKING:
    from causalab_mini.checkpoint.facts import Checkpoint

UNTESTED = "no self-test has been run on these weights"
VIEWS = "views"
"""What a verdict calls the projection of the residual stream through the final norm and the head."""

_TESTING = ("engine", "checkpoint", "vocabulary")
"""The rooms whose code a verdict depends on."""


class Proof(Enum):
    """How far a component is what its name says."""

    PROVED = "proved"
    REFUSED = "refused"
    UNPROVEN = "unproven"


@dataclass(frozen=True)
class Finding:
    """One component's proof, and the reason where it is not proved."""

    proof: Proof
    reason: str = ""


@dataclass(frozen=True)
class Verdict:
    """What a self-test found: by component, of the views, and (`whole`) why the checkpoint cannot be used at all.

    `dtype` is what the weights were computed in: half precision proves less closely.
    """

    dtype: str
    findings: Mapping[str, Finding] = field(default_factory=dict[str, Finding])
    whole: str = ""

    def of(self, name: str) -> Finding:
        """What was found of a component."""
        return self.findings.get(name, Finding(Proof.UNPROVEN, "the self-test does not look at it"))


def recall(folder: Path) -> Verdict | None:
    """The verdict on the weights in `folder`, if one is kept; reads no weights."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        digest = (directory() / "digests" / _stamp(folder)).read_text("ascii").strip()
        return _read((directory() / "verdicts" / _name(digest)).read_text("utf-8"))
    return None


def remember(checkpoint: Checkpoint, verdict: Verdict) -> None:
    """Keep the verdict on a checkpoint, if that is possible. Reads the weights' bytes, for their digest."""
    with contextlib.suppress(OSError):
        digest = checkpoint.digest()
        _write(directory() / "verdicts" / _name(digest), _text(verdict))
        _write(directory() / "digests" / _stamp(checkpoint.folder), digest)


def directory() -> Path:
    """Where this user's caches are."""
    found = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(found) if found else Path.home() / ".cache") / "causalab-mini"


def _stamp(folder: Path) -> str:
    """A name for the files of a folder as they lie there: by their places, sizes and times, none of it readable."""
    lines: list[str] = []
    for name in files.relevant_files(folder):
        path = (folder / name).resolve()
        status = path.stat()
        lines.append(f"{name} {path} {status.st_size} {status.st_mtime_ns}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _name(digest: str) -> str:
    return hashlib.sha256(f"{digest} {_code()}".encode()).hexdigest() + ".json"


@cache
def _code() -> str:
    """What a verdict depends on beside the weights."""
    root = Path(causalab_mini.__file__).parent
    total = hashlib.sha256()
    for path in sorted(path for room in _TESTING for path in (root / room).glob("*.py")):
        total.update(path.read_bytes())
    for library in ("torch", "transformers"):
        with contextlib.suppress(PackageNotFoundError):
            total.update(f"{library} {version(library)}".encode())
    return total.hexdigest()


def _text(verdict: Verdict) -> str:
    findings = {name: [finding.proof.value, finding.reason] for name, finding in verdict.findings.items()}
    return json.dumps({"dtype": verdict.dtype, "whole": verdict.whole, "findings": findings}, ensure_ascii=False)


def _read(text: str) -> Verdict:
    content = json.loads(text)
    findings = {str(name): Finding(Proof(proof), str(reason)) for name, (proof, reason) in content["findings"].items()}
    return Verdict(str(content["dtype"]), findings, str(content["whole"]))


def _write(path: Path, text: str) -> None:
    """Put `text` there at once, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_text(text, "utf-8")
    partial.replace(path)
