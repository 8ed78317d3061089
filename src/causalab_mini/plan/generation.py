"""The generation settings of a forward: the layers that are there, what holds of them, and how that is told.

Knows the checkpoint's generation_config as facts; refuses to know how a setting acts (`run.picking`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.errors import Problem
from causalab_mini.plan.nodes import Decoding, Experiment, Forward
from causalab_mini.spec.check.generation import MODEL, stated
from causalab_mini.spec.children import Child
from causalab_mini.spec.document import Document
from causalab_mini.spec.generation import (
    CHECKPOINT,
    Layer,
    Lock,
    Setting,
    contradictions,
    merged,
    misfits,
    sampled,
)
from causalab_mini.vocabulary.generation import KEYS, Class, token_ids

UNUSED = (Class.RECORD, Class.TOKEN_IDS)
"""What of a generation_config is no setting to be ignored: its ids are used wherever they stand."""


def layers(document: Document, child: Child, checkpoint: Checkpoint, command: Layer) -> tuple[Layer, ...]:
    """Everything that may set something in an intervention, the weakest first."""
    path = f"{child.path}.generation"
    own = Layer(path, path, child.intervention.generation)
    lowest = stated(document)
    if document.model.generation == CHECKPOINT:
        known = {key: value for key, value in checkpoint.generation_config.items() if key in KEYS}
        lowest = Layer(CHECKPOINT, MODEL, known)
    return (lowest, own, command)


def effective(
    each: Sequence[Layer], child: Child, steps: int, checkpoint: Checkpoint
) -> tuple[tuple[Setting, ...], tuple[Problem, ...]]:
    """The settings that hold in a decode of `steps` tokens, and what is wrong with them."""
    wrong = [problem for layer in each if layer.source == CHECKPOINT for problem in misfits_of(layer)]
    settings = merged(each)
    if wrong:
        return settings, tuple(wrong)
    lock = Lock(
        f"{child.path}.decode",
        child.intervention.decode,
        steps,
        checkpoint.eos_ids,
        checkpoint.generation_config,
    )
    found = [*contradictions(settings, lock), *_outside(settings, checkpoint.vocab)]
    return settings, tuple(found)


def misfits_of(layer: Layer) -> Iterator[Problem]:
    """What is wrong with the checkpoint's own settings, told where the document asks for them."""
    told = Layer("the checkpoint's", "", {k: v for k, v in layer.values.items() if KEYS[k].kind is not Class.RECORD})
    for problem in misfits(told):
        yield Problem(layer.path, problem.message, "say what should hold instead, in an object of settings")


def _outside(settings: Sequence[Setting], vocab: int) -> Iterator[Problem]:
    """Ids that are no token."""
    for setting in settings:
        wrong = sorted(token for token in token_ids(setting.key, setting.value) if token >= vocab)
        if wrong and setting.acts:
            message = f"'{setting.key}' ({setting.source}) names the id {wrong[0]}, and there are {vocab} tokens"
            yield Problem(setting.path, message, f"ids go from 0 to {vocab - 1}")


def ignored(checkpoint: Checkpoint) -> tuple[str, ...]:
    """The keys of the checkpoint's generation_config that would change something and take no part under "neutral"."""
    own = checkpoint.generation_config.items()
    acting = (key for key, value in own if (value is not None if key not in KEYS else KEYS[key].acts(value)))
    return tuple(sorted(key for key in acting if key not in KEYS or KEYS[key].kind not in UNUSED))


def spelled(decoding: Decoding) -> str:
    """`greedy N=6 (lock); eos held off; repetition_penalty=1.3 (model.generation); 1 checkpoint key ignored: top_p`."""
    how = f"greedy N={decoding.steps}"
    if decoding.sample is not None:
        how = f"sampled N={decoding.steps} {sampled(decoding.sample)}"
    if decoding.forced is not None:
        how = f"forced by '{decoding.column}' N={decoding.steps}"
    parts = [f"{how} (lock)"]
    if decoding.forced is None:
        parts.append("a row ends at its first eos" if decoding.stops else "eos held off")
    parts += [setting.spelled for setting in decoding.settings if setting.acts or setting.source != CHECKPOINT]
    if decoding.ignored:
        count = f"{len(decoding.ignored)} checkpoint key{'s' * (len(decoding.ignored) > 1)}"
        parts.append(f"{count} ignored: {', '.join(decoding.ignored)}")
    return "; ".join(parts)


def settings_record(decoding: Decoding) -> dict[str, object]:
    """What a decode does and where each part of it comes from, as JSON."""
    document = "document"
    selection: dict[str, object] = {"value": "argmax of the raw logits", "source": "language"}
    if decoding.forced is not None:
        selection = {"value": f"the tokens of the column '{decoding.column}'", "source": document}
    elif decoding.sample is not None:
        drawn = "a sample of the processed logits" if decoding.processors else "a sample of the raw logits"
        selection = {"value": drawn, "source": document, **decoding.sample.model_dump()}
    elif decoding.processors:
        selection = {"value": "argmax of the processed logits", "source": "settings"}
    eos = {"value": "stop", "source": document} if decoding.stops else {"value": "hold", "source": "default"}
    if decoding.forced is not None:
        eos = {"value": "not chosen", "source": document}
    used = decoding.ignored is None
    return {
        "steps": {"value": decoding.steps, "source": document},
        "selection": selection,
        "eos": eos,
        "generation_config": {
            "value": "used" if used else "not used",
            "source": document if used else "language",
            "ignored": list(decoding.ignored or ()),
        },
        "settings": {one.key: {"value": one.value, "source": one.source} for one in decoding.settings},
        "text": spelled(decoding),
    }


def explain_generation(experiment: Experiment) -> str:
    """The settings of every forward that decodes, one line for all that have the same; "" where none does."""
    found: dict[str, list[str]] = {}
    for point in experiment.points:
        for observe in point.plan.observes():
            for forward in observe.forwards:
                if forward.decode:
                    name = f"{'/'.join(observe.path)} {forward_name(forward)}"
                    found.setdefault(spelled(forward.decoding), []).append(name)
    if len(found) == 1:
        return f"generation: {next(iter(found))}"
    return "\n".join(f"generation of {', '.join(dict.fromkeys(names))}: {said}" for said, names in found.items())


def forward_name(forward: Forward) -> str:
    """`patched on base`."""
    return f"{forward.model} on {forward.role}"
