"""Layers of generation settings: which value holds, where it comes from, and what contradicts the decode.

The weakest layer comes first: the checkpoint's own settings, the document's, an intervention's, the command line's.
Knows no checkpoint and no rows: what they say comes in a `Lock`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from causalab_mini.errors import Problem, join, nearest
from causalab_mini.spec.document import Decode, Sample
from causalab_mini.vocabulary.generation import KEYS, LOCKED, PROCESSORS, SETTINGS, Class, Json, normal, same, token_ids

CHECKPOINT = "checkpoint"
COMMAND = "--gen"


@dataclass(frozen=True)
class Layer:
    """Settings of one source, and the place in the document where they are stated ("" for none)."""

    source: str
    path: str
    values: Mapping[str, Json]


COMMANDED_NOTHING = Layer(COMMAND, "", {})


def spelled(layer: Layer) -> dict[str, str]:
    """The values of a layer whose keys are all known, as JSON text."""
    return {key: _text(normal(key, value)) for key, value in layer.values.items()}


@dataclass(frozen=True)
class Setting:
    """A setting that holds, its value as JSON text, and the source it comes from. `path`: where it is stated."""

    key: str
    text: str
    source: str
    path: str

    @property
    def value(self) -> Json:
        """The value itself."""
        return cast(Json, json.loads(self.text))

    @property
    def acts(self) -> bool:
        """Whether it changes which token comes next."""
        return KEYS[self.key].kind is Class.PROCESSOR and KEYS[self.key].acts(self.value)

    @property
    def spelled(self) -> str:
        """`repetition_penalty=1.3 (model.generation)`."""
        return f"{self.key}={self.text} ({self.source})"


@dataclass(frozen=True)
class Lock:
    """What a decode decides. `steps` is None while a forced column has not been read.

    `ends`: the ids that end a text, None while no checkpoint is known; `ids`: the checkpoint's other special ids.
    """

    path: str
    decode: Decode
    steps: int | None
    ends: frozenset[int] | None = None
    ids: Mapping[str, Json] | None = None

    @property
    def how(self) -> str:
        """How a token is chosen."""
        if self.decode.force is not None:
            return f"it feeds the column '{self.decode.force}'"
        return "it is greedy" if self.decode.sample is None else f"it samples with {sampled(self.decode.sample)}"


def sampled(sample: Sample) -> str:
    """`temperature=0.8 top_p=0.9 seed=3`."""
    return " ".join(f"{key}={value}" for key, value in sample.model_dump(exclude_none=True).items())


def merged(layers: Sequence[Layer]) -> tuple[Setting, ...]:
    """What holds of all layers, by key: the strongest that states a key decides it; null takes it away.

    The layers are left as they are. Keys that are not known, and records, set nothing. `min_new_tokens`, even 0, is
    in place of `min_length`, as in `generate`.
    """
    found: dict[str, Setting] = {}
    for layer in layers:
        for key, value in layer.values.items():
            if key not in KEYS or KEYS[key].kind is Class.RECORD:
                continue
            found.pop(key, None)
            if value is not None:
                path = layer.path if layer.source in (CHECKPOINT, COMMAND) else join(layer.path, key)
                found[key] = Setting(key, _text(normal(key, value)), layer.source, path)
    if "min_new_tokens" in found:
        found.pop("min_length", None)
    return tuple(found[key] for key in sorted(found))


def misfits(layer: Layer) -> Iterator[Problem]:
    """Keys that are none, and values that are not what their key needs."""
    for key, value in layer.values.items():
        path = join(layer.path, key) if layer.path else ""
        said = "" if layer.path else f"{layer.source} "
        if key not in KEYS:
            message = f"{said}'{key}' is not a generation setting"
            close = nearest(key, SETTINGS)
            meant = f"did you mean '{close}'? " if close else ""
            yield Problem(path, message, f"{meant}free to be stated are: {', '.join(PROCESSORS)}")
        elif KEYS[key].kind is Class.RECORD:
            message = f"{said}'{key}' says where a generation_config comes from, and sets nothing"
            yield Problem(path, message, "leave it out")
        elif value is not None and (shape := KEYS[key].shape) is not None and not shape.fits(value):
            yield Problem(path, f"{said}'{key}': {shape.needed} is needed, and {_text(value)} was found")


def contradictions(settings: Sequence[Setting], lock: Lock) -> Iterator[Problem]:
    """What is stated and what the decode decides, where they are not the same. Both are named with their sources."""
    for setting in settings:
        why = _contradiction(setting, lock)
        if why is not None:
            found = f"'{setting.key}' is {setting.text} ({setting.source}), and {why[0]}"
            yield Problem(setting.path, found, why[1])
    yield from _undone(settings, lock)


def _undone(settings: Sequence[Setting], lock: Lock) -> Iterator[Problem]:
    """Tokens that are forced and all suppressed, so that none is left."""
    found = {setting.key: setting for setting in settings if setting.acts and lock.decode.force is None}
    held = found.get("suppress_tokens")
    for forced in (found.get("forced_bos_token_id"), found.get("forced_eos_token_id")):
        if forced is None or held is None:
            continue
        if not token_ids(forced.key, forced.value) <= token_ids(held.key, held.value):
            continue
        message = (
            f"'{forced.key}' is {forced.text} ({forced.source}), and '{held.key}' is {_shortened(held.text)} "
            f"({held.source}): no token is left where one is forced"
        )
        hint = "leave one of them out"
        if COMMAND not in (forced.source, held.source):
            hint += f', or say "{forced.key}": null in a stronger layer'
        yield Problem(forced.path, message, hint)


def _shortened(text: str, most: int = 60) -> str:
    """A list as JSON text, its end left out where it is long."""
    return text if len(text) <= most else f"{text[: most - 5].rsplit(', ', 1)[0]}, ...]"


def _contradiction(setting: Setting, lock: Lock) -> tuple[str, str] | None:
    key, value = KEYS[setting.key], setting.value
    null = "leave it out"
    if setting.source != COMMAND:
        null += f', or say "{setting.key}": null in a stronger layer'
    if key.kind is Class.SAMPLING:
        agreed = _sampling(lock.decode.sample).get(setting.key)
        if same(value, agreed) or (not key.acts(value) and not key.acts(agreed)):
            return None
        hint = f'{null}; "decode": {{"steps": N, "sample": {{"temperature": T, "seed": S}}}} samples'
        return f"how tokens are chosen is for decode: {lock.how} ({lock.path})", hint
    if setting.key == "max_new_tokens" and value == lock.steps:
        return None
    if key.kind in LOCKED and key.acts(value):
        return f"{_OWNED[key.kind]} ({lock.path})", null
    if key.kind is Class.TOKEN_IDS and setting.source != CHECKPOINT and lock.ends is not None:
        return _token_ids(setting, lock)
    if setting.acts and lock.decode.force is not None:
        return f"no token is chosen: {lock.how} ({lock.path}.force)", null
    held = lock.ends if lock.decode.eos == "hold" and lock.ends is not None else frozenset[int]()
    if setting.key in ("forced_bos_token_id", "forced_eos_token_id") and held & token_ids(setting.key, value):
        return f"an id that ends a text is never picked under eos: hold ({lock.path})", f'{null}; or "eos": "stop"'
    if setting.key == "exponential_decay_length_penalty" and lock.ends is not None and not lock.ends:
        return "the checkpoint has no id that ends a text (checkpoint)", null
    return None


_OWNED = {
    Class.LENGTH: "how long a row goes on is for the steps of decode",
    Class.FRAME: "decode runs every row as one sequence, one plain step after the other",
    Class.OUTPUT: "decode gives every row one continuation, and reads say what else is kept",
}


def _sampling(sample: Sample | None) -> Mapping[str, Json]:
    return {} if sample is None else {"do_sample": True, **sample.model_dump(exclude={"seed"})}


def _token_ids(setting: Setting, lock: Lock) -> tuple[str, str] | None:
    value = setting.value
    if setting.key == "eos_token_id":
        told: Json = [*sorted(lock.ends or ())]
        agree = token_ids(setting.key, value) == lock.ends
    else:
        told = (lock.ids or {}).get(setting.key)
        agree = value == told
    return None if agree else (f"the checkpoint's is {_text(told)} (checkpoint)", "leave it out")


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
