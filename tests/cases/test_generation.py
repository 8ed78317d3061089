"""What is said, where it is read, and what is never said."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests import plain
from tests.building import dictate, generated, intervention, observing, read, rows, write, write_table
from tests.desk import Desk, agree, desk

EVERY = generated(all=True)
PROMPTS = ("If today is Thursday, tomorrow is", "Friday is", "The day after Wednesday, I think, is")

Random = Callable[[str, int], Desk]
Shipped = Callable[[str], Desk]


@pytest.fixture
def llama(random_world: Random, tmp_path: Path) -> Desk:
    table = rows(PROMPTS, end=[1] * 3, answer=[" Friday", " Saturday", " Thursday"])
    return random_world("llama", 64).over(write_table(tmp_path, table))


@pytest.mark.parametrize("model", ["llama", "gpt2"])
def test_generated_index_k_is_the_position_that_predicts_token_k(
    model: str, random_world: Random, tmp_path: Path
) -> None:
    desk = random_world(model, 64)
    prompt = next(text for text in _longer(PROMPTS[0]) if desk.checkpoint.encode(text).length == 12)
    desk = desk.over(write_table(tmp_path, rows([prompt, PROMPTS[1]])))
    reads = {f"d{k}": read("out1", generated(index=k)) for k in range(3)} | {"first": read("out1", 0)}
    asked = observing(
        intervention(reads, decode=3), outputs={name.upper(): name for name in reads}, saves=["original.generated"]
    )
    seen = desk.one(asked)
    ids = desk.world.tokenizer(prompt)["input_ids"]
    said = seen.ids("original")[0]
    spot = desk.network.locate("block_output", 1)
    looks = [plain.Look(str(token), spot.path, spot.side, token) for token in range(len(ids) + 2)]
    logits, values = plain.forward(desk.network.model, [*ids, *said[:2]], (), looks)
    for k in range(3):
        predicts = len(ids) - 1 + k
        assert logits[predicts].argmax() == said[k]
        torch.testing.assert_close(seen.tensor(f"D{k}")[0], values[str(predicts)], rtol=1e-4, atol=1e-4)
    # Index 0 is the prompt's last token and not its first.
    assert not torch.allclose(seen.tensor("D0")[0], seen.tensor("FIRST")[0], atol=1e-2)


def _longer(text: str) -> list[str]:
    return [text + " is" * more for more in range(12)] + [text[:cut] for cut in range(5, len(text))]


def test_step_3_of_a_3_token_decode_is_refused(llama: Desk) -> None:
    (problem,) = llama.problems(observing(intervention({"x": read("head", generated(index=3))}, decode=3)))
    assert problem.path == "interventions.one.reads.x.pos"
    assert "{generated index:3} is step 3 of a 3-token decode" in problem.message


def test_ids_and_a_residual_over_all_steps(llama: Desk) -> None:
    asked = observing(
        intervention({"deep": read("out1", EVERY)}, decode=4), outputs={"DEEP": "deep"}, saves=["original.generated"]
    )
    seen = llama.one(asked)
    assert seen.tensor("original.generated").shape == (3, 4)
    assert seen.tensor("original.generated").dtype == torch.int64
    assert seen.metadata("original.generated")["dims"] == ["row", "step"]
    assert seen.tensor("DEEP").shape == (3, 4, 64)
    assert seen.metadata("DEEP")["dims"] == ["row", "step", "feature"]
    assert seen.tensor("DEEP").isfinite().all()
    agree(llama.run(asked), llama.tell(asked))


def test_the_probability_of_eos_where_a_model_wants_to_stop(shipped: Shipped, tmp_path: Path) -> None:
    """The trained checkpoint ends its sentences: the raw probability is there, and the token is not picked."""
    there = shipped("weekdays-llama")
    prompts = ("If today is Thursday, tomorrow is", "The day after Friday is")
    (eos,) = there.checkpoint.eos_ids
    desk = there.over(write_table(tmp_path, rows(prompts, end=[eos] * 2)))
    steps = 12
    reads = {f"x{step}": read("head", generated(index=step)) for step in range(steps)}
    metrics = {
        f"p{step}": {"kind": "token_prob", "of": f"x{step}", "token": "end", "token_form": "id"}
        for step in range(steps)
    }
    asked = observing(intervention(reads, metrics=metrics, decode=steps), saves=["original.generated"])
    seen = desk.one(asked)
    assert all(len(ids) == steps and eos not in ids for ids in seen.ids("original"))
    for row, prompt in enumerate(prompts):
        stopped = seen.rows("p0")[row].stopped_at
        assert stopped is not None
        ids = desk.world.tokenizer(prompt)["input_ids"]
        alone = plain.run(desk.network.model, ids, steps=steps, held=[eos])
        assert alone.ids == seen.ids("original")[row]
        wanted = alone.logits.softmax(-1)[:, eos].tolist()
        found = [seen.values(f"p{step}")[row] for step in range(steps)]
        assert found == pytest.approx(wanted, rel=1e-3)
        assert found[stopped] > 0.5 > max(found[:stopped])


def test_a_repetition_penalty_in_the_checkpoint(llama: Desk, tmp_path: Path) -> None:
    asked = observing(intervention({"x": read("head")}, decode=8), saves=["original.generated"])
    folder = tmp_path / "penalised"
    shutil.copytree(llama.folder, folder)
    config = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps({**config, "repetition_penalty": 1.3}))
    penalised = desk(folder, llama.root)
    assert penalised.network.model.generation_config.repetition_penalty == 1.3
    wanted = [
        plain.run(llama.network.model, llama.world.tokenizer(prompt)["input_ids"], steps=8, held=[1]).ids
        for prompt in PROMPTS
    ]
    assert penalised.one(asked).ids("original") == llama.one(asked).ids("original") == wanted


def test_a_continuation_that_does_not_encode_to_its_own_ids(llama: Desk, tmp_path: Path) -> None:
    """` Friday` said in two pieces: positions follow the pieces that were said."""
    encode = llama.world.tokenizer
    pieces = [
        *encode(" Fr", add_special_tokens=False)["input_ids"],
        *encode("iday", add_special_tokens=False)["input_ids"],
    ]
    (whole,) = encode(" Friday", add_special_tokens=False)["input_ids"]
    assert whole not in pieces
    ids = [*encode(" is", add_special_tokens=False)["input_ids"], *pieces]
    there = llama.over(write_table(tmp_path, rows(PROMPTS, word=["Friday", "day", "Fr"])))
    word = {"variable": "word"}
    reads = {
        "x": read("head", generated(index=-1, scope=word), "m"),
        "y": read("head", generated(index=0, scope=word), "m"),
        "deep": read("out1", generated(all=True, scope=word), "m"),
    }
    metrics = {name: {"kind": "entropy", "of": name} for name in ("x", "y")}
    body = intervention(reads, dictate(ids), metrics=metrics, decode=len(ids))
    asked = observing(body, outputs={"DEEP": "deep"}, saves=["m.generated"])
    seen = there.one(asked)
    assert seen.ids("m") == [ids] * 3
    assert (
        encode("".join(there.checkpoint.decode((token,)) for token in ids), add_special_tokens=False)["input_ids"]
        != ids
    )
    assert seen.positions("y")[0] == (1,)
    assert seen.positions("x")[0] == (len(ids) - 1,)
    agree(there.run(asked), there.tell(asked))


def test_a_character_said_in_pieces(llama: Desk, tmp_path: Path) -> None:
    """你 is three tokens, none of which is a character: each of them says it."""
    encode = llama.world.tokenizer
    pieces, (friday,) = (encode(text, add_special_tokens=False)["input_ids"] for text in ("你", " Friday"))
    assert len(pieces) == 3
    ids = [friday, *pieces, friday]
    there = llama.over(write_table(tmp_path, rows(PROMPTS, word=["你", "你 Friday", "Friday你"])))
    word = {"variable": "word"}
    reads = {
        "first": read("head", generated(index=0, scope=word), "m"),
        "last": read("head", generated(index=-1, scope=word), "m"),
    }
    metrics = {name: {"kind": "entropy", "of": name} for name in reads}
    asked = observing(intervention(reads, dictate(ids), metrics=metrics, decode=5), saves=["m.generated"])
    seen = there.one(asked)
    assert seen.ids("m") == [ids] * 3
    assert seen.positions("first") == [(1,), (1,), (0,)]
    assert seen.positions("last") == [(3,), (4,), (3,)]
    agree(there.run(asked), there.tell(asked))


def test_a_write_at_the_first_generated_token_is_at_the_prompts_last(llama: Desk) -> None:
    """Two names for one column: the same values come out."""
    reads = {"x": read("head", generated(index=1), "m")}
    one, other = (
        llama.one(
            observing(intervention(reads, {"w": write("out0", pos, "add_scaled", 2.0)}, decode=2), outputs={"X": "x"}),
            mode="exact",
        ).tensor("X")
        for pos in (-1, generated(index=0))
    )
    assert torch.equal(one, other)
