"""Values set in a document from outside, by path: `interventions.steer.decode` is 8, whatever the document says.

A path goes by keys and `[i]`. What it sets may be whole objects, sweeps among them. Names are never made: whatever a
document calls by a name of its own is there or is refused. Whether a value fits is found out where documents are read.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Literal, cast, get_args, get_origin

from causalab_mini.errors import Problem, ReferenceRefusal, join, suggest
from causalab_mini.spec.document import Document, Intervention, Observe
from causalab_mini.spec.text import Json, JsonObject
from causalab_mini.vocabulary.node import Name

_PART = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")

NAMED = frozenset(
    name
    for node in (Document, Intervention, Observe)
    for name, field in node.model_fields.items()
    if get_origin(field.annotation) is dict and get_args(field.annotation)[0] == Name
)
"""The keys whose objects hold things by their names: sites, reads, writes, …"""


def overridden(document: JsonObject, values: Mapping[str, Json]) -> JsonObject:
    """A copy of `document` with `values` at their paths, set in order. Refused: a path that leads nowhere."""
    changed = copy.deepcopy(document)
    problems: list[Problem] = []
    for path, value in values.items():
        problem = _set(changed, path, value)
        if problem is not None:
            problems.append(problem)
    if problems:
        raise ReferenceRefusal(problems)
    return changed


def _set(document: JsonObject, path: str, value: Json) -> Problem | None:
    parts = _parts(path)
    if parts is None:
        return Problem("", f"--set: '{path}' is no path", "say --set interventions.steer.decode=8")
    here: Json = document
    for index, part in enumerate(parts):
        before = join(*parts[:index])
        if isinstance(here, dict) and isinstance(part, str):
            if part not in here:
                holder = parts[index - 1] if index else None
                if holder in NAMED:
                    return _unknown(path, part, before, here)
                here[part] = cast(Json, {})
            if index == len(parts) - 1:
                here[part] = value
                return None
            here = here[part]
        elif isinstance(here, list) and isinstance(part, int):
            if part >= len(here):
                return Problem(before, f"--set: {path}: there are {len(here)} entries", "they count from [0]")
            if index == len(parts) - 1:
                here[part] = value
                return None
            here = cast("list[Json]", here)[part]
        else:
            kind: Literal["a list", "an object"] = "a list" if isinstance(part, int) else "an object"
            return Problem(before, f"--set: {path}: what is there is not {kind}", f"--set {before}=… sets all of it")
    return None


def _parts(path: str) -> list[str | int] | None:
    found: list[str | int] = []
    end = 0
    for match in _PART.finditer(path):
        if match.start() != end:
            return None
        end = match.end()
        found.append(cast(str, match[1]) if match[1] is not None else int(match[2]))
    return found if found and end == len(path) and not path.startswith(".") else None


def _unknown(path: str, part: str, before: str, here: JsonObject) -> Problem:
    return Problem(before, f"--set: {path}: there is no '{part}'", suggest(part, here))
