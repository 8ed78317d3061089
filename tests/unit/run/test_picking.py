"""Settings and sampling: what `generate` gives, what is drawn for a row, and what tables say of it."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests import plain
from tests.building import document, generated, intervention, observing, read, rows, step, write, write_table
from tests.desk import ENGINES, Desk, Seen, desk

from causalab_mini.run.picking import gumbel
from causalab_mini.schedule.optimize import Mode

STEPS = 8
MODES: list[Mode] = ["naive", "exact", "fast"]
WAYS = [(mode, engine) for mode in MODES for engine in ("hooks", "traced")]
Random = Callable[[str, int], Desk]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("picking"), rows())


@pytest.fixture
def llama(root: Path, random_world: Random) -> Desk:
    return random_world("llama", 16).over(root)


def speaking(decode: object = STEPS, generation: object = "neutral", own: dict | None = None) -> dict:
    body = intervention(
        {"x": read("head", generated(all=True)), "first": read("head", generated(index=0))},
        metrics={"h": {"kind": "entropy", "of": "first"}},
    )
    asked = observing(
        {**body, "decode": decode, **({"generation": own} if own else {})},
        outputs={"X": "x"} if not (isinstance(decode, dict) and decode.get("eos") == "stop") else {},
        saves=["original.generated"],
    )
    asked["model"]["generation"] = generation
    return asked


def configured(llama: Desk, tmp_path: Path, **settings: object) -> Desk:
    """The same model in a folder whose generation_config has more to say."""
    folder = tmp_path / "configured"
    shutil.copytree(llama.folder, folder)
    path = folder / "generation_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | settings))
    return desk(folder, llama.root)


def of_generate(world: Desk, **settings: object) -> list[list[int]]:
    """What `model.generate` says after each prompt alone, under the model's own config and these settings."""
    found: list[list[int]] = []
    for row in rows():
        ids = torch.tensor([world.checkpoint.encode(row["input"]).ids])
        out = world.network.model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=STEPS, do_sample=False, pad_token_id=0, **settings
        )
        found.append(out[0, ids.shape[1] :].tolist())
    return found


def test_a_checkpoints_penalty_holds_only_where_it_is_asked_for(llama: Desk, tmp_path: Path) -> None:
    plainly = llama.one(speaking()).ids("original")
    world = configured(llama, tmp_path, repetition_penalty=1.3)
    before = copy.deepcopy(world.network.model.generation_config.to_dict())
    wanted = of_generate(world, min_new_tokens=STEPS)
    assert wanted != plainly
    for mode, engine in WAYS:
        assert world.one(speaking(), engine, mode=mode).ids("original") == plainly
        assert world.one(speaking(generation="checkpoint"), engine, mode=mode).ids("original") == wanted
    assert world.network.model.generation_config.to_dict() == before
    assert dict(world.checkpoint.generation_config)["repetition_penalty"] == 1.3


@pytest.mark.parametrize("family", ["gpt2", "qwen3", "gpt_neox"])
def test_a_checkpoints_settings_are_those_of_generate_on_every_family(
    family: str, root: Path, random_world: Random, tmp_path: Path
) -> None:
    own = {"repetition_penalty": 1.7, "no_repeat_ngram_size": 2, "suppress_tokens": list(range(3, 300, 2))}
    world = configured(random_world(family, 16).over(root), tmp_path, **own)
    seen = {engine: world.one(speaking(generation="checkpoint"), engine).ids("original") for engine in ENGINES}
    assert seen == dict.fromkeys(ENGINES, of_generate(world, min_new_tokens=STEPS))
    assert seen["hooks"] != world.one(speaking()).ids("original")


SETTINGS: dict[str, object] = {
    "repetition_penalty": 1.3,
    "encoder_repetition_penalty": 1.4,
    "no_repeat_ngram_size": 1,
    "encoder_no_repeat_ngram_size": 1,
    "begin_suppress_tokens": list(range(3, 500)),
    "suppress_tokens": list(range(3, 500)),
    "bad_words_ids": [[token] for token in range(3, 500)],
    "sequence_bias": [[[300], 40.0]],
    "min_length": 12,
    "min_new_tokens": 3,
    "forced_bos_token_id": 5,
    "forced_eos_token_id": 7,
    "exponential_decay_length_penalty": [1, 1.5],
    "remove_invalid_values": True,
    "renormalize_logits": True,
    "watermarking_config": {"bias": 30.0, "context_width": 1, "seeding_scheme": "lefthash"},
}


