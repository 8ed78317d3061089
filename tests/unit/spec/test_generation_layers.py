"""Which layer decides a setting, where it comes from, and what a decode refuses; no checkpoint, no rows."""

from __future__ import annotations

import copy
from itertools import combinations

import pytest
from tests.unit.spec.build import changed, document

from causalab_mini.spec.digest import digest
from causalab_mini.spec.document import Decode, Sample
from causalab_mini.spec.generation import COMMAND, Layer, Lock, Setting, contradictions, merged
from causalab_mini.spec.load import load
from causalab_mini.vocabulary.generation import Json

SOURCES = ("checkpoint", "model.generation", "interventions.swap.generation", COMMAND)
"""The weakest first."""

PAIRS = list(combinations(SOURCES, 2))

GREEDY = Lock("interventions.swap.decode", Decode(steps=6), 6, frozenset({1, 2}), {"pad_token_id": 0})
SAMPLING = Lock("d", Decode(steps=6, sample=Sample(temperature=0.7, top_k=5, seed=3)), 6, frozenset({1}), {})
FORCED = Lock("d", Decode(force="said"), 4, frozenset({1}), {})

BY_CLASS: dict[str, tuple[str, Json, Json]] = {
    "length": ("max_new_tokens", 7, 6),
    "frame-breaking": ("num_beams", 4, 1),
    "sampling": ("do_sample", True, False),
    "token processors": ("repetition_penalty", 1.3, 1.7),
    "output shape": ("num_return_sequences", 3, 1),
    "token ids": ("eos_token_id", 9, [1, 2]),
}
"""A key of each class, with two values: what a decode of 6 greedy tokens contradicts, and what agrees with it."""


def layer(source: str, **values: Json) -> Layer:
    return Layer(source, "" if source == COMMAND else source, values)


@pytest.mark.parametrize("kind", BY_CLASS)
@pytest.mark.parametrize(("weak", "strong"), PAIRS)
def test_the_stronger_layer_decides(weak: str, strong: str, kind: str) -> None:
    key, one, other = BY_CLASS[kind]
    for below, above in ((one, other), (other, one)):
        layers = (layer(weak, **{key: below}), layer(strong, **{key: above}))
        before = copy.deepcopy([dict(each.values) for each in layers])
        (setting,) = merged(layers)
        assert (setting.key, setting.value, setting.source) == (key, above, strong)
        assert [dict(each.values) for each in layers] == before
        # A setting contradicts the decode by the value that holds, whatever is below it.
        wrong = list(contradictions([setting], GREEDY))
        if kind == "token processors" or above == other or (strong == "checkpoint" and kind == "token ids"):
            assert wrong == []
        else:
            (problem,) = wrong
            assert f"'{key}' is " in problem.message
            assert f"({strong})" in problem.message
            named = "(checkpoint)" if kind == "token ids" else "(interventions.swap.decode)"
            assert named in problem.message
            assert problem.path == ("" if strong == COMMAND else f"{strong}.{key}")


@pytest.mark.parametrize(("weak", "strong"), PAIRS)
def test_layers_add_up_and_null_takes_away(weak: str, strong: str) -> None:
    layers = (
        layer(weak, repetition_penalty=1.3, no_repeat_ngram_size=2),
        layer(strong, repetition_penalty=None, min_length=4),
    )
    assert merged(layers) == (
        Setting("min_length", "4", strong, f"{strong}.min_length" if strong != COMMAND else ""),
        Setting(
            "no_repeat_ngram_size",
            "2",
            weak,
            weak if weak == "checkpoint" else f"{weak}.no_repeat_ngram_size",
        ),
    )


def test_what_is_no_setting_sets_nothing() -> None:
    assert merged((layer("checkpoint", transformers_version="5", chat_format="chatml"),)) == ()


