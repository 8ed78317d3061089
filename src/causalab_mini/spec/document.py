"""The document as pydantic nodes: the shape of one experiment, sweeps already expanded.

Knows shapes and defaults. Refuses to know whether names fit each other (`spec.check`) or what anything resolves to.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue

from causalab_mini.spec.positions import Pos
from causalab_mini.vocabulary.featurizers import IDENTITY
from causalab_mini.vocabulary.generation import SETTINGS
from causalab_mini.vocabulary.metrics import AnyMetric
from causalab_mini.vocabulary.node import FromList, Name, Node, mismatch, whole

ORIGINAL = "original"
RESERVED = (ORIGINAL, IDENTITY)
SOME: dict[str, JsonValue] = {"minProperties": 1}


class Header(Node):
    """What a reader should know; no part of the experiment's identity."""

    description: str = ""


Settings = Annotated[dict[str, JsonValue], Field(json_schema_extra={"propertyNames": {"enum": list(SETTINGS)}})]
"""Generation settings by name; what they may be is for `spec.check`."""


def _generation(value: object) -> object:
    if isinstance(value, dict) or value in ("neutral", "checkpoint"):
        return value
    raise mismatch('"neutral", "checkpoint" or an object of settings')


class Model(Node):
    """The checkpoint and how its numbers are computed.

    `generation`: the settings that hold wherever tokens are generated: none, the checkpoint's own, or these.
    """

    key: Annotated[str, Field(min_length=1)]
    revision: str = "main"
    dtype: Literal["fp32", "bf16", "fp16"]
    attn_implementation: Literal["eager", "sdpa"] | None = None
    generation: Annotated[
        Literal["neutral", "checkpoint"] | Settings,
        BeforeValidator(_generation, json_schema_input_type=Literal["neutral", "checkpoint"] | Settings),
    ] = "neutral"


class Role(Node):
    """One input of the experiment: the column its text comes from."""

    field: Annotated[str, Field(min_length=1)]


def _several(value: object) -> object:
    if whole(value):
        return (value,)
    if isinstance(value, list | tuple) and all(whole(layer) for layer in value):
        return tuple(value)
    if value is None or value == "all":
        return value
    raise mismatch('a layer (an integer), a list of layers, "all" or null')


Layers = Annotated[
    tuple[int, ...] | Literal["all"] | None,
    BeforeValidator(_several, json_schema_input_type=int | tuple[int, ...] | Literal["all"] | None),
]


class Site(Node):
    """A place in the model."""

    component: str
    layers: Layers = None
    heads: Annotated[tuple[int, ...], FromList] | None = None
    units: Annotated[tuple[int, ...], FromList] | None = None

    @property
    def stacked(self) -> bool:
        """Whether it is several layers: one value with the layers first. "all" is, however many there are."""
        return self.layers == "all" or (self.layers is not None and len(self.layers) > 1)


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

    ref: Name


def _operand(value: object) -> object:
    if value is None or (isinstance(value, str | int | float | dict | Ref) and not isinstance(value, bool)):
        return value
    raise mismatch('a read\'s name, a number, {"ref": output} or null')


class Write(Node):
    """A value to change. `params` are the fields of the mechanism's own node; `spec.mechanisms.of` builds it."""

    site: Name
    pos: Pos
    mechanism: str
    operand: Annotated[
        Name | float | Ref | None,
        BeforeValidator(_operand, json_schema_input_type=Name | float | Ref | None),
    ] = None
    featurizer: Name = IDENTITY
    features: Annotated[tuple[int, ...], FromList] | None = None
    params: dict[str, object] = {}
    missing: Literal["refuse", "skip"] = "refuse"
    reach: Literal["lasting", "forward"] | None = None

    @property
    def operand_read(self) -> str | None:
        """The read its operand names."""
        return self.operand if isinstance(self.operand, str) else None

    @property
    def operand_output(self) -> str | None:
        """The output of an earlier step its operand refers to."""
        return self.operand.ref if isinstance(self.operand, Ref) else None


class IntervenedModel(Node):
    """The checkpoint with some writes in place."""

    input: Name
    writes: Annotated[tuple[Name, ...], FromList]


class Sample(Node):
    """Tokens drawn instead of the most likely ones, for each row and step from a generator of its own."""

    temperature: Annotated[float, Field(gt=0)] = 1.0
    top_k: Annotated[int, Field(ge=1)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: int


class Decode(Node):
    """How a forward goes on after its prefill: `steps` tokens, or the tokens of the column `force`.

    `eos: hold` never picks an end token; `stop` ends a row at its first one. Without `sample` the most likely token is
    picked.
    """

    steps: Annotated[int, Field(ge=0)] | None = None
    eos: Literal["hold", "stop"] = "hold"
    force: str | None = None
    sample: Sample | None = None

    @property
    def never(self) -> bool:
        """Whether nothing is generated."""
        return self.force is None and not self.steps


def _decode(value: object) -> object:
    if isinstance(value, int) and whole(value):
        if value < 0:
            raise mismatch("at least 0")
        return {"steps": value}
    if isinstance(value, dict | Decode):
        return value
    raise mismatch("a number of steps or an object")


AnyDecode = Annotated[Decode, BeforeValidator(_decode, json_schema_input_type=int | Decode)]


class Intervention(Node):
    """Reads, writes, the models they make, and what is scored."""

    reads: Annotated[dict[Name, Read], Field(json_schema_extra=SOME)]
    writes: dict[Name, Write] = {}
    models: dict[Name, IntervenedModel] = {}
    metrics: dict[Name, AnyMetric] = {}
    decode: AnyDecode = Decode(steps=0)
    generation: Settings = {}


class Output(Node):
    """A tensor a step publishes to later steps and to its saves."""

    read: Name
    reduce: Literal["none", "mean", "pca"] = "none"
    k: int | None = None


class Save(Node):
    """A value to write to a file of the point's directory."""

    value: str
    file_path: str


def _output(value: object) -> object:
    if isinstance(value, str):
        return {"read": value}
    if isinstance(value, dict | Output):
        return value
    raise mismatch("a read's name or an object")


AnyOutput = Annotated[Output, BeforeValidator(_output, json_schema_input_type=Name | Output)]
Used = Name | Intervention


def _used(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    if value is None or isinstance(value, str | dict | tuple | Intervention):
        return value
    raise mismatch("an intervention's name, an intervention, or a list of them")


class Observe(Node):
    """Run interventions on rows and keep what was asked for.

    `interventions` is what the document gave: one, a list (a nested plan, one child each) or nothing (the only one
    there is); `spec.steps.children` resolves it.
    """

    kind: Literal["observe"]
    rows: dict[Name, str]
    interventions: Annotated[
        Used | tuple[Used, ...] | None,
        BeforeValidator(_used, json_schema_input_type=Used | tuple[Used, ...] | None),
    ] = None
    outputs: dict[Name, AnyOutput] = {}
    saves: Annotated[tuple[Save, ...], FromList] = ()

    @property
    def nested(self) -> bool:
        """Whether it is a plan of its own, with a directory for every intervention."""
        return isinstance(self.interventions, tuple)


class Document(Node):
    """One experiment."""

    schema_: Annotated[str | None, Field(alias="$schema")] = None
    format: Literal["causalab-mini/1"] = "causalab-mini/1"
    header: Header = Header()
    model: Model
    roles: Annotated[dict[Name, Role], Field(json_schema_extra=SOME)]
    sites: dict[Name, Site]
    featurizers: dict[Name, Featurizer] = {}
    interventions: dict[Name, Intervention] = {}
    steps: Annotated[dict[Name, Observe], Field(json_schema_extra=SOME)]