ACTING = (
    *("repetition_penalty", "no_repeat_ngram_size", "begin_suppress_tokens", "suppress_tokens", "bad_words_ids"),
    *("sequence_bias", "forced_eos_token_id", "watermarking_config"),
)
"""Those under which this model says something else."""


@pytest.mark.parametrize("name", SETTINGS)
def test_every_processor_does_what_it_does_in_generate(llama: Desk, name: str) -> None:
    """Held off, an end never comes; let come, it comes where `generate` has it."""
    own = {name: SETTINGS[name]}
    asked = {name: _as_generate(name)}
    seen = llama.one(speaking(own=own))
    plainly = llama.one(speaking()).ids("original")
    assert seen.ids("original") == of_generate(llama, **{**asked, "min_new_tokens": STEPS})
    assert name not in ACTING or seen.ids("original") != plainly
    stopped = llama.one(speaking({"steps": STEPS, "eos": "stop"}, own=own))
    lengths = stopped.tensors("original.generated")["original.generated.lengths"].tolist()
    told = [ids[:length] for ids, length in zip(stopped.ids("original"), lengths, strict=True)]
    assert told == of_generate(llama, **asked)


@pytest.mark.parametrize("new", [0, 2])
def test_a_least_of_new_tokens_is_in_place_of_a_least_length(llama: Desk, tmp_path: Path, new: int) -> None:
    """The end is what the model would say at once, and the least length would hold it off to the last step."""
    own = {"sequence_bias": [[[1], 40.0]], "min_length": 100, "min_new_tokens": new}
    world = configured(llama, tmp_path, **own)
    wanted = of_generate(world)
    assert [len(ids) for ids in wanted] == [new + 1] * 3
    stopping = {"steps": STEPS, "eos": "stop"}
    for asked in (speaking(stopping, "checkpoint"), speaking(stopping, own=own)):
        seen = world.one(asked)
        lengths = seen.tensors("original.generated")["original.generated.lengths"].tolist()
        assert [ids[:n] for ids, n in zip(seen.ids("original"), lengths, strict=True)] == wanted


def _as_generate(name: str) -> object:
    from transformers import WatermarkingConfig

    value = SETTINGS[name]
    return WatermarkingConfig(**value) if isinstance(value, dict) else value  # type: ignore[arg-type]


def apart(name: str) -> dict:
    """A step that saves its continuation in a file of its own."""
    own = step(name)
    own["saves"] = [{"value": "original.generated", "file_path": f"{name}.safetensors"}]
    return own


def test_the_last_token_is_forced_at_the_last_step_of_each_decode(llama: Desk) -> None:
    """Two lengths of decode in one run: the shorter is not the beginning of the longer."""
    body = {**intervention({"x": read("head", generated(all=True))}), "generation": {"forced_eos_token_id": 7}}
    asked = document(
        {f"s{n}": apart(f"i{n}") for n in (2, 4)},
        {f"i{n}": {**body, "decode": n} for n in (2, 4)},
    )
    for mode in MODES:
        ((_, steps),) = llama.run(asked, mode=mode).items()
        for n in (2, 4):
            ids = Seen(steps[f"s{n}",]).ids("original")
            assert [row.index(7) for row in ids] == [n - 1] * 3
            assert {len(row) for row in ids} == {n}


def test_interventions_with_other_settings_share_no_continuation(llama: Desk) -> None:
    base = intervention({"x": read("head", generated(all=True))}, decode=STEPS)
    settings = {
        "plain": {},
        "punished": {"generation": {"repetition_penalty": 3.0}},
        "banned": {"generation": {"suppress_tokens": list(range(3, 300))}},
        "drawn": {"decode": {"steps": STEPS, "sample": {"seed": 1}}},
    }
    bodies = {name: {**base, **own} for name, own in settings.items()}
    asked = document({name: apart(name) for name in bodies}, bodies)
    alone = {
        name: llama.one(observing(body, saves=["original.generated"])).ids("original") for name, body in bodies.items()
    }
    assert len({str(ids) for ids in alone.values()}) == 4
    for mode, engine in WAYS:
        ((_, steps),) = llama.run(asked, engine, mode=mode).items()
        assert {name: Seen(steps[name,]).ids("original") for name in bodies} == alone, mode


