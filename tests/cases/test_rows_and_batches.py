"""A row's values depend on nothing but the row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests import plain
from tests.building import generated, intervention, observing, read, rows, write_table
from tests.desk import Desk, agree

MODELS = ["llama", "gpt2"]
PROMPTS = (
    "Monday, I think, is a day",
    "If today is Thursday, tomorrow is",
    "Friday",
    "The day after Wednesday, said somebody who knows the days of the week, is",
)

Random = Callable[[str, int], Desk]


def alone(desk: Desk, prompt: str, steps: int) -> list[int]:
    ids = desk.world.tokenizer(prompt)["input_ids"]
    return plain.run(desk.network.model, ids, steps=steps, held=desk.world.eos).ids


@pytest.mark.parametrize("model", MODELS)
def test_batch_size_and_order_change_no_id(model: str, random_world: Random, tmp_path: Path) -> None:
    asked = observing(intervention({"x": read("head")}, decode=8), saves=["original.generated"])
    forwards = random_world(model, 64).over(write_table(tmp_path / "f", rows(PROMPTS)))
    backwards = random_world(model, 64).over(write_table(tmp_path / "b", rows(PROMPTS)[::-1]))
    wanted = {f"row-{i}": alone(forwards, prompt, 8) for i, prompt in enumerate(PROMPTS)}
    for desk, batch_size in ((forwards, 1), (forwards, 2), (forwards, None), (backwards, None), (backwards, 3)):
        seen = desk.one(asked, "traced", batch_size)
        ids = seen.metadata("original.generated")["example_ids"]
        assert dict(zip(ids, seen.ids("original"), strict=True)) == wanted


@pytest.mark.parametrize("model", MODELS)
def test_the_first_token_is_never_padding(model: str, random_world: Random, tmp_path: Path) -> None:
    prompts = ("Sunday is a day", PROMPTS[3])
    desk = random_world(model, 16).over(write_table(tmp_path, rows(prompts)))
    lengths = [desk.checkpoint.encode(prompt).length for prompt in prompts]
    assert lengths[0] + 8 < lengths[1]
    asked = observing(
        intervention({"x": read("head", 0), "ids": read("ids", 0)}, metrics={"h": {"kind": "entropy", "of": "x"}}),
        outputs={"IDS": "ids"},
    )
    points = desk.run(asked)
    agree(points, desk.tell(asked))
    seen = desk.one(asked)
    first = [desk.world.tokenizer(prompt, add_special_tokens=False)["input_ids"][0] for prompt in prompts]
    assert seen.tensor("IDS")[:, 0].tolist() == first
    assert seen.positions("h") == [(0,), (0,)]


def test_past_the_end_is_out_of_range_in_a_scope_and_refused_without_one(random_world: Random, tmp_path: Path) -> None:
    table = rows(PROMPTS, word=["Monday", "today", "Friday", "who"])
    desk = random_world("llama", 16).over(write_table(tmp_path, table))
    metrics = {"h": {"kind": "entropy", "of": "x"}}
    scoped = read("head", {"index": 99, "scope": {"variable": "word"}})
    seen = desk.one(observing(intervention({"x": scoped}, metrics=metrics)))
    assert seen.reasons("h") == ["out_of_range"] * 4
    (problem,) = desk.problems(observing(intervention({"x": read("head", 99)}, metrics=metrics)))
    for i, prompt in enumerate(PROMPTS):
        assert f"'row-{i}' ({desk.checkpoint.encode(prompt).length} tokens)" in problem.message


@pytest.mark.parametrize("model", ["llama", "qwen3"])
def test_a_prompt_that_holds_the_pad_token(model: str, random_world: Random, tmp_path: Path) -> None:
    """The mask knows padding from a token of the text that looks like it."""
    prompts = ("Today<pad> is Thursday,<pad><pad> tomorrow is", "Friday is", PROMPTS[3])
    desk = random_world(model, 64).over(write_table(tmp_path, rows(prompts)))
    assert list(desk.checkpoint.encode(prompts[0]).ids).count(desk.checkpoint.pad_id) == 3
    metrics = {"h": {"kind": "entropy", "of": "x"}, "top": {"kind": "top_k", "of": "y"}}
    reads = {"x": read("head"), "y": read("head", generated(index=2)), "deep": read("out2", {"last": 2})}
    asked = observing(intervention(reads, metrics=metrics, decode=3), outputs={"D": "deep"})
    for engine in ("hooks", "traced"):
        agree(desk.run(asked, engine), desk.tell(asked))


def test_long_rows_beside_a_short_one(random_world: Random, tmp_path: Path) -> None:
    """The short row's value stays, and a mean is over the rows that are scored."""
    answers = [" Friday", *[" Monday", None] * 3]
    table = rows(["Today is", *(PROMPTS[3] + " not" * i for i in range(6))], answer=answers)
    desk = random_world("gpt2", 64)
    few, many = (desk.over(write_table(tmp_path / str(n), table[:n])) for n in (1, 7))
    asked = observing(
        intervention({"x": read("head")}, metrics={"p": {"kind": "token_logit", "of": "x", "token": "answer"}})
    )
    alone, beside = few.one(asked), many.one(asked)
    assert beside.values("p")[0] == pytest.approx(alone.values("p")[0], rel=1e-5)
    agree(many.run(asked), many.tell(asked))

    from causalab_mini.results.summary import summarize

    (line,) = summarize(many.compile(asked).points[0], [beside.observed])
    scored = [value for value in beside.values("p") if value is not None]
    assert (line.n_scored, line.n_rows) == (4, 7)
    assert line.mean == pytest.approx(sum(scored) / 4)


