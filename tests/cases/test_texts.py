"""Answers, words and markers: which token is meant."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import plain
from tests.building import intervention, observing, read, rows, write_table
from tests.desk import Desk, agree, desk
from tests.unit.checkpoint import small
from tokenizers import Tokenizer

from causalab_mini.checkpoint.facts import Checkpoint

Random = Callable[[str, int], Desk]
SMOLLM2 = os.environ.get("CAUSALAB_SMOLLM2")


@pytest.fixture(scope="session")
def smollm2() -> Desk:
    if SMOLLM2 is None:
        pytest.skip("CAUSALAB_SMOLLM2 names no folder")
    return desk(Path(SMOLLM2))


@pytest.mark.smollm2
def test_paris_with_and_without_its_space(smollm2: Desk, tmp_path: Path) -> None:
    prompt = "The capital of France is"
    there = smollm2.over(write_table(tmp_path, rows([prompt], spaced=[" Paris"], plain=["Paris"])))
    metrics = {
        "spaced": {"kind": "token_prob", "of": "x", "token": "spaced"},
        "bare": {"kind": "token_prob", "of": "x", "token": "plain", "token_form": "bare"},
        "prefixed": {"kind": "token_prob", "of": "x", "token": "plain"},
        "top": {"kind": "top_k", "of": "x", "k": 3},
    }
    asked = observing(intervention({"x": read("head")}, metrics=metrics))
    seen = there.one(asked)
    agree(there.run(asked), there.tell(asked))
    assert seen.values("spaced") == pytest.approx([0.77], abs=0.01)
    assert seen.values("prefixed") == seen.values("spaced")
    assert seen.values("bare") == pytest.approx([0.0005], abs=0.0001)
    ((best, *_),) = seen.values("top")
    assert best[1] == " Paris"
    ids = there.world.tokenizer(prompt)["input_ids"]
    logits, _ = plain.forward(there.network.model, ids)
    assert logits[-1].argmax() == best[0]


def test_a_prompt_that_ends_in_a_space(random_world: Random, tmp_path: Path) -> None:
    there = random_world("llama", 16).over(write_table(tmp_path, rows(["Friday is", "Today is "])))
    (warning,) = there.compile(observing(intervention({"x": read("head")}))).warnings
    assert "'row-1'" in warning
    assert "space" in warning


def test_a_prompt_and_an_answer_that_merge(random_world: Random, tmp_path: Path) -> None:
    """`tomor` and `row` are one word together: `in_context` sees the prompt's own tokens change."""
    table = rows(["Friday is tomor"], answer=["row"])
    there = random_world("llama", 16).over(write_table(tmp_path, table))
    encode = there.world.tokenizer
    before = encode("Friday is tomor", add_special_tokens=False)["input_ids"]
    assert encode("Friday is tomorrow", add_special_tokens=False)["input_ids"][: len(before)] != before
    metric = {"p": {"kind": "token_prob", "of": "x", "token": "answer", "token_form": "in_context"}}
    (problem,) = there.problems(observing(intervention({"x": read("head")}, metrics=metric)))
    assert problem.path == "interventions.one.metrics.p.token"
    assert "'row' changes the prompt's own tokens" in problem.message


def with_words(folder: Path, tokenizer: Tokenizer) -> Path:
    """A random Llama behind a tokenizer whose words are chosen by hand."""
    from tests import families

    families.build("llama", 16, tokenizer.get_vocab_size()).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(small.NAMED))
    return folder


def test_words_and_the_tokens_they_overlap(tmp_path: Path) -> None:
    """`你` is two tokens, whose first and last differ; ` ok` is one token, which starts at the space."""
    folder = with_words(tmp_path / "model", small.with_bos())
    text = "naïve 你好 ok"
    table = rows([text, text], word=["你", "ok"])
    there = desk(folder, write_table(tmp_path, table))
    reads = {f"x{index}": read("head", {"index": index, "scope": {"variable": "word"}}) for index in (0, -1)}
    metrics = {name: {"kind": "entropy", "of": name} for name in reads}
    asked = observing(intervention(reads, metrics=metrics))
    seen = there.one(asked)
    first, last = seen.positions("x0"), seen.positions("x-1")
    assert first[0] != last[0]
    assert first[1] == last[1]
    assert seen.tokens("x0")[1] == (" ok",)
    agree(there.run(asked), there.tell(asked))


