"""One point's JSON to nodes, as far as it goes: every shape problem, and all the parts that are well formed.

A part that cannot be had is left out and its path is *broken*: who checks the rest takes it as declared. Parts are
parsed once by identity, so points that share a part share its node.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeVar, cast

from pydantic import BaseModel, JsonValue, TypeAdapter

from causalab_mini.errors import Problem
from causalab_mini.spec import document as nodes
from causalab_mini.spec import messages, planned
from causalab_mini.spec.document import Document, Intervention, Observe
from causalab_mini.spec.fit import Gathered, Parsed, Shape, closed, fit, misfit, sifted
from causalab_mini.spec.messages import NAME_RULE, describe
from causalab_mini.spec.planned import Sifted
from causalab_mini.spec.text import Json, JsonObject
from causalab_mini.vocabulary.metric import Metric
from causalab_mini.vocabulary.metrics import METRICS, AnyMetric
from causalab_mini.vocabulary.node import NAME_PATTERN

T = TypeVar("T")

_NAME = re.compile(NAME_PATTERN)


def _node(name: str, node: type[T], sift: Callable[[JsonObject], Sifted] = Sifted) -> Shape[T]:
    return Shape(name, TypeAdapter(node), lambda _: cast(type[BaseModel], node), sift)


def _metric_node(raw: JsonObject) -> type[BaseModel]:
    kind = raw.get("kind")
    return METRICS.get(kind).node if isinstance(kind, str) and kind in METRICS else Metric


_MODEL = _node("model", nodes.Model)
_HEADER = _node("header", nodes.Header)
_ROLE = _node("role", nodes.Role)
_SITE = _node("site", nodes.Site)
_FEATURIZER = _node("featurizer", nodes.Featurizer)
_READ = _node("read", nodes.Read)
_WRITE = _node("write", nodes.Write)
_INTERVENED = _node("intervened", nodes.IntervenedModel)
_SAVE = _node("save", nodes.Save)
_METRIC: Shape[Metric] = Shape("metric", TypeAdapter(AnyMetric), _metric_node)
_OUTPUT: Shape[nodes.Output] = Shape("output", TypeAdapter(nodes.AnyOutput), lambda _: nodes.Output)
_REF: Shape[str] = Shape("ref", TypeAdapter(str), lambda _: BaseModel)
_DECODE: Shape[nodes.Decode] = Shape("decode", TypeAdapter(nodes.AnyDecode), lambda _: nodes.Decode)
_SETTINGS: Shape[dict[str, JsonValue]] = Shape("generation", TypeAdapter(nodes.Settings), lambda _: BaseModel)
_FORMAT = Shape[str]("format", TypeAdapter(Literal["causalab-mini/1"]), lambda _: BaseModel)
_KIND = Shape[str]("kind", TypeAdapter(Literal["observe"]), lambda _: BaseModel)
_USED_NAME = Shape[str]("name", TypeAdapter(nodes.Name), lambda _: BaseModel)
_NO_HEADER = nodes.Header()
_NO_DECODE = nodes.Decode(steps=0)
_STAND_IN = nodes.Model(key="?", dtype="fp32")


class Parser:
    """Parses the points of one document."""

    def __init__(self) -> None:
        self._memo: dict[tuple[str, int], tuple[Json, object]] = {}

    def _once(self, name: str, raw: Json, parse: Callable[[], Parsed[T]]) -> Parsed[T]:
        if not isinstance(raw, dict | list):
            return parse()
        key = (name, id(raw))
        known = self._memo.get(key)
        if known is None:
            # The raw part is kept too, or its identity could be taken over by another.
            known = self._memo[key] = (raw, parse())
        return cast(Parsed[T], known[1])

    def document(self, raw: JsonObject) -> Parsed[Document]:
        """A point. Its node is there even with problems, made of the parts that are well formed."""
        top = Gathered()
        raw = closed(raw, Document, top)
        model = top.take(self._required(raw, "model", _MODEL), "model")
        header = top.take(self._part(_HEADER, raw["header"]), "header") if "header" in raw else None
        if "format" in raw:
            top.take(self._part(_FORMAT, raw["format"]), "format")
        if "$schema" in raw:
            top.take(self._part(_REF, raw["$schema"]), "$schema")
        node = Document.model_construct(
            header=header or _NO_HEADER,
            model=model or _STAND_IN,
            roles=self._named(raw, "roles", top, lambda part: self._part(_ROLE, part), required=True),
            sites=self._named(raw, "sites", top, lambda part: self._part(_SITE, part), required=True),
            featurizers=self._named(raw, "featurizers", top, lambda part: self._part(_FEATURIZER, part)),
            interventions=self._named(raw, "interventions", top, self.intervention),
            steps=self._named(raw, "steps", top, self._step, required=True),
        )
        return top.done(node)

    def intervention(self, raw: Json) -> Parsed[Intervention]:
        """A declared or an inline intervention."""
        return self._once("intervention", raw, lambda: self._intervention(raw))

    def _intervention(self, raw: Json) -> Parsed[Intervention]:
        if not isinstance(raw, dict):
            return misfit("an object", raw)
        here = Gathered()
        raw = closed(raw, Intervention, here)
        decode = here.take(self._part(_DECODE, raw["decode"]), "decode") if "decode" in raw else None
        stated = self._part(_SETTINGS, raw["generation"]) if "generation" in raw else None
        generation = None if stated is None else here.take(stated, "generation")
        node = Intervention.model_construct(
            reads=self._named(raw, "reads", here, lambda part: self._part(_READ, part), required=True),
            writes=self._named(raw, "writes", here, lambda part: self._part(_WRITE, part)),
            models=self._named(raw, "models", here, lambda part: self._part(_INTERVENED, part)),
            metrics=self._named(raw, "metrics", here, lambda part: self._part(_METRIC, part)),
            decode=decode or _NO_DECODE,
            generation=generation or {},
        )
        return here.done(node)

    def _step(self, raw: Json) -> Parsed[Observe]:
        return self._once("step", raw, lambda: self._observe(raw))

    def _observe(self, raw: Json) -> Parsed[Observe]:
        if not isinstance(raw, dict):
            return misfit("an object", raw)
        here = Gathered()
        raw = sifted(raw, planned.step, here)
        if raw is None:
            return here.done(None)
        raw = _aliased(raw, here)
        raw = closed(raw, Observe, here)
        here.take(self._required(raw, "kind", _KIND), "kind")
        node = Observe(
            kind="observe",
            rows=self._named(raw, "rows", here, lambda part: self._part(_REF, part), required=True),
            interventions=self._used(raw.get("interventions"), here),
            outputs=self._named(raw, "outputs", here, lambda part: self._part(_OUTPUT, part)),
            saves=self._saves(raw.get("saves", []), here),
        )
        return here.done(node)

    def _used(self, raw: Json, here: Gathered) -> nodes.Used | tuple[nodes.Used, ...] | None:
        if raw is None:
            return None
        if isinstance(raw, list):
            found = [here.take(self._use(item), "interventions", i) for i, item in enumerate(raw)]
            # Whatever stands in for a broken one keeps the others' places; its own path is broken.
            return tuple("_" if item is None else item for item in found)
        return here.take(self._use(raw), "interventions")

    def _use(self, raw: Json) -> Parsed[nodes.Used]:
        if isinstance(raw, dict):
            return cast(Parsed[nodes.Used], self.intervention(raw))
        if isinstance(raw, str):
            return cast(Parsed[nodes.Used], self._part(_USED_NAME, raw))
        return misfit("an intervention's name, an intervention, or a list of them", raw)

    def _saves(self, raw: Json, here: Gathered) -> tuple[nodes.Save, ...]:
        if not isinstance(raw, list):
            here.take(misfit("a list", raw), "saves")
            return ()
        found = [here.take(self._part(_SAVE, item), "saves", i) for i, item in enumerate(raw)]
        return tuple(save or nodes.Save(value="_", file_path="_") for save in found)

    def _required(self, raw: JsonObject, key: str, shape: Shape[T]) -> Parsed[T]:
        if key in raw:
            return self._part(shape, raw[key])
        return Parsed(None, (messages.missing_key("", key),))

    def _part(self, shape: Shape[T], raw: Json) -> Parsed[T]:
        return self._once(shape.name, raw, lambda: fit(shape, raw))

    def _named(
        self,
        raw: JsonObject,
        key: str,
        here: Gathered,
        parse: Callable[[Json], Parsed[T]],
        required: bool = False,
    ) -> dict[str, T]:
        """The parts under `key`, by name; those that are not well formed are left out and broken."""
        if key not in raw:
            if required:
                here.problems.append(messages.missing_key(key, key))
                here.broken.add(key)
            return {}
        return here.take(self._once(key, raw[key], lambda: _section(raw[key], parse)), key) or {}


def _section(raw: Json, parse: Callable[[Json], Parsed[T]]) -> Parsed[dict[str, T]]:
    if not isinstance(raw, dict):
        return misfit("an object of names", raw)
    here = Gathered()
    found: dict[str, T] = {}
    for name, part in raw.items():
        node = here.take(parse(part), name)
        if not _NAME.fullmatch(name):
            here.problems.append(Problem(name, f"{describe(name)} is not a name", NAME_RULE))
            here.broken.add(name)
        elif node is not None:
            found[name] = node
    return here.done(found)


def _aliased(raw: JsonObject, here: Gathered) -> JsonObject:
    """A step with `intervention`, its other name, spelt `interventions`."""
    if "intervention" not in raw:
        return raw
    if "interventions" in raw:
        here.problems.append(
            Problem("intervention", "'intervention' and 'interventions' are one key, and both stand here", "keep one")
        )
        return {key: value for key, value in raw.items() if key != "intervention"}
    return {"interventions" if key == "intervention" else key: value for key, value in raw.items()}
