"""The JSON Schema of documents: the nodes' own, with the registries' words and a sweep allowed for any value."""

from __future__ import annotations

from typing import TypeAlias

from causalab_mini.spec.document import Document
from causalab_mini.vocabulary.components import COMPONENTS
from causalab_mini.vocabulary.featurizers import FEATURIZERS
from causalab_mini.vocabulary.mechanisms import MECHANISMS

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Schema: TypeAlias = "dict[str, Json]"

DIALECT = "https://json-schema.org/draft/2020-12/schema"
UNSWEPT = ("Model", "Header", "Document")
"""Objects none of whose values a sweep may stand for; of the document itself, only `model` and `header`."""

_SWEEP: Schema = {
    "title": "Sweep",
    "description": "Several values in place of one: the document stands for one point per value.",
    "type": "object",
    "required": ["sweep"],
    "additionalProperties": False,
    "properties": {
        "sweep": {
            "anyOf": [
                {"type": "array", "minItems": 1},
                {
                    "type": "object",
                    "required": ["range"],
                    "additionalProperties": False,
                    "properties": {
                        "range": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3}
                    },
                },
            ]
        },
        "as": {"type": "string", "description": "The axis; wrappers that share one move together."},
    },
}
_SWEPT: Schema = {"$ref": "#/$defs/Sweep"}


def document_schema() -> Schema:
    """The schema of a whole document, sweeps included."""
    root: Schema = Document.model_json_schema(by_alias=True)
    definitions = _object(root.pop("$defs"))
    root.pop("title")
    _name_words(definitions)
    swept: Schema = {
        name: each if name in UNSWEPT else _sweepable_parts(_object(each)) for name, each in definitions.items()
    }
    properties = {
        name: each if name in ("$schema", "format", "header", "model") else _sweepable(each)
        for name, each in _object(root["properties"]).items()
    }
    return {
        "$schema": DIALECT,
        "title": "causalab-mini document",
        **root,
        "properties": properties,
        "$defs": {**swept, "Sweep": _SWEEP},
    }


def _name_words(definitions: Schema) -> None:
    """Say which components, featurizers and mechanisms there are, and each mechanism's parameters."""
    _property(definitions, "Site", "component")["enum"] = list(COMPONENTS.names())
    _property(definitions, "Featurizer", "kind")["enum"] = list(FEATURIZERS.names())
    _property(definitions, "Write", "mechanism")["enum"] = list(MECHANISMS.names())
    rules: list[Json] = []
    for kind in MECHANISMS:
        definitions[kind.node.__name__] = kind.node.model_json_schema()
        params: Schema = {"params": {"anyOf": [{"$ref": f"#/$defs/{kind.node.__name__}"}, _SWEPT]}}
        when: Schema = {"required": ["mechanism"], "properties": {"mechanism": {"const": kind.name}}}
        needs: Schema = {"required": ["params"]} if _required(kind.node.model_json_schema()) else {}
        rules.append({"if": when, "then": {"properties": params, **needs}})
    _object(definitions["Write"])["allOf"] = rules


def _required(schema: Schema) -> bool:
    return bool(schema.get("required"))


def _property(definitions: Schema, node: str, name: str) -> Schema:
    return _object(_object(_object(definitions[node])["properties"])[name])


def _object(value: Json) -> Schema:
    if not isinstance(value, dict):
        raise TypeError("a JSON Schema object was expected")
    return value


def _sweepable(schema: Json) -> Json:
    """`schema`, or a sweep, and the same for everything inside."""
    return {"anyOf": [_sweepable_parts(schema), _SWEPT]}


def _sweepable_parts(schema: Json) -> Json:
    """`schema` itself, with a sweep allowed for every value inside it."""
    if isinstance(schema, list):
        return [_sweepable_parts(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    parts: Schema = {}
    for key, value in schema.items():
        match key:
            case "properties" | "patternProperties":
                parts[key] = {name: _sweepable(each) for name, each in _object(value).items()}
            case "items":
                parts[key] = _sweepable(value)
            case "prefixItems" if isinstance(value, list):
                parts[key] = [_sweepable(each) for each in value]
            case "anyOf" | "oneOf":  # a swept `kind` fits several of the kinds
                parts["anyOf"] = _sweepable_parts(value)
            case "discriminator":
                continue
            case _:
                parts[key] = value
    if "patternProperties" in parts:
        parts["additionalProperties"] = False
    return parts
