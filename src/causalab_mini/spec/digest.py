"""The identity of an experiment: one digest for every spelling of it.

SHA-256 of the document with defaults filled in, without `header` and `$schema`, as JSON with sorted keys.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping

from causalab_mini.spec import mechanisms
from causalab_mini.spec.document import Decode, Document, Intervention, Model, Observe, Used, Write
from causalab_mini.vocabulary.generation import Json, normal
from causalab_mini.vocabulary.node import Node


def digest(document: Document) -> str:
    """The digest of a document that passed `spec.check`: 64 hex digits."""
    return Digester().digest(document)


class Digester:
    """Digests documents that share parts; a part is printed once."""

    def __init__(self) -> None:
        self._done: dict[tuple[int, str], tuple[object, str]] = {}

    def digest(self, document: Document) -> str:
        """The digest of one document."""
        only = next(iter(document.interventions)) if len(document.interventions) == 1 else ""
        text = _members(
            {
                "featurizers": self._section(document.featurizers),
                "format": _printed(document.format),
                "interventions": self._once(document.interventions, lambda: self._interventions(document)),
                "model": self._part(document.model),
                "roles": self._section(document.roles),
                "sites": self._section(document.sites),
                "steps": _members({name: self._step(step, only) for name, step in document.steps.items()}),
            }
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def _section(self, section: Mapping[str, Node]) -> str:
        return self._once(section, lambda: _members({name: self._part(node) for name, node in section.items()}))

    def _part(self, node: Node) -> str:
        return self._once(node, lambda: _printed(_plain(node)))

    def _once(self, node: Node | Mapping[str, Node], render: Callable[[], str], only: str = "") -> str:
        key = (id(node), only)
        known = self._done.get(key)
        if known is None:
            # The node is kept too, or its identity could be taken over by another.
            known = self._done[key] = (node, render())
        return known[1]

    def _interventions(self, document: Document) -> str:
        return _members({name: self._intervention(one) for name, one in document.interventions.items()})

    def _intervention(self, node: Intervention) -> str:
        return self._once(node, lambda: self._members_of(node))

    def _members_of(self, node: Intervention) -> str:
        parts = {
            "decode": self._part(node.decode),
            "metrics": self._section(node.metrics),
            "models": self._section(node.models),
            "reads": self._section(node.reads),
            "writes": self._section(node.writes),
        }
        return _members({**parts, **({"generation": _settings(node.generation)} if node.generation else {})})

    def _step(self, node: Observe, only: str) -> str:
        return self._once(node, lambda: self._observe(node, only), only)

    def _observe(self, node: Observe, only: str) -> str:
        used = only if node.interventions is None else node.interventions
        parts = {key: _printed(value) for key, value in node.model_dump(mode="json", exclude={"interventions"}).items()}
        parts["interventions"] = (
            f"[{','.join(self._used(one) for one in used)}]" if isinstance(used, tuple) else self._used(used)
        )
        return _members(parts)

    def _used(self, used: Used) -> str:
        return _printed(used) if isinstance(used, str) else self._intervention(used)


def _members(members: Mapping[str, str]) -> str:
    """A JSON object of values that are printed already; its keys need no escapes."""
    return "{" + ",".join([f'"{name}":{members[name]}' for name in sorted(members)]) + "}"


_printed = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def _settings(stated: Mapping[str, Json]) -> str:
    return _printed({key: normal(key, value) for key, value in stated.items()})


def _plain(node: Node) -> dict[str, object]:
    plain = node.model_dump(mode="json")
    if isinstance(node, Model) and isinstance(node.generation, dict):
        # Nothing is below the document's settings for a null to take away.
        plain["generation"] = {k: normal(k, value) for k, value in node.generation.items() if value is not None}
    if plain.get("generation") in ("neutral", {}):
        del plain["generation"]
    if isinstance(node, Decode) and node.sample is None:
        del plain["sample"]
    if isinstance(node, Write):
        plain["params"] = mechanisms.of(node).model_dump(mode="json")
    return plain
