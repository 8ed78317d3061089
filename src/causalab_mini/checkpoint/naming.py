"""How messages name a checkpoint, and the command that tests its weights."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from causalab_mini.checkpoint.facts import Checkpoint


def shown(checkpoint: Checkpoint) -> str:
    """`org/model`, or `org/model (the weights in DIR)` where they are taken from another folder."""
    instead = _instead(checkpoint)
    return checkpoint.key if instead is None else f"{checkpoint.key} (the weights in {instead})"


def self_test(checkpoint: Checkpoint) -> str:
    """`causalab-mini model org/model --weights DIR --self-test`, for a shell."""
    instead = _instead(checkpoint)
    words = ["causalab-mini", "model", checkpoint.key]
    words += [] if checkpoint.revision == "main" else ["--revision", checkpoint.revision]
    words += [] if instead is None else ["--weights", instead]
    return shlex.join([*words, "--self-test"])


def _instead(checkpoint: Checkpoint) -> str | None:
    """The folder that is used in place of the one the key names."""
    folder = str(checkpoint.folder)
    return folder if checkpoint.source == "weights" and folder != checkpoint.key else None
