"""Every row stands in every table, with a value or the reason there is none; where it was read; what outputs hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.building import dictate, document, generated, intervention, observing, read, rows, step, write, write_table
from tests.desk import Desk, Seen
from torch import Tensor

from causalab_mini.results.summary import summarize

PROMPTS = (
    "If today is Thursday, tomorrow is",
    "Friday is Friday",
    "The day after Wednesday, I think, is",
    "Monday",
)
WORDS = ("Thursday", "Friday", "wednesday", "")
ANSWERS = (" Friday", "", " Thursday", None)
SCOPED = {"index": 0, "scope": {"variable": "word"}}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("tables"), rows(PROMPTS, word=WORDS, answer=ANSWERS))


@pytest.fixture
def desk(root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", 16).over(root)


def entropy_at(desk: Desk, pos: object, **more: dict) -> Seen:
    metrics = {"h": {"kind": "entropy", "of": "x"}, "p": {"kind": "token_prob", "of": "x", "token": "answer"}}
    return desk.one(observing(intervention({"x": read("head", pos)}, metrics=metrics, **more)))


def test_reasons_of_a_scope(desk: Desk) -> None:
    """Found; there twice; in another case; no such text in the row."""
    seen = entropy_at(desk, SCOPED)
    wanted = [None, "alignment_ambiguous", "alignment_missing", "alignment_missing"]
    assert seen.reasons("h") == wanted
    assert [value is None for value in seen.values("h")] == [reason is not None for reason in wanted]
    assert seen.positions("h")[1:] == [(), (), ()]
    assert [row.example_id for row in seen.rows("h")] == [f"row-{i}" for i in range(4)]


def test_an_occurrence_picks_and_may_be_missing(desk: Desk) -> None:
    first, second, third = (
        entropy_at(desk, {"index": -1, "scope": {"variable": "word", "occurrence": which}}) for which in (0, -1, 2)
    )
    assert first.reasons("h")[1] is None
    assert second.reasons("h")[1] is None
    assert first.positions("h")[1] < second.positions("h")[1]
    assert third.reasons("h")[1] == "alignment_missing"


def test_a_scoped_cut_that_does_not_fit_is_out_of_range(desk: Desk) -> None:
    seen = entropy_at(desk, {"index": 9, "scope": {"variable": "word", "occurrence": 0}})
    assert seen.reasons("h") == ["out_of_range", "out_of_range", "alignment_missing", "alignment_missing"]


def test_an_empty_cell_comes_after_the_positions_reason(desk: Desk) -> None:
    assert entropy_at(desk, -1).reasons("p") == [None, "empty_cell", None, "empty_cell"]
    scoped = entropy_at(desk, SCOPED)
    assert scoped.reasons("p") == [None, "alignment_ambiguous", "alignment_missing", "alignment_missing"]


def test_a_skipped_write_comes_before_everything(desk: Desk) -> None:
    """Rows 1 to 3 are not written: whatever else is wrong with them, that is what they say."""
    writes = {"w": write("out0", SCOPED, "add_scaled", 1.0, missing="skip")}
    reads = {"x": read("head", -1, "m"), "y": read("head", SCOPED, "m"), "clean": read("head", SCOPED)}
    metrics = {
        "h": {"kind": "entropy", "of": "x"},
        "p": {"kind": "token_prob", "of": "y", "token": "answer"},
        "js": {"kind": "js", "of": "clean", "against": "y"},
        "clean": {"kind": "entropy", "of": "clean"},
    }
    seen = desk.one(observing(intervention(reads, writes, metrics=metrics)))
    for name in ("h", "p", "js"):
        assert seen.reasons(name) == [None, "write_skipped", "write_skipped", "write_skipped"]
    assert seen.reasons("clean") == [None, "alignment_ambiguous", "alignment_missing", "alignment_missing"]


def test_a_row_whose_operand_has_no_value_is_not_written(desk: Desk) -> None:
    writes = {"w": write("out0", -1, "swap", "v", missing="skip")}
    reads = {"v": read("out0", SCOPED), "x": read("head", -1, "m"), "after": read("out0", -1, "n")}
    writes["u"] = write("out0", -1, "swap", "late", missing="skip")
    reads["late"] = read("out1", 0, "m")
    models = {"m": {"input": "base", "writes": ["w"]}, "n": {"input": "base", "writes": ["u"]}}
    metrics = {"h": {"kind": "entropy", "of": "x"}}
    body = intervention(reads, writes, models, metrics)
    seen = desk.one(observing(body, outputs={"AFTER": "after"}))
    assert seen.reasons("h") == [None, "write_skipped", "write_skipped", "write_skipped"]
    firings = {report.name: report.firings for report in seen.observed.writes}
    assert firings == {"w": (1, 0, 0, 0), "u": (1, 0, 0, 0)}
    assert seen.metadata("AFTER")["missing"] == {f"row-{i}": "write_skipped" for i in (1, 2, 3)}


def test_values_that_are_not_finite_are_told_and_not_averaged(desk: Desk) -> None:
    pos = {"index": 0, "scope": {"variable": "word"}}
    writes = {"w": write("out0", pos, "add_scaled", 1e30, scale=1e30, missing="skip")}
    metrics = {
        "h": {"kind": "entropy", "of": "x"},
        "top": {"kind": "top_k", "of": "x", "k": 2},
        "best": {"kind": "match", "of": "x", "expected": "answer"},
        "rank": {"kind": "token_rank", "of": "x", "token": "answer"},
        "js": {"kind": "js", "of": "clean", "against": "x"},
    }
    reads = {"x": read("head", -1, "m"), "clean": read("head")}
    seen = desk.one(observing(intervention(reads, writes, metrics=metrics)))
    for name in metrics:
        assert seen.reasons(name) == ["non_finite", "write_skipped", "write_skipped", "write_skipped"]
        assert seen.values(name) == [None] * 4


def test_prompt_positions_are_the_texts_own(desk: Desk) -> None:
    """Padding and prefix are not counted: -1 is another index in every row, and the first token is 0."""
    last, first, prefix = (entropy_at(desk, pos) for pos in (-1, 0, {"index": 0, "scope": {"segment": "prefix"}}))
    lengths = [desk.checkpoint.encode(prompt).length for prompt in PROMPTS]
    assert len(set(lengths)) == 4
    assert last.positions("h") == [(length - 1,) for length in lengths]
    assert first.positions("h") == [(0,)] * 4
    texts = [own(desk, prompt) for prompt in PROMPTS]
    assert last.tokens("h") == [(desk.checkpoint.token_text(ids[-1]),) for ids in texts]
    assert first.tokens("h") == [(desk.checkpoint.token_text(ids[0]),) for ids in texts]
    assert prefix.positions("h") == [(-1,)] * 4
    assert prefix.tokens("h") == [("<bos>",)] * 4


def test_eos_under_hold_is_nowhere(desk: Desk) -> None:
    seen = entropy_at(desk, generated(index=-1, scope={"segment": "eos"}), decode=3)
    assert seen.reasons("h") == ["alignment_missing"] * 4


def test_a_word_of_the_continuation(desk: Desk, tmp_path: Path) -> None:
    """All rows say ` Friday is Sunday Friday`: each looks for another word in it."""
    ids = [token for word in (" Friday", " is", " Sunday", " Friday") for token in own(desk, word)]
    assert len(ids) == 4
    there = desk.over(write_table(tmp_path, rows(PROMPTS, said=["Sunday", "Friday", "is Sunday", "Monday"])))
    everywhere = {"variable": "said"}
    reads = {
        "x": read("head", generated(index=-1, scope=everywhere), "m"),
        "second": read("head", generated(index=0, scope={**everywhere, "occurrence": -1}), "m"),
        "third": read("head", generated(index=0, scope={**everywhere, "occurrence": 2}), "m"),
        "deep": read("out1", generated(all=True, scope=everywhere), "m"),
        "past": read("head", generated(index=1, scope={**everywhere, "occurrence": 0}), "m"),
        "every": read("out1", generated(all=True), "m"),
    }
    metrics = {name: {"kind": "entropy", "of": name} for name in ("x", "second", "third", "past")}
    body = intervention(reads, dictate(ids), metrics=metrics, decode=4)
    outputs = {"DEEP": "deep", "EVERY": "every", "MEAN": {"read": "deep", "reduce": "mean"}}
    seen = there.one(observing(body, outputs=outputs, saves=["m.generated"]))
    assert seen.ids("m") == [ids] * 4
    assert seen.reasons("x") == [None, "alignment_ambiguous", None, "alignment_missing"]
    assert seen.positions("x") == [(2,), (), (2,), ()]
    assert seen.tokens("x") == [(" Sunday",), (), (" Sunday",), ()]
    assert seen.positions("second") == [(2,), (3,), (1,), ()]
    assert seen.reasons("third") == ["alignment_missing"] * 4
    assert seen.reasons("past") == ["out_of_range", "out_of_range", None, "alignment_missing"]
    every = seen.tensor("EVERY")
    assert seen.tensors("DEEP")["DEEP.lengths"].tolist() == [1, 0, 2, 0]
    assert torch.equal(seen.tensor("DEEP"), torch.cat([every[0, 2:3], every[2, 1:3]]))
    close(seen.tensor("MEAN"), torch.cat([every[0, 2:3], every[2, 1:3]]).mean(0))


def own(desk: Desk, text: str) -> list[int]:
    return desk.world.tokenizer(text, add_special_tokens=False)["input_ids"]


def test_outputs_and_their_metadata(desk: Desk) -> None:
    reads = {
        "one": read("out1"),
        "two": read("out1", {"last": 1}),
        "span": read("in2", {"span": [0, 1]}),
        "every": read("out1", {"all": True}),
        "scoped": read("out1", SCOPED),
        "steps": read("norm", generated(all=True)),
        "tokens": read("ids", {"all": True}),
        "fed": read("ids", generated(all=True)),
    }
    outputs: dict = {name.upper(): name for name in reads}
    outputs |= {f"MEAN_{name}": {"read": name, "reduce": "mean"} for name in ("one", "every", "scoped", "steps")}
    seen = desk.one(observing(intervention(reads, decode=3), outputs=outputs, saves=["original.generated"]))
    lengths = [desk.checkpoint.encode(prompt).length for prompt in PROMPTS]
    shapes: dict[str, tuple[tuple[int, ...], list[str]]] = {
        "ONE": ((4, 16), ["row", "feature"]),
        "TWO": ((4, 16), ["row", "feature"]),
        "SPAN": ((4, 16), ["row", "feature"]),
        "EVERY": ((sum(lengths), 16), ["token", "feature"]),
        "SCOPED": ((1, 16), ["token", "feature"]),
        "STEPS": ((4, 3, 16), ["row", "step", "feature"]),
        "TOKENS": ((sum(lengths), 1), ["token", "feature"]),
        "FED": ((4, 3, 1), ["row", "step", "feature"]),
        "MEAN_one": ((16,), ["feature"]),
        "MEAN_every": ((16,), ["feature"]),
        "MEAN_scoped": ((16,), ["feature"]),
        "MEAN_steps": ((16,), ["feature"]),
    }
    for name, (shape, dims) in shapes.items():
        assert seen.tensor(name).shape == shape, name
        assert seen.metadata(name)["dims"] == dims, name
        assert seen.tensor(name).dtype == torch.float32
    assert seen.tensors("EVERY")["EVERY.lengths"].tolist() == lengths
    assert seen.tensors("SCOPED")["SCOPED.lengths"].tolist() == [1, 0, 0, 0]
    assert seen.metadata("SCOPED")["missing"] == {
        "row-1": "alignment_ambiguous",
        "row-2": "alignment_missing",
        "row-3": "alignment_missing",
    }
    assert (seen.metadata("ONE")["site"], seen.metadata("ONE")["position"]) == ("block_output[1]", "{index:-1}")
    close(seen.tensor("MEAN_one"), seen.tensor("ONE").mean(0))
    close(seen.tensor("MEAN_every"), seen.tensor("EVERY").mean(0))
    close(seen.tensor("MEAN_scoped"), seen.tensor("SCOPED")[0])
    close(seen.tensor("MEAN_steps"), seen.tensor("STEPS").flatten(0, 1).mean(0))
    # What step k is fed: the prompt's last token, then what was said before.
    said = seen.tensor("original.generated")
    assert said.dtype == torch.int64
    assert said.shape == (4, 3)
    assert torch.equal(seen.tensor("FED")[:, 1:, 0], said[:, :-1].float())
    texts = [own(desk, prompt) for prompt in PROMPTS]
    assert seen.tensor("FED")[:, 0, 0].tolist() == [ids[-1] for ids in texts]
    assert seen.tensor("TOKENS")[:, 0].tolist() == [token for ids in texts for token in ids]


def close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)


def test_a_list_of_interventions_is_a_plan_of_its_own(desk: Desk) -> None:
    metrics = {"h": {"kind": "entropy", "of": "x"}}
    named = intervention({"x": read("head")}, metrics=metrics)
    inline = intervention({"x": read("head", 0)}, metrics=metrics)
    asked = document({"both": step(["one", inline]), "single": step(inline)}, {"one": named})
    (steps,) = desk.run(asked).values()
    assert list(steps) == [("both", "one"), ("both", "both[1]"), ("single",)]
    assert Seen(steps["both", "both[1]"]).values("h") == Seen(steps["single",]).values("h")
    assert Seen(steps["both", "one"]).values("h") != Seen(steps["single",]).values("h")


def test_a_model_on_two_roles_has_two_continuations(desk: Desk) -> None:
    body = intervention({"x": read("head"), "y": read("head", role="other")}, decode=2)
    seen = desk.one(observing(body, saves=["original@base.generated", "original@other.generated"]))
    base, other = seen.tensor("original@base.generated"), seen.tensor("original@other.generated")
    assert torch.equal(other, base.roll(-1, 0))


def test_the_summary_is_over_scored_rows_only(desk: Desk) -> None:
    asked = observing(intervention({"x": read("head", SCOPED)}, metrics={"h": {"kind": "entropy", "of": "x"}}))
    experiment = desk.compile(asked)
    seen = desk.one(asked)
    (line,) = summarize(experiment.points[0], [seen.observed])
    assert (line.observe, line.metric, line.n_scored, line.n_rows) == ("only", "h", 1, 4)
    assert line.mean == seen.values("h")[0]
    assert line.sd is None


def test_a_row_keeps_its_value_whatever_stands_beside_it(desk: Desk, tmp_path: Path) -> None:
    whole = entropy_at(desk, -1).values("h")
    for i, row in enumerate(rows(PROMPTS, answer=ANSWERS)):
        alone = desk.over(write_table(tmp_path / str(i), [{**row, "answer": " Friday"}]))
        assert entropy_at(alone, -1).values("h") == pytest.approx([whole[i]], rel=1e-5)