def test_an_empty_prompt_is_named_before_any_forward(random_world: Random, tmp_path: Path) -> None:
    table = rows(["Friday is", "", "Monday is"])
    table[0]["counterfactual_inputs"] = ["Tuesday is"]
    desk = random_world("llama", 16).over(write_table(tmp_path, table))
    (problem,) = desk.problems(observing(intervention({"x": read("head")})))
    assert "row 1 ('row-1') has an empty prompt in 'input'" in problem.message
    assert problem.path


def test_duplicate_example_ids_are_refused_by_name(random_world: Random, tmp_path: Path) -> None:
    table = rows()
    table[2]["example_id"] = "row-0"
    desk = random_world("llama", 16).over(write_table(tmp_path, table))
    (problem,) = desk.problems(observing(intervention({"x": read("head")})))
    assert "duplicate example_ids: 'row-0' is rows 0 and 2" in problem.message


def test_a_marker_twice_in_a_row_is_refused(random_world: Random, tmp_path: Path) -> None:
    """The tokenizer adds one; a text that brings its own has two."""
    desk = random_world("llama", 16).over(write_table(tmp_path, rows(["Friday is", "<bos>Monday is"])))
    asked = observing(intervention({"x": read("head")}))
    (problem,) = desk.problems(asked)
    assert "'<bos>' twice in a row" in problem.message
    once = random_world("llama", 16).over(write_table(tmp_path / "once", rows(["Friday is", "Monday is"])))
    plan = once.compile(asked).points[0].plan
    (forward,) = next(plan.observes()).forwards
    assert all(text.ids[0] == 0 and 0 not in text.ids[1:] for text in forward.batch.rows)


def test_columns_without_padding_are_what_alone_means(random_world: Random, tmp_path: Path) -> None:
    """GPT-2 counts positions from the row's own first token, not from the batch's first column."""
    desk = random_world("gpt2", 16).over(write_table(tmp_path, rows(PROMPTS)))
    body = intervention({"deep": read("out2", -1)})
    seen = desk.one(observing(body, outputs={"DEEP": "deep"}))
    spot = desk.network.locate("block_output", 2)
    for i, prompt in enumerate(PROMPTS):
        ids = desk.world.tokenizer(prompt)["input_ids"]
        _, values = plain.forward(desk.network.model, ids, (), [plain.Look("", spot.path, spot.side, len(ids) - 1)])
        torch.testing.assert_close(seen.tensor("DEEP")[i], values[""], rtol=1e-4, atol=1e-4)
