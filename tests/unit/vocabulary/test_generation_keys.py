"""Every key of transformers' GenerationConfig stands in exactly one class."""

from __future__ import annotations

from collections import Counter

import pytest

from causalab_mini.vocabulary.generation import KEYS, SETTINGS, TABLE, Class, normal, token_ids


def test_every_key_of_this_release_stands_in_the_table_once() -> None:
    from transformers import GenerationConfig

    own = set(GenerationConfig().to_dict()) | set(vars(GenerationConfig()))
    assert {key.name for key in TABLE} == own
    assert Counter(key.name for key in TABLE).most_common(1)[0][1] == 1
    assert set(SETTINGS) == own - {"transformers_version", "_from_model_config"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("max_length", Class.LENGTH),
        ("max_new_tokens", Class.LENGTH),
        ("num_beams", Class.FRAME),
        ("guidance_scale", Class.FRAME),
        ("cache_implementation", Class.FRAME),
        ("prefill_chunk_size", Class.FRAME),
        ("num_assistant_tokens", Class.FRAME),
        ("stop_strings", Class.FRAME),
        ("max_time", Class.FRAME),
        ("do_sample", Class.SAMPLING),
        ("top_h", Class.SAMPLING),
        ("repetition_penalty", Class.PROCESSOR),
        ("min_length", Class.PROCESSOR),
        ("forced_eos_token_id", Class.PROCESSOR),
        ("num_return_sequences", Class.OUTPUT),
        ("output_scores", Class.OUTPUT),
        ("eos_token_id", Class.TOKEN_IDS),
        ("transformers_version", Class.RECORD),
    ],
)
def test_classes(name: str, kind: Class) -> None:
    assert KEYS[name].kind is kind


def test_defaults_that_transformers_fills_in_change_nothing_unless_they_choose() -> None:
    """Of the library's own defaults, the table calls all idle but the length and the 50 tokens it samples from."""
    from transformers import GenerationConfig

    filled = GenerationConfig()._get_default_generation_params()
    assert {key for key, value in filled.items() if KEYS[key].acts(value)} == {
        *("max_length", "top_k"),
        *("num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold"),
        *("assistant_lookbehind", "target_lookbehind"),
    } & set(filled)


FITTING = [
    ("repetition_penalty", 1.3, [0, -1.0, "1.3", True, [1]]),
    ("no_repeat_ngram_size", 2, [-1, 2.0, True]),
    ("min_new_tokens", 3, [-1, "3"]),
    ("suppress_tokens", [3, 4], [3, [-1], ["a"], [[3]]]),
    ("bad_words_ids", [[3], [4, 5]], [[], [3], [[]], [[-1]]]),
    ("sequence_bias", [[[3, 4], -2.0]], [[], [[3, -2.0]], {"3": 1.0}]),
    ("forced_bos_token_id", 4, [[4], -1]),
    ("forced_eos_token_id", [1, 2], [[], "1"]),
    ("exponential_decay_length_penalty", [2, 1.5], [[2], [1.5, 2], 2]),
    ("remove_invalid_values", True, [1, "true"]),
    (
        "watermarking_config",
        {"bias": 2.5, "seeding_scheme": "lefthash"},
        [{"greenlist": 1}, {"seeding_scheme": "x"}, 3],
    ),
]


@pytest.mark.parametrize(("name", "good", "bad"), FITTING, ids=[name for name, _, _ in FITTING])
def test_what_a_value_must_be(name: str, good: object, bad: list[object]) -> None:
    shape = KEYS[name].shape
    assert shape is not None
    assert shape.fits(good)  # type: ignore[arg-type]
    assert not any(shape.fits(value) for value in bad)  # type: ignore[arg-type]


def test_the_ids_inside_a_value() -> None:
    assert token_ids("bad_words_ids", [[3], [4, 5]]) == {3, 4, 5}
    assert token_ids("sequence_bias", [[[3, 4], -2.0], [[9], 1]]) == {3, 4, 9}
    assert token_ids("forced_eos_token_id", 7) == token_ids("forced_eos_token_id", [7]) == {7}
    assert token_ids("repetition_penalty", 7) == token_ids("suppress_tokens", None) == frozenset()


def test_a_number_has_one_spelling() -> None:
    assert str(normal("repetition_penalty", 1)) == "1.0"
    assert str(normal("min_length", 1)) == "1"
