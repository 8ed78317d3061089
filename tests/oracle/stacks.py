"""Stacked sites as what they mean: a site, read, write, metric and output for every layer, put together again after.

What stands for layer 2 of `name` is called `name/2`, which no document can say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def layers(site: dict, depth: int) -> list[int]:
    """The layers of a stacked site; none of another."""
    found = site.get("layers")
    if found == "all":
        return list(range(depth))
    return found if isinstance(found, list) and len(found) > 1 else []


def apart(document: dict, depth: int) -> dict:
    """The document without stacked sites."""
    stacked = {name: found for name, site in document["sites"].items() if (found := layers(site, depth))}
    if not stacked:
        return document
    sites = {f"{name}/{i}": {**document["sites"][name], "layers": i} for name, found in stacked.items() for i in found}
    declared = document.get("interventions", {})
    return {
        **document,
        "sites": {**document["sites"], **sites},
        "interventions": {name: _body(body, stacked) for name, body in declared.items()},
        "steps": {name: _step(step, stacked, declared) for name, step in document["steps"].items()},
    }


def together(parts: dict[str, T], joined: Callable[[dict[int, T]], T]) -> dict[str, T]:
    """The parts by their names in the document: those of a stacked one, by layer, `joined`."""
    whole: dict[str, T] = {}
    by_layer: dict[str, dict[int, T]] = {}
    for name, part in parts.items():
        base, _, layer = name.partition("/")
        if layer:
            by_layer.setdefault(base, {})[int(layer)] = part
        whole[base] = part
    return whole | {name: joined(found) for name, found in by_layer.items()}


def _step(step: dict, stacked: dict[str, list[int]], declared: dict) -> dict:
    used = step.get("interventions", step.get("intervention")) or next(iter(declared))
    several = used if isinstance(used, list) else [used]
    bodies = [declared[one] if isinstance(one, str) else one for one in several]
    inline = [one if isinstance(one, str) else _body(one, stacked) for one in several]
    outputs: dict = {}
    for name, spec in step.get("outputs", {}).items():
        spec = {"read": spec} if isinstance(spec, str) else spec
        reads = [body["reads"][spec["read"]] for body in bodies if spec["read"] in body["reads"]]
        found = {layer: None for read in reads for layer in stacked.get(read["site"], [])}
        outputs |= {f"{name}/{layer}": {**spec, "read": f"{spec['read']}/{layer}"} for layer in found}
        outputs[name] = spec
    return {**step, "interventions": inline if isinstance(used, list) else inline[0], "outputs": outputs}


def _body(body: dict, stacked: dict[str, list[int]]) -> dict:
    """One intervention, a read and a write for every layer, and metrics of each."""
    of = {name: stacked.get(tap["site"], []) for name, tap in body["reads"].items()}
    landing = {name: stacked.get(tap["site"], []) for name, tap in body.get("writes", {}).items()}
    models = {
        name: {**model, "writes": [one for write in model["writes"] for one in _names(write, landing[write])]}
        for name, model in body.get("models", {}).items()
    }
    metrics: dict = {}
    for name, metric in body.get("metrics", {}).items():
        found = of[metric["of"]] or of.get(metric.get("against", ""), [])
        for layer in found or [None]:
            at = {
                key: f"{metric[key]}/{layer}" if of[metric[key]] else metric[key]
                for key in ("of", "against")
                if key in metric
            }
            metrics[name if layer is None else f"{name}/{layer}"] = {**metric, **at}
    taps = {"reads": _taps(body["reads"], of), "writes": _taps(body.get("writes", {}), landing)}
    return {**body, **taps, "models": models, "metrics": metrics}


def _names(name: str, found: list[int]) -> list[str]:
    return [f"{name}/{layer}" for layer in found] or [name]


def _taps(taps: dict, of: dict[str, list[int]]) -> dict:
    return {
        one: {**tap, "site": f"{tap['site']}/{one.partition('/')[2]}"} if of[name] else tap
        for name, tap in taps.items()
        for one in _names(name, of[name])
    }
