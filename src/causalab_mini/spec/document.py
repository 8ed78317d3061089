"""The document as pydantic nodes: the shape of one experiment, sweeps already expanded.

Knows shapes and defaults. Refuses to know whether names fit each other (`spec.check`) or what anything resolves to.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from causalab_mini.spec.positions import Pos
from causalab_mini.vocabulary.featurizers import IDENTITY
from causalab_mini.vocabulary.metrics import AnyMetric
from causalab_mini.vocabulary.node import FromList, Name, Node

ORIGINAL = "original"
RESERVED = (ORIGINAL, IDENTITY)


class Header(Node):
    """What a reader should know; no part of the experiment's identity."""

    description: str = ""


class Model(Node):
    """The checkpoint and how its numbers are computed."""

    key: Annotated[str, Field(min_length=1)]
    revision: str = "main"
    dtype: Literal["fp32", "bf16", "fp16"]
    attn_implementation: Literal["eager", "sdpa"] | None = None


class Role(Node):
    """One input of the experiment: the column its text comes from."""

    field: Annotated[str, Field(min_length=1)]


def _several(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else value


class Site(Node):
    """A place in the model."""

    component: str
    layers: Annotated[tuple[int, ...] | Literal["all"] | None, BeforeValidator(_several)] = None
    heads: Annotated[tuple[int, ...], FromList] | None = None
    units: Annotated[tuple[int, ...], FromList] | None = None


class Featurizer(Node):
    """A space a value is read or written in."""

    kind: str
    k: int | None = None
    seed: int | None = None
    file_path: str | None = None
    parametrization: Literal["cayley"] = "cayley"


class Read(Node):
    """A value to look at."""

    site: Name
    pos: Pos
    model: Name = ORIGINAL
    input: Name
    featurizer: Name = IDENTITY
    view: Literal["raw", "logits", "probs"] = "raw"


class Ref(Node):
    """The output of an earlier step."""

    ref: str


class Write(Node):
    """A value to change."""

    site: Name
    pos: Pos
    mechanism: str
    operand: Name | int | float | Ref | None = None
    featurizer: Name = IDENTITY
    features: Annotated[tuple[int, ...], FromList] | None = None
    params: dict[str, object] = {}
    missing: Literal["refuse", "skip"] = "refuse"
    reach: Literal["lasting", "forward"] | None = None


class IntervenedModel(Node):
    """The checkpoint with some writes in place."""

    input: Name
    writes: Annotated[tuple[Name, ...], FromList]


class Intervention(Node):
    """Reads, writes, the models they make, and what is scored."""

    reads: Annotated[dict[Name, Read], Field(min_length=1)]
    writes: dict[Name, Write] = {}
    models: dict[Name, IntervenedModel] = {}
    metrics: dict[Name, AnyMetric] = {}
    decode: Annotated[int, Field(ge=0)] = 0


class Output(Node):
    """A tensor a step publishes to later steps and to its saves."""

    read: Name
    reduce: Literal["none", "mean"] = "none"


class Save(Node):
    """A value to write to a file of the point's directory."""

    value: str
    file_path: str


def _output(value: object) -> object:
    return {"read": value} if isinstance(value, str) else value


def _children(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    return (value,) if isinstance(value, str | dict) else value


class Observe(Node):
    """Run interventions on rows and keep what was asked for.

    `nested` says whether the document gave a list, which makes one child plan per intervention.
    """

    kind: Literal["observe"]
    rows: dict[Name, str]
    interventions: Annotated[tuple[Name | Intervention, ...], BeforeValidator(_children)] | None = None
    outputs: dict[Name, Annotated[Output, BeforeValidator(_output)]] = {}
    saves: Annotated[tuple[Save, ...], FromList] = ()


class Document(Node):
    """One experiment."""

    schema_: Annotated[str | None, Field(alias="$schema")] = None
    format: Literal["causalab-mini/1"] = "causalab-mini/1"
    header: Header = Header()
    model: Model
    roles: Annotated[dict[Name, Role], Field(min_length=1)]
    sites: dict[Name, Site]
    featurizers: dict[Name, Featurizer] = {}
    interventions: dict[Name, Intervention] = {}
    steps: Annotated[dict[Name, Observe], Field(min_length=1)]