def test_reads_see_raw_logits_and_tables_say_what_was_emitted(llama: Desk) -> None:
    world = llama
    seen = world.one(speaking(own={"suppress_tokens": list(range(3, 300))}))
    limited = seen.ids("original")
    for row, ids in enumerate(limited):
        prompt = list(world.checkpoint.encode(rows()[row]["input"]).ids)
        logits, _ = plain.forward(world.network.model, [*prompt, *ids[:-1]])
        raw = logits[len(prompt) - 1 :]
        torch.testing.assert_close(seen.tensor("X")[row], raw, rtol=1e-4, atol=1e-4)
        told = seen.rows("h")[row]
        assert told.emitted == tuple(ids)
        assert told.argmax == tuple(raw.argmax(-1).tolist())
        assert seen.tensors("original.generated")["original.generated.argmax"][row].tolist() == list(told.argmax or ())
    assert any(row.emitted != row.argmax for row in seen.rows("h"))
    silent = world.one(speaking()).rows("h")
    assert all(row.emitted is None and row.argmax is None for row in silent)


SAMPLE = {"temperature": 1.3, "top_k": 40, "top_p": 0.95, "min_p": 0.01, "seed": 11}


def drawn_alone(world: Desk, example_id: str, prompt: str, sample: dict, held: tuple[int, ...] = (1,)) -> list[int]:
    """A row drawn by hand: temperature, top k, top p, min p in turn, then the largest of score and noise."""
    prompt_ids = list(world.checkpoint.encode(prompt).ids)
    said: list[int] = []
    for at in range(STEPS):
        logits, _ = plain.forward(world.network.model, [*prompt_ids, *said])
        scores = logits[-1].float().clone()
        scores[list(held)] = -math.inf
        scores = scores / sample["temperature"]
        if "top_k" in sample:
            scores[scores < scores.sort(descending=True).values[sample["top_k"] - 1]] = -math.inf
        if "top_p" in sample:
            order = scores.argsort(descending=True)
            before = scores.softmax(-1)[order].cumsum(-1) - scores.softmax(-1)[order]
            scores[order[before >= sample["top_p"]]] = -math.inf
        if "min_p" in sample:
            p = scores.softmax(-1)
            scores[p < sample["min_p"] * p.max()] = -math.inf
        digest = hashlib.sha256(f"{sample['seed']}:{example_id}:{at}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") % 2**63)
        u = torch.rand(len(scores), generator=generator, dtype=torch.float64)
        said.append(int((scores.double() - torch.log(-torch.log(u))).argmax()))
    return said


@pytest.mark.parametrize("sample", [SAMPLE, {"temperature": 0.8, "seed": 0}], ids=["all", "temperature"])
@pytest.mark.parametrize(("mode", "engine"), WAYS)
def test_a_row_is_drawn_from_nothing_but_itself(
    llama: Desk, tmp_path: Path, sample: dict, mode: Mode, engine: str
) -> None:
    """Alone, in a batch of eight, reordered, in windows: the tokens that are drawn by hand."""
    prompts = [f"{prompt}{' is' * more}" for more in range(3) for prompt in (row["input"] for row in rows())][:8]
    table = rows(prompts)
    table[7]["input"] = table[0]["input"]  # The same text under another name draws other tokens.
    wanted = [drawn_alone(llama, row["example_id"], row["input"], sample) for row in table]
    assert wanted[7] != wanted[0]
    asked = speaking({"steps": STEPS, "sample": sample})

    def said(own: list[dict], name: str, batch_size: int | None = None) -> list[list[int]]:
        return llama.over(write_table(tmp_path / name, own)).one(asked, engine, batch_size, mode).ids("original")

    assert said(table, "all") == wanted
    assert said(table[::-1], "backwards") == wanted[::-1]
    assert said([table[4]], "alone") == [wanted[4]]
    assert said(table, "windows", 3) == wanted


def test_a_written_model_draws_from_its_own_logits(llama: Desk) -> None:
    """A write that leaves one token draws it, and the reads see the logits as written."""
    writes = {"only": write("head", generated(all=True), "swap", 60.0, features=[9])}
    body = intervention({"x": read("head", generated(index=1), "m")}, writes)
    seen = llama.one(
        observing({**body, "decode": {"steps": 3, "sample": {"seed": 5}}}, outputs={"X": "x"}, saves=["m.generated"])
    )
    assert seen.ids("m") == [[9, 9, 9]] * 3
    assert seen.tensor("X")[:, 9].tolist() == [60.0] * 3


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    scores = torch.tensor([1.0, 0.0, -1.0, 2.0, -math.inf], dtype=torch.float64)
    draws = [int((scores + gumbel(3, f"row-{i}", 2, 5)).argmax()) for i in range(4000)]
    share = torch.bincount(torch.tensor(draws), minlength=5) / 4000
    torch.testing.assert_close(share.double(), scores.softmax(-1), rtol=0, atol=0.025)
    assert share[4] == 0


