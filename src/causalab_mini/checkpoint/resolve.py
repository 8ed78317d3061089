"""From a document's `model` to the checkpoint it names.

A key is a checkpoint that ships with the package, else a local folder (from the working directory, then from the
document), else a hub id: found in the local hub cache, or downloaded into it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from causalab_mini.checkpoint import config, files, hub, tokenizer, verdicts
from causalab_mini.checkpoint.facts import Checkpoint, Source
from causalab_mini.errors import ModelUnavailable, PlanRefusal, Problem, suggest

BUNDLED_PREFIX = "causalab-mini/"
BUNDLED_FOLDER = Path(__file__).parent / "bundled"


@dataclass(frozen=True)
class Located:
    """Where a key's files are. `resolved` is the commit, for a hub checkpoint."""

    folder: Path
    source: Source
    resolved: str | None = None


def resolve(
    key: str,
    revision: str = "main",
    *,
    weights: Path | None = None,
    document: Path | None = None,
    need_weights: bool = False,
) -> Checkpoint:
    """The checkpoint `key` names.

    `weights`: a folder to take all files from instead. `document`: the document's path, for relative folders.
    `need_weights`: a hub checkpoint of which only the config is cached gets its weights too. Raises
    `ModelUnavailable` when there is none, `PlanRefusal` when there is one that would have to run code or unpickle.
    """
    found = _override(weights) if weights is not None else locate(key, revision, document, need_weights)
    pickles = files.pickle_files(found.folder)
    if pickles and not files.weight_files(found.folder):
        message = f"the checkpoint's weights are pickled ({pickles[0]}), and nothing pickled is ever loaded"
        raise PlanRefusal(Problem("", message, "use a checkpoint with safetensors files"))
    return Checkpoint(
        key=key,
        revision=revision,
        folder=found.folder,
        source=found.source,
        resolved=found.resolved,
        config=config.read(found.folder),
        tokenizer=tokenizer.load(found.folder),
        verdict=verdicts.recall(found.folder),
    )


def bundled() -> tuple[str, ...]:
    """Keys of the checkpoints that ship with the package, sorted."""
    return tuple(sorted(BUNDLED_PREFIX + path.parent.name for path in BUNDLED_FOLDER.glob(f"*/{files.CONFIG}")))


def locate(key: str, revision: str, document: Path | None, need_weights: bool) -> Located:
    """Where the files of `key` are."""
    if key.startswith(BUNDLED_PREFIX):
        if key not in bundled():
            message = f"no checkpoint '{key}' ships with the package"
            raise PlanRefusal(Problem("", message, suggest(key, bundled(), "bundled checkpoints")))
        return Located(BUNDLED_FOLDER / key.removeprefix(BUNDLED_PREFIX), "bundled")
    if key.endswith(".gguf"):
        raise PlanRefusal(Problem("", f"'{key}': .gguf files are not implemented yet", "use a safetensors folder"))
    bases = (Path(), *((document.parent,) if document is not None else ()))
    folders = [base / key for base in bases if (base / key).is_dir()]
    for folder in folders:
        if (folder / files.CONFIG).is_file():
            return Located(folder, "folder")
    if not hub.is_id(key):
        if folders:
            raise ModelUnavailable(f"the folder '{key}' has no {files.CONFIG}")
        raise ModelUnavailable(f"no such folder: '{key}'")
    snapshot = hub.snapshot(key, revision, need_weights)
    return Located(snapshot.folder, "hub", snapshot.commit)


def _override(weights: Path) -> Located:
    if not weights.is_dir():
        raise ModelUnavailable(f"no such folder: '{weights}'")
    if not (weights / files.CONFIG).is_file():
        raise ModelUnavailable(f"the folder '{weights}' has no {files.CONFIG}")
    return Located(weights, "weights")
