"""Generation settings: every key of transformers' GenerationConfig, what kind of setting it is and who decides it.

A table and the checks of single values. Refuses to know layers (`spec.generation`) and how a setting acts (`run`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from causalab_mini.vocabulary.node import whole

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Class(Enum):
    """What a key is about. `decode` decides lengths, sampling, frames and outputs; processors are free to be stated."""

    LENGTH = "length"
    FRAME = "frame-breaking"
    SAMPLING = "sampling"
    PROCESSOR = "token processors"
    OUTPUT = "output shape"
    TOKEN_IDS = "token ids"
    RECORD = "record"


LOCKED = (Class.LENGTH, Class.FRAME, Class.SAMPLING, Class.OUTPUT)
"""What belongs to `decode`."""


@dataclass(frozen=True)
class Shape:
    """What a value must be: `needed` reads on with "is needed"; `ids` are the token ids inside a value that fits."""

    needed: str
    fits: Callable[[Json], bool]
    ids: Callable[[Json], Iterator[int]] = lambda value: iter(())


@dataclass(frozen=True)
class Key:
    """One setting. `idle`: the values that change nothing, null beside them."""

    name: str
    kind: Class
    idle: tuple[Json, ...] = ()
    shape: Shape | None = None

    def acts(self, value: Json) -> bool:
        """Whether `value` changes anything."""
        return value is not None and not any(same(value, idle) for idle in self.idle)


def same(one: Json, other: Json) -> bool:
    """Whether two values are equal; true is not 1."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Json) -> bool:
    return isinstance(value, int) and whole(value) and value >= 0


def _list(value: Json, fits: Callable[[Json], bool], least: int = 0) -> bool:
    return isinstance(value, list) and len(value) >= least and all(fits(item) for item in value)


def _ids(value: Json) -> Iterator[int]:
    """The ids of an id, a list of ids, or a list of such lists."""
    if isinstance(value, int):
        yield value
    for item in value if isinstance(value, list) else ():
        yield from _ids(item)


def _words(value: Json) -> bool:
    return _list(value, lambda word: _list(word, _count, 1), 1)


def _biased(value: Json) -> bool:
    return _list(value, lambda pair: isinstance(pair, list) and len(pair) == 2 and _bias(pair[0], pair[1]), 1)


def _bias(word: Json, bias: Json) -> bool:
    return _list(word, _count, 1) and _number(bias)


def _biased_ids(value: Json) -> Iterator[int]:
    for pair in value if isinstance(value, list) else ():
        yield from _ids(pair[0]) if isinstance(pair, list) else ()


def _decay(value: Json) -> bool:
    return isinstance(value, list) and len(value) == 2 and _count(value[0]) and _number(value[1])


_MARKED: dict[str, Callable[[Json], bool]] = {
    "greenlist_ratio": lambda value: isinstance(value, float) and 0 < value < 1,
    "bias": _number,
    "hashing_key": _count,
    "seeding_scheme": lambda value: value in ("lefthash", "selfhash"),
    "context_width": lambda value: _count(value) and value != 0,
}


def _marking(value: Json) -> bool:
    return isinstance(value, dict) and all(key in _MARKED and _MARKED[key](item) for key, item in value.items())


NUMBER = Shape("a number above 0", lambda value: isinstance(value, int | float) and _number(value) and value > 0)
COUNT = Shape("an integer from 0 on", _count)
FLAG = Shape("true or false", lambda value: isinstance(value, bool))
ID = Shape("a token id", _count, _ids)
IDS = Shape("a list of token ids", lambda value: _list(value, _count), _ids)
ONE_OR_MORE = Shape("a token id or a list of them", lambda value: _count(value) or _list(value, _count, 1), _ids)
WORDS = Shape("a list of lists of token ids", _words, _ids)
BIASES = Shape("a list of [[token ids], bias]", _biased, _biased_ids)
DECAY = Shape("[a step, a factor]", _decay)
MARK = Shape(f"an object of {', '.join(_MARKED)}", _marking)


def _of(kind: Class, *names: str, idle: tuple[Json, ...] = (), shape: Shape | None = None) -> tuple[Key, ...]:
    return tuple(Key(name, kind, idle, shape) for name in names)