def test_a_row_that_stops_may_draw_its_end(llama: Desk) -> None:
    ends = {"writes": {"end": write("head", generated(index=2), "swap", 80.0, features=[1])}}
    body = {**intervention({"x": read("head", -1, "m")}, ends["writes"])}
    stopping = {"steps": 5, "eos": "stop", "sample": {"seed": 0}}
    seen = llama.one(observing({**body, "decode": stopping}, saves=["m.generated"]))
    assert seen.tensors("m.generated")["m.generated.lengths"].tolist() == [3, 3, 3]
    assert [ids[2] for ids in seen.ids("m")] == [1, 1, 1]
    # Held off, it is out of the way before the likeliest are kept: something else is left to draw.
    holding = {"steps": 5, "sample": {"seed": 0, "top_p": 0.5}}
    held = llama.one(observing({**body, "decode": holding}, saves=["m.generated"]))
    assert all(1 not in ids and len(ids) == 5 for ids in held.ids("m"))


def test_close_draws_are_told(llama: Desk) -> None:
    """Ties of score and noise: two tokens whose sums are 5e-4 apart."""
    noise = gumbel(4, "row-0", 0, llama.checkpoint.vocab)
    level = 50.0
    writes = {
        "zero": write("head", generated(index=0), "swap", 0.0),
        "one": write("head", generated(index=0), "add_scaled", level - float(noise[300]), features=[300]),
        "two": write("head", generated(index=0), "add_scaled", level + 5e-4 - float(noise[301]), features=[301]),
    }
    body = intervention({"x": read("head", generated(index=0), "m")}, writes)
    seen = llama.one(observing({**body, "decode": {"steps": 1, "sample": {"seed": 4}}}, saves=["m.generated"]))
    (tie,) = [tie for tie in seen.observed.near_ties if tie.example_id == "row-0"]
    assert tie.margin == pytest.approx(5e-4, abs=2e-5)
    assert seen.ids("m")[0] == [301]


def test_settings_that_leave_no_token_end_the_run(llama: Desk) -> None:
    from causalab_mini.errors import RunFailure

    with pytest.raises(RunFailure, match="no token is left to choose at step 0"):
        llama.one(speaking(own={"suppress_tokens": list(range(llama.checkpoint.vocab))}))


def test_refusals_with_a_checkpoint(llama: Desk, tmp_path: Path) -> None:
    (problem,) = llama.problems(speaking(own={"suppress_tokens": [llama.checkpoint.vocab]}))
    assert problem.path == "interventions.one.generation.suppress_tokens"
    assert "the id 640, and there are 640 tokens" in problem.message
    (problem,) = llama.problems(speaking(own={"eos_token_id": 5}))
    assert "the checkpoint's is [1] (checkpoint)" in problem.message
    (problem,) = llama.problems(speaking(own={"forced_eos_token_id": 1}))
    assert "never picked under eos: hold" in problem.message
    forced = {"forced_eos_token_id": [7, 8], "suppress_tokens": list(range(8, 400))}
    assert {ids[-1] for ids in llama.one(speaking(own=forced)).ids("original")} == {7}
    (problem,) = llama.problems(speaking(own={**forced, "suppress_tokens": list(range(7, 400))}))
    assert problem.path == "interventions.one.generation.forced_eos_token_id"
    assert "'suppress_tokens' is [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, ...] (" in problem.message
    world = configured(llama, tmp_path / "forced", forced_eos_token_id=7)
    (problem,) = world.problems(speaking(generation="checkpoint", own={"suppress_tokens": [7]}))
    assert problem.path == "model.generation"
    assert "is 7 (checkpoint), and 'suppress_tokens' is [7] (interventions.one.generation)" in problem.message
    world = configured(llama, tmp_path, do_sample=True, temperature=0.6, top_p=0.9, odd_key=3)
    problems = world.problems(speaking(generation="checkpoint"))
    assert [problem.path for problem in problems] == ["model.generation"] * 3
    assert "'temperature' is 0.6 (checkpoint)" in problems[1].message
    assert "it is greedy (interventions.one.decode)" in problems[1].message
    # Said as well by the decode, or taken away by a stronger layer, they contradict nothing.
    agreed = {"steps": 4, "sample": {"temperature": 0.6, "top_p": 0.9, "seed": 2}}
    world.compile(speaking(agreed, "checkpoint"))
    world.compile(speaking(own=dict.fromkeys(("do_sample", "temperature", "top_p")), generation="checkpoint"))