def test_a_value_twice_not_at_all_and_in_another_case(random_world: Random, tmp_path: Path) -> None:
    prompts = ["Friday, I said Friday, is", "Sunday is", "friday is", "Friday is"]
    there = random_world("llama", 16).over(write_table(tmp_path, rows(prompts, word=["Friday"] * 4)))

    def reasons(**more: int) -> list[str | None]:
        at = {"index": 0, "scope": {"variable": "word", **more}}
        metrics = {"h": {"kind": "entropy", "of": "x"}}
        return there.one(observing(intervention({"x": read("head", at)}, metrics=metrics))).reasons("h")

    assert reasons() == ["alignment_ambiguous", "alignment_missing", "alignment_missing", None]
    assert reasons(occurrence=0) == [None, "alignment_missing", "alignment_missing", None]
    assert reasons(occurrence=1) == [None, *["alignment_missing"] * 3]
    assert reasons(occurrence=-1) == [None, "alignment_missing", "alignment_missing", None]


def test_whole_words_come_before_parts_of_others(random_world: Random, tmp_path: Path) -> None:
    prompts = ["birthdays, the day is", "birthday is", "birthdays and holidays are"]
    there = random_world("llama", 16).over(write_table(tmp_path, rows(prompts, word=["day"] * 3)))
    at = {"all": True, "scope": {"variable": "word"}}
    asked = observing(intervention({"x": read("ids", at), "y": read("head", {**at})}), outputs={"X": "x"})
    metrics = {"h": {"kind": "entropy", "of": "z"}}
    one = intervention({"z": read("head", {"index": 0, "scope": {"variable": "word"}})}, metrics=metrics)
    assert there.one(observing(one)).reasons("h") == [None, None, "alignment_ambiguous"]
    agree(there.run(asked), there.tell(asked))


def test_one_leading_marker(random_world: Random) -> None:
    """A tokenizer that adds a marker adds it once, and the prompt frame does not count it."""
    checkpoint: Checkpoint = random_world("llama", 16).checkpoint
    text = checkpoint.encode("Friday is")
    assert (text.ids[0], text.prefix, text.ids.count(0)) == (0, 1, 1)
    assert random_world("gpt2", 16).checkpoint.encode("Friday is").prefix == 0


def test_three_misspellings_come_together_and_a_column_next(random_world: Random, tmp_path: Path) -> None:
    there = random_world("llama", 16).over(write_table(tmp_path, rows(answer=[" Friday"] * 3)))
    asked = observing(
        intervention(
            {"x": read("hed", -1, "m")},
            {"w": {"site": "out1", "pos": -1, "mechanism": "swop", "operand": 1.0, "paramz": {}}},
            metrics={"p": {"kind": "token_prob", "of": "x", "token": "anser"}},
        )
    )
    found = {problem.path: problem for problem in there.problems(asked)}
    reads, writes = "interventions.one.reads", "interventions.one.writes"
    assert {f"{reads}.x.site", f"{writes}.w.mechanism", f"{writes}.w.paramz"} <= found.keys()
    assert "head" in (found[f"{reads}.x.site"].hint or "")
    assert "swap" in (found[f"{writes}.w.mechanism"].hint or "")
    assert "params" in (found[f"{writes}.w.paramz"].hint or "")
    body = intervention({"x": read("head")}, metrics={"p": {"kind": "token_prob", "of": "x", "token": "anser"}})
    (problem,) = there.problems(observing(body))
    assert "answer" in (problem.hint or "")