AGREEING = [
    (GREEDY, {"max_new_tokens": 6, "temperature": 1.0, "top_p": 1, "top_k": 0, "do_sample": False, "use_cache": True}),
    (GREEDY, {"num_beams": 1, "guidance_scale": 1.0, "output_scores": False, "pad_token_id": 0}),
    (SAMPLING, {"do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 1.0}),
    (FORCED, {"repetition_penalty": 1.0, "suppress_tokens": []}),
]


@pytest.mark.parametrize(("lock", "values"), AGREEING, ids=[str(i) for i in range(len(AGREEING))])
def test_what_says_the_same_as_the_decode_is_no_contradiction(lock: Lock, values: dict[str, Json]) -> None:
    assert list(contradictions(merged((layer(COMMAND, **values),)), lock)) == []


CONTRADICTING: list[tuple[Lock, dict[str, Json], str]] = [
    (GREEDY, {"max_length": 20}, "how long a row goes on"),
    (GREEDY, {"temperature": 0.7}, "it is greedy"),
    (GREEDY, {"top_k": 50}, "it is greedy"),
    (GREEDY, {"stop_strings": ["."]}, "one sequence"),
    (GREEDY, {"use_cache": False}, "one sequence"),
    (GREEDY, {"output_attentions": True}, "one continuation"),
    (GREEDY, {"eos_token_id": 1}, "the checkpoint's is [1, 2]"),
    (GREEDY, {"pad_token_id": 5}, "the checkpoint's is 0"),
    (GREEDY, {"forced_eos_token_id": 2}, "never picked under eos: hold"),
    (SAMPLING, {"temperature": 0.8}, "temperature=0.7 top_k=5 seed=3"),
    (SAMPLING, {"do_sample": False}, "it samples"),
    (SAMPLING, {"top_p": 0.9}, "it samples"),
    (FORCED, {"repetition_penalty": 1.3}, "it feeds the column 'said'"),
]


@pytest.mark.parametrize(("lock", "values", "words"), CONTRADICTING, ids=[f"{next(iter(c[1]))}" for c in CONTRADICTING])
def test_contradictions(lock: Lock, values: dict[str, Json], words: str) -> None:
    (problem,) = contradictions(merged((layer(COMMAND, **values),)), lock)
    assert words in problem.message
    assert "(--gen)" in problem.message


def loaded(*edits: tuple[str, object]) -> str:
    import json

    (point,) = load(json.dumps(changed(*edits)).encode(), "d.json").points
    return digest(point.document)


def test_a_document_that_says_nothing_new_keeps_its_digest() -> None:
    plain = loaded()
    for edit in (
        ("model.generation", "neutral"),
        ("model.generation", {}),
        ("model.generation", {"min_length": None}),
        ("interventions.swap.generation", {}),
        ("interventions.swap.decode", {"steps": 3, "sample": None}),
    ):
        assert loaded(edit) == plain, edit
    # SHA-256 of the document with defaults filled in, as it was before there were settings.
    assert plain == "c38db209bd434726f64c0efbf28db49daf6521a8e41e2df02a413849f2930e12"


def test_what_changes_a_token_changes_the_digest() -> None:
    sampled = {"steps": 3, "sample": {"seed": 0}}
    seen = {
        loaded(),
        loaded(("model.generation", "checkpoint")),
        loaded(("model.generation", {"repetition_penalty": 1.3})),
        loaded(("interventions.swap.generation", {"repetition_penalty": 1.3})),
        loaded(("interventions.swap.generation", {"repetition_penalty": None})),
        loaded(("interventions.swap.decode", sampled)),
        loaded(("interventions.swap.decode", {"steps": 3, "sample": {"seed": 1}})),
    }
    assert len(seen) == 7
    same = {"steps": 3, "sample": {"seed": 0, "temperature": 1, "top_k": None}}
    assert loaded(("interventions.swap.decode", sampled)) == loaded(("interventions.swap.decode", same))
    whole, number = ({"repetition_penalty": value} for value in (2, 2.0))
    assert loaded(("model.generation", whole)) == loaded(("model.generation", number))


def test_a_setting_may_be_swept_inside_an_intervention() -> None:
    import json

    swept = changed(("interventions.swap.generation", {"repetition_penalty": {"sweep": [1.0, 1.5]}}))
    points = load(json.dumps(swept).encode(), "d.json").points
    assert [point.label for point in points] == ["repetition_penalty=1.0", "repetition_penalty=1.5"]


def test_the_command_line_makes_another_experiment() -> None:
    import json

    plain = load(json.dumps(document()).encode(), "d.json")
    given = plain.commanded({"repetition_penalty": 1.3})
    assert plain.commanded({}) is plain
    assert len({plain.digest, given.digest, plain.commanded({"repetition_penalty": 1.4}).digest}) == 3
    assert given.digest == given.points[0].digest == plain.commanded({"repetition_penalty": 1.3}).digest
    assert dict(plain.command.values) == {}
