"""The identity of an experiment: one digest for every spelling of it.

SHA-256 of the document with defaults filled in, without `header` and `$schema`, as JSON with sorted keys.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from causalab_mini.spec import mechanisms
from causalab_mini.spec.document import Document, Intervention, Observe
from causalab_mini.vocabulary.node import Node


def digest(document: Document) -> str:
    """The digest of a document that passed `spec.check`: 64 hex digits."""
    return Digester().digest(document)


class Digester:
    """Digests documents that share parts; a part is printed once."""

    def __init__(self) -> None:
        self._printed: dict[tuple[int, str], tuple[object, str]] = {}

    def digest(self, document: Document) -> str:
        """The digest of one document."""
        only = next(iter(document.interventions)) if len(document.interventions) == 1 else ""
        text = _members(
            {
                "featurizers": self._section(document.featurizers),
                "format": _printed(document.format),
                "interventions": self._section(document.interventions),
                "model": self._part(document.model, ""),
                "roles": self._section(document.roles),
                "sites": self._section(document.sites),
                "steps": _members({name: self._part(step, only) for name, step in document.steps.items()}),
            }
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def _section(self, section: Mapping[str, Node]) -> str:
        return _members({name: self._part(node, "") for name, node in section.items()})

    def _part(self, node: Node, only: str) -> str:
        key = (id(node), only)
        if key not in self._printed:
            self._printed[key] = (node, _node(node, only))
        return self._printed[key][1]


def _members(members: dict[str, str]) -> str:
    return "{" + ",".join(f"{_printed(name)}:{members[name]}" for name in sorted(members)) + "}"


def _printed(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _node(node: Node, only: str) -> str:
    if isinstance(node, Intervention):
        return _printed(_intervention(node))
    plain = node.model_dump(mode="json")
    if isinstance(node, Observe):
        used = node.interventions
        if used is None:
            plain["interventions"] = only
        elif isinstance(used, tuple):
            plain["interventions"] = [_used(item) for item in used]
        else:
            plain["interventions"] = _used(used)
    return _printed(plain)


def _used(used: str | Intervention) -> object:
    return used if isinstance(used, str) else _intervention(used)


def _intervention(intervention: Intervention) -> dict[str, object]:
    plain = intervention.model_dump(mode="json")
    for name, write in intervention.writes.items():
        plain["writes"][name]["params"] = mechanisms.of(write).model_dump(mode="json")
    return plain
