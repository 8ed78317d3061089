"""What a mode comes to: its passes, its promise, and what of a checkpoint the schedule looks at."""

from pathlib import Path

import pytest
from tests.schedules import applied, edit, lane, logits, naive
from tests.words import LETTERS, facts, write_shape

from causalab_mini.checkpoint.families import CAPABILITIES
from causalab_mini.schedule import optimize
from causalab_mini.schedule.cost import Cost, call_cost, cost
from causalab_mini.schedule.ir import Entry, LaneValue
from causalab_mini.schedule.keeps import handed_up
from causalab_mini.schedule.limits import Limits, Shape
from causalab_mini.schedule.optimize import Promise, settled
from causalab_mini.schedule.prepare import prepare
from causalab_mini.schedule.rename import renamed

SHAPE = Shape(3, vocab=1, column=1, cache=1)


def names(mode: optimize.Mode) -> list[str]:
    return [step.name for step in optimize.PASSES if mode in step.modes]


def test_modes_are_passes_in_an_order() -> None:
    assert names("naive") == ["window rows", "cut at states"]
    assert names("exact") == ["drop", "trim", "merge", "share prefill", "window rows", "cut at states"]
    shared = ["unique rows", "share prefix", "skip layers", "stack points"]
    assert names("fast") == ["drop", "trim", "merge", *shared, "cut at states", "finish points"]
    exact = [step for step in optimize.PASSES if "exact" in step.modes and step.name != "window rows"]
    assert {step.promise for step in exact} == {Promise.EXACT}


def test_auto_is_fast_in_full_precision_and_exact_in_half() -> None:
    assert settled("auto", half=False) == "fast"
    assert settled("auto", half=True) == "exact"
    assert settled("naive", half=True) == "naive"


def test_passes_that_change_nothing_are_not_named() -> None:
    one = naive([lane([3, 4], [logits(1)])], wanted=[(0, logits(1))])
    again = naive([lane([3, 4], [logits(1)])], [lane([3, 4], [logits(1)])])
    assert optimize.optimize(one, "exact", Limits(), SHAPE) == (one, ())
    _, found = optimize.optimize(again, "exact", Limits(), SHAPE)
    assert [step.name for step in found] == ["merge"]


def test_nothing_is_left_to_unite_a_second_time() -> None:
    source = lane([3, 4, 5], [logits(2)])
    before = naive([source], [source], [lane([3, 4, 5], [logits(2)], [edit(1, (1,))], 3)], heard=[2])
    once, _ = optimize.optimize(before, "exact", Limits(), SHAPE)
    twice, _ = optimize.optimize(once, "exact", Limits(), SHAPE)
    assert twice.calls == once.calls


def test_costs_by_hand() -> None:
    schedule = naive(
        [lane([3, 4, 5], [logits(2)]), lane([6], [logits(0)])], [lane([3, 4], decode=4), lane([5, 6], decode=4)]
    )
    first, second = schedule.calls
    assert call_cost(schedule, first, 5) == Cost(1, 2 * 3 * 5)
    assert call_cost(schedule, second, 5) == Cost(1, 2 * 2 * 5 + 2 * 3 * 5)
    assert cost(schedule, 5) == Cost(2, 30 + 50)
    assert Cost(1, 2) + Cost(3, 4) == Cost(4, 6)


def test_a_lane_that_enters_late_costs_the_blocks_it_runs() -> None:
    write = edit(1, (2,), LaneValue(0, logits(2)))
    clean = lane([3, 4, 5], [logits(2)])
    after = applied(applied(naive([clean], [lane([3, 4, 5], [logits(2)], [write])]), "share prefix"), "skip layers")
    after = applied(after, "stack points")
    assert after.lanes[1].entry == Entry(2, 0)
    assert call_cost(after, after.calls[1], 3) == Cost(1, 1)


def test_renaming_reaches_arguments_rows_and_what_is_wanted() -> None:
    source = lane([3, 4], [logits(1)])
    schedule = naive([source], [source], [lane([5, 6], [], [edit(1, (1,), LaneValue(1, logits(1)))], 2)], heard=[1, 2])
    after = renamed(schedule, {1: 0})
    assert after.lanes[2].edits[0].argument == LaneValue(0, logits(1))
    assert list(after.bindings.values()) == [(0,), (0,), (2,)]
    assert after.wanted == {(0, logits(1))}
    assert after.heard == {0, 2}
    assert renamed(schedule, {}) is schedule


def test_values_stay_with_lanes_that_start_at_the_beginning() -> None:
    schedule = naive([lane([3, 4], [logits(1)])], [lane([5], [logits(0)])])
    assert handed_up(schedule) == schedule


@pytest.mark.parametrize("family", [row.model_type for row in CAPABILITIES])
def test_no_family_slides_unnoticed(family: str, tmp_path: Path) -> None:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = CONFIG_MAPPING[family]()
    slides = "sliding_attention" in (getattr(config, "layer_types", None) or ()) or family == "mistral"
    sizes = {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 32}
    if (mixer := next(row.mixer for row in CAPABILITIES if row.model_type == family)) is not None:
        words = (mixer.key_heads, mixer.key_width, mixer.value_heads, mixer.value_width)
        sizes |= {word: getattr(config, word) for word in words if word is not None}
    checkpoint = facts(write_shape(tmp_path / "shape", LETTERS, **sizes, model_type=family))
    assert checkpoint.config.window == (config.sliding_window if slides else None)


@pytest.mark.parametrize(
    ("config", "window"),
    [
        # Whatever the family: what a config names may hold, and costs little where it does not.
        ({"model_type": "llama", "sliding_window": 8}, 8),
        ({"model_type": "mistral", "sliding_window": 8}, 8),
        ({"model_type": "mistral", "sliding_window": None}, None),
        ({"model_type": "mistral"}, 4096),
        ({"model_type": "qwen2", "sliding_window": 8}, None),
        ({"model_type": "qwen3", "sliding_window": 8, "use_sliding_window": True}, 8),
    ],
)
def test_a_windows_size_is_the_configs(config: dict, window: int | None, tmp_path: Path) -> None:
    sizes = {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2, "vocab_size": 32}
    checkpoint = facts(write_shape(tmp_path / "shape", LETTERS, **sizes, **config))
    assert checkpoint.config.window == window
    assert prepare([], checkpoint, "fast").shape.window == window