_L, _F, _S, _P, _O = Class.LENGTH, Class.FRAME, Class.SAMPLING, Class.PROCESSOR, Class.OUTPUT

TABLE: tuple[Key, ...] = (
    *_of(_L, "max_length", "max_new_tokens"),
    # Beams and other searches over more than one sequence.
    *_of(_F, "num_beams", "num_beam_groups", idle=(1,)),
    *_of(_F, "low_memory", "early_stopping", "is_assistant", "use_mtp", "token_healing", idle=(False,)),
    *_of(_F, "diversity_penalty", idle=(0, 0.0)),
    *_of(_F, "length_penalty", "guidance_scale", idle=(1, 1.0)),
    *_of(_F, "constraints", "force_words_ids", "penalty_alpha", "dola_layers"),
    # Assistants that guess tokens ahead.
    *_of(_F, "assistant_confidence_threshold", "assistant_early_exit", "assistant_ensemble_weight"),
    *_of(_F, "assistant_lookbehind", "target_lookbehind", "num_assistant_tokens", "num_assistant_tokens_schedule"),
    *_of(_F, "prompt_lookup_num_tokens", "max_matching_ngram_size", "speculation_type"),
    # Caches, chunks and compilation.
    *_of(_F, "use_cache", idle=(True,)),
    *_of(_F, "cache_implementation", "cache_config", "max_cache_len", "prefill_chunk_size"),
    *_of(_F, "compile_config", "continuous_batching_config"),
    *_of(_F, "disable_compile", idle=(False, True)),
    # Stops by time or text.
    *_of(_F, "max_time", "stop_strings"),
    *_of(_S, "do_sample", idle=(False,)),
    *_of(_S, "temperature", "top_p", "typical_p", idle=(1, 1.0)),
    *_of(_S, "top_k", "min_p", "epsilon_cutoff", "eta_cutoff", idle=(0, 0.0)),
    *_of(_S, "top_h"),
    *_of(_P, "repetition_penalty", "encoder_repetition_penalty", idle=(1, 1.0), shape=NUMBER),
    *_of(_P, "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", idle=(0,), shape=COUNT),
    *_of(_P, "min_length", "min_new_tokens", idle=(0,), shape=COUNT),
    *_of(_P, "suppress_tokens", "begin_suppress_tokens", idle=([],), shape=IDS),
    *_of(_P, "bad_words_ids", shape=WORDS),
    *_of(_P, "sequence_bias", shape=BIASES),
    *_of(_P, "forced_bos_token_id", shape=ID),
    *_of(_P, "forced_eos_token_id", shape=ONE_OR_MORE),
    *_of(_P, "exponential_decay_length_penalty", shape=DECAY),
    *_of(_P, "remove_invalid_values", "renormalize_logits", idle=(False,), shape=FLAG),
    *_of(_P, "watermarking_config", shape=MARK),
    *_of(_O, "num_return_sequences", idle=(1,)),
    *_of(_O, "output_attentions", "output_hidden_states", "output_logits", "output_scores", idle=(False,)),
    *_of(_O, "return_dict_in_generate", idle=(False, True)),
    *_of(Class.TOKEN_IDS, "bos_token_id", "pad_token_id", "decoder_start_token_id", shape=ID),
    *_of(Class.TOKEN_IDS, "eos_token_id", shape=ONE_OR_MORE),
    *_of(Class.RECORD, "transformers_version", "_from_model_config"),
)

KEYS: dict[str, Key] = {key.name: key for key in TABLE}
SETTINGS: tuple[str, ...] = tuple(sorted(key.name for key in TABLE if key.kind is not Class.RECORD))
"""What a document may name."""

PROCESSORS: tuple[str, ...] = tuple(sorted(key.name for key in TABLE if key.kind is Class.PROCESSOR))


def token_ids(name: str, value: Json) -> frozenset[int]:
    """The token ids inside a value of the setting `name`."""
    shape = KEYS[name].shape
    return frozenset() if shape is None or value is None else frozenset(shape.ids(value))


def normal(name: str, value: Json) -> Json:
    """`value` in its one spelling: 1 is 1.0 where a number is meant."""
    return float(value) if KEYS[name].shape is NUMBER and isinstance(value, int | float) else value
