"""Sweeps, expanded independently: wrappers of one axis move together, axes cross, the first slowest."""

from __future__ import annotations

import itertools
import json
import re


def expand(document: dict) -> dict[str, dict]:
    """The points of a document by label, in order; one without a sweep is the point ""."""
    axes: dict[str, list] = {}
    _find(document, "", axes)
    points: dict[str, dict] = {}
    for chosen in itertools.product(*(range(len(values)) for values in axes.values())):
        which = dict(zip(axes, chosen, strict=True))
        label = ",".join(f"{axis}={_shown(axes[axis][i])}" for axis, i in which.items())
        points[label] = _filled(document, "", which)
    return points


def _find(node: object, key: str, axes: dict[str, list]) -> None:
    if isinstance(node, dict) and "sweep" in node:
        axes.setdefault(node.get("as", key), _values(node))
    elif isinstance(node, dict):
        for name, value in node.items():
            _find(value, name, axes)
    elif isinstance(node, list):
        for value in node:
            _find(value, key, axes)


def _values(node: dict) -> list:
    return list(range(*node["sweep"]["range"])) if isinstance(node["sweep"], dict) else node["sweep"]


def _shown(value: object) -> str:
    while isinstance(value, list) and len(value) == 1:
        (value,) = value
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return re.sub(r"[^\w.+-]", "_", text)


def _filled(node: object, key: str, which: dict[str, int]) -> object:
    if isinstance(node, dict) and "sweep" in node:
        return _values(node)[which[node.get("as", key)]]
    if isinstance(node, dict):
        return {name: _filled(value, name, which) for name, value in node.items()}
    return [_filled(value, key, which) for value in node] if isinstance(node, list) else node
