"""run.json: what the numbers of a directory come from. No path, host or user name goes in.

Knows plans, records and the versions of what is installed; touches no model.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import causalab_mini
from causalab_mini.plan.generation import forward_name, settings_record
from causalab_mini.plan.nodes import Decoding, Experiment, Space
from causalab_mini.results.completion import Completion
from causalab_mini.results.remarks import unscored, warned

LIBRARIES = ("torch", "transformers", "nnsight", "tokenizers", "safetensors", "datasets", "pydantic")


@dataclass(frozen=True)
class ModelRecord:
    """Which checkpoint: `resolved` is a commit, or a digest of the files for a folder; `files` digests by name.

    `source`: bundled, folder, hub, or weights, where the command line gave a folder for the document's key.
    """

    key: str
    revision: str
    source: str
    resolved: str
    files: Mapping[str, str]


@dataclass(frozen=True)
class Machinery:
    """What computed the numbers, as far as it can change them."""

    engine: str
    device: str
    dtype: str
    attn_implementation: str | None
    batch_size: int | None


@dataclass(frozen=True)
class ScheduleRecord:
    """How this run ran the points that were not kept: calls and token-layers planned, what one call per planned forward
    would take, and what it took.

    `promise` is "exact" where the passes change no bit and "last bit" where they may. `halved`: how many calls were run
    in halves because memory ran out.
    """

    mode: str
    promise: str
    passes: tuple[str, ...]
    calls: int
    token_layers: int
    naive_calls: int
    naive_token_layers: int
    run_calls: int
    run_token_layers: int
    halved: int = 0


def code_digest() -> str:
    """SHA-256 over the package's source files: their names and contents in sorted order."""
    root = Path(causalab_mini.__file__).parent
    total = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        total.update(f"{path.relative_to(root).as_posix()}\0".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def versions() -> dict[str, str]:
    """The versions of python, this package and what it computes with."""
    found = {"python": platform.python_version(), "causalab-mini": causalab_mini.__version__}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def run_record(
    experiment: Experiment,
    model: ModelRecord,
    machinery: Machinery,
    schedule: ScheduleRecord,
    eos_ids: Iterable[int],
    completions: tuple[Completion, ...],
    kept: int,
    *,
    limit: int | None = None,
    overrides: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """The object run.json holds. `kept`: how many of the complete points an earlier run had left.

    `limit`: how many rows of every table were used; `overrides`: what the command line set in the document, by path.
    """
    points, lines = len(experiment.points), [line for record in completions for line in record.summary]
    warned_of = (*warned(completions, points), *unscored(lines, points))
    peaks = [record.peak_bytes for record in completions if record.peak_bytes is not None]
    return {
        "digest": experiment.digest,
        "model": {
            "key": model.key,
            "revision": model.revision,
            "source": model.source,
            "resolved": model.resolved,
            "files": dict(sorted(model.files.items())),
        },
        "data": dict(experiment.tables),
        "featurizers": [_featurizer(space) for space in experiment.spaces],
        "code": code_digest(),
        "versions": versions(),
        **asdict(machinery),
        "eos_ids": sorted(eos_ids),
        "generation": generation(experiment),
        "schedule": {
            "mode": schedule.mode,
            "promise": schedule.promise,
            "passes": list(schedule.passes),
            "calls": schedule.calls,
            "token_layers": schedule.token_layers,
            "naive": {"calls": schedule.naive_calls, "token_layers": schedule.naive_token_layers},
            "run": {"calls": schedule.run_calls, "token_layers": schedule.run_token_layers},
            "halved": schedule.halved,
        },
        "near_ties": [tie.model_dump(mode="json") for record in completions for tie in record.near_ties],
        "writes": [write.model_dump(mode="json") for record in completions for write in record.writes],
        "warnings": list(dict.fromkeys([*experiment.warnings, *warned_of])),
        "overrides": dict(overrides or {}),
        "partial": partial(experiment, len(completions), limit),
        "points": {"run": len(completions) - kept, "kept": kept},
        "seconds": round(sum(record.seconds for record in completions), 3),
        "peak_bytes": max(peaks, default=None),
    }


def lasting(run: Mapping[str, object]) -> dict[str, object]:
    """What run.json says of the numbers, and not of the run that ended last."""
    return {name: value for name, value in run.items() if name not in ("schedule", "points")}


def partial(experiment: Experiment, complete: int, limit: int | None) -> dict[str, object] | None:
    """What a run leaves out of its document: rows past `limit`, and points; None for nothing."""
    points = len(experiment.points)
    if limit is None and complete == points:
        return None
    return {"rows": limit, "points": {"complete": complete, "all": points}}


def _featurizer(space: Space) -> dict[str, object]:
    """A featurizer: what it is drawn or loaded from. `stamped` is null where there is no file."""
    return {
        "name": space.name,
        "kind": space.node.keyword,
        "k": space.k,
        "seed": getattr(space.node, "seed", None),
        "sha256": space.sha256,
        "stamped": None if space.sha256 is None else space.stamped,
    }


def generation(experiment: Experiment) -> list[dict[str, object]]:
    """The effective settings of every forward that decodes and where each comes from, equal ones listed once."""
    found: dict[tuple[str, str, Decoding], list[str]] = {}
    for point in experiment.points:
        for observe in point.plan.observes():
            for forward in observe.forwards:
                if forward.decode:
                    key = ("/".join(observe.path), forward_name(forward), forward.decoding)
                    found.setdefault(key, []).append(point.label)
    everywhere = len(experiment.points)
    return [
        {
            "observe": observe,
            "forward": forward,
            "points": "all" if len(labels) == everywhere else labels,
            **settings_record(decoding),
        }
        for (observe, forward, decoding), labels in found.items()
    ]
