"""Writes at keys and values that last, and those of one forward alone, against a plain cached loop over the row alone.

The plain loop projects to zero at the written token, which is a zero key after rotary too; where the write is of one
forward, it puts back into the cache what a run without the write has there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests import families, outcome
from tests.building import PROMPTS, generated, intervention, observing, read, rows, write, write_table
from tests.desk import Desk
from torch import Tensor, nn
from transformers import DynamicCache

from causalab_mini.schedule.optimize import Mode
from causalab_mini.schedule.prepare import prepare

MODELS = [("llama", 64), ("qwen3", 64), ("gemma2", 16), ("gpt2", 64), ("gpt_neox", 16)]
WAYS: list[tuple[str, int | None, Mode]] = [
    ("hooks", None, "naive"),
    ("traced", None, "exact"),
    ("hooks", None, "fast"),
    ("traced", 1, "fast"),
]
LAYER, STEPS = 1, 4
REACHES = ("lasting", "forward")


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Two prompts begin alike, so that schedules have something to share.
    return write_table(tmp_path_factory.mktemp("reach"), rows([*PROMPTS, "If today is Thursday, then I"]))


@pytest.fixture
def llama(root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", 64).over(root)


def asked(part: str, places: list[dict]) -> dict:
    """Zero keys or values, lasting and not, at each of the places in turn: what is said, and by which logits."""
    reads: dict = {"clean": read("head", generated(all=True)), "last": read("head", -1)}
    writes, models = {}, {}
    for i, place in enumerate(places):
        for reach in REACHES:
            name = f"{reach}{i}"
            writes[name] = {**write("here", place, "swap", 0.0), "reach": reach}
            models[name] = {"input": "base", "writes": [name]}
            reads[name] = read("head", generated(all=True), name)
            reads[f"{name}_there"] = read("here", place, name)
    body = intervention(reads, writes, models, decode=STEPS)
    made = observing(body, outputs={read.upper(): read for read in reads})
    return {**made, "sites": {**made["sites"], "here": {"component": part, "layers": LAYER}}}


def zeroing(model: nn.Module, part: str, columns: list[int]) -> Callable[[], None]:
    """Until it is called, the projection to keys or values of the layer is zero at these columns of a forward."""
    config, key = model.config, part == "attention_key"
    path = {"gpt2": "transformer.h.1.attn.c_attn", "gpt_neox": "gpt_neox.layers.1.attention.query_key_value"}
    name = path.get(config.model_type, f"model.layers.1.self_attn.{'k' if key else 'v'}_proj")

    def hook(_: nn.Module, args: tuple, out: Tensor) -> Tensor:
        out = out.clone()
        if config.model_type == "gpt2":
            first = config.hidden_size * (1 if key else 2)
            out[:, columns, first : first + config.hidden_size] = 0
        elif config.model_type == "gpt_neox":
            width = config.hidden_size // config.num_attention_heads
            by_head = out.unflatten(-1, (config.num_attention_heads, 3 * width))
            first = width * (1 if key else 2)
            by_head[:, columns, :, first : first + width] = 0
        else:
            out[:, columns] = 0
        return out

    return model.get_submodule(name).register_forward_hook(hook).remove


def alone(model: nn.Module, ids: list[int], part: str, where: dict[int, list[int]], reach: str) -> Tensor:
    """Logits [STEPS, V] of one row. `where`: by forward, the columns of the whole text that are zeroed in it."""
    cache, text, fed, found = DynamicCache(), list(ids), list(ids), []
    for step in range(STEPS):
        columns, before = where.get(step, []), len(text) - len(fed)
        kept = DynamicCache()
        for layer, old in enumerate(cache.layers):
            kept.update(old.keys.clone(), old.values.clone(), layer)
        with torch.no_grad():
            # What the cache would hold without the write.
            model(input_ids=torch.tensor([fed]), cache=kept, use_cache=True)
            done = zeroing(model, part, [column - before for column in columns])
            logits = model(input_ids=torch.tensor([fed]), cache=cache, use_cache=True).logits[0, -1]
            done()
        if reach == "forward":
            cache.layers[LAYER].keys[:, :, columns] = kept.layers[LAYER].keys[:, :, columns]
            cache.layers[LAYER].values[:, :, columns] = kept.layers[LAYER].values[:, :, columns]
        found.append(logits)
        choice = logits.clone()
        choice[1] = -torch.inf
        fed = [int(choice.argmax())]
        text += fed
    return torch.stack(found)


def forwards(place: dict, length: int, prefix: int) -> dict[int, list[int]]:
    """The columns of the text that a place is, by the forward in which they are run."""
    if "frame" in place:
        (first, last) = place.get("span", (place.get("index"), place.get("index", 0) + 1))
        return {step: [length - 1 + step] for step in range(first, last)}
    own = list(range(prefix, length))
    return {0: [own[place["index"]]] if "index" in place else own[-place["last"] :]}


PLACES = [{"index": 0}, {"index": 1}, {"last": 2}, generated(index=0), generated(span=[1, 3])]


@pytest.mark.parametrize("part", ["attention_key", "attention_value"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model[0]}-{model[1]}")
def test_every_schedule_gives_what_the_row_alone_does(
    model: tuple[str, int], part: str, root: Path, random_world: Callable[[str, int], Desk]
) -> None:
    desk = random_world(*model).over(root)
    stock = families.build(model[0], model[1], desk.checkpoint.vocab)
    stock.set_attn_implementation("eager")
    document = asked(part, PLACES)
    batch = [families.encode(desk.folder, row["input"]) for row in rows([*PROMPTS, "If today is Thursday, then I"])]
    prefix = len(desk.checkpoint.prefix)
    wanted = {
        (i, reach): torch.stack([alone(stock, ids, part, forwards(place, len(ids), prefix), reach) for ids in batch])
        for i, place in enumerate(PLACES)
        for reach in REACHES
    }
    for engine, size, mode in WAYS:
        # Lanes wait for each other wherever they have a column in common.
        with outcome.priced(1):
            seen = desk.one(document, engine, size, mode)
        for (i, reach), logits in wanted.items():
            found = seen.tensor(f"{reach}{i}".upper())
            assert (found - logits).abs().max() <= 1e-4 * logits.abs().max().clamp(min=1), (engine, size, mode, i)
            # A read sees what the queries of that forward see.
            assert not seen.tensor(f"{reach}{i}_there".upper()).any()


def test_the_two_reaches_agree_in_their_forward_and_differ_later(llama: Desk) -> None:
    seen = llama.one(asked("attention_value", [{"index": 1}, generated(index=1)]))
    for i, first in enumerate((0, 1)):
        lasting, forward, clean = (seen.tensor(name) for name in (f"LASTING{i}", f"FORWARD{i}", "CLEAN"))
        torch.testing.assert_close(lasting[:, : first + 1], forward[:, : first + 1])
        assert ((forward[:, first] - clean[:, first]).abs().amax(-1) > 1e-4).all()
        same_token = forward[:, first].argmax(-1) == lasting[:, first].argmax(-1)
        assert same_token.all()
        assert ((lasting[:, first + 1] - forward[:, first + 1]).abs().amax(-1) > 1e-4).all()


def test_no_lane_starts_behind_a_write_of_one_forward(llama: Desk) -> None:
    """From the written column on, every lane runs its columns itself."""
    experiment = llama.compile(asked("attention_key", [{"index": 1}, {"index": 2}]))
    with outcome.priced(1):
        schedule = prepare(experiment.points, llama.checkpoint, "fast").schedule
    for reach in REACHES:
        lanes = [
            lane
            for lane in schedule.lanes
            if any(edit.place.component.passing == (reach == "forward") for edit in lane.edits)
        ]
        behind = [lane for lane in lanes if any(edit.at[0] < lane.start for edit in lane.edits)]
        assert lanes
        assert bool(behind) == (reach == "lasting")


def test_a_lasting_write_comes_first_and_the_other_acts_on_it(llama: Desk) -> None:
    writes = {
        "once": {**write("here", {"index": 1}, "add_scaled", 1.0), "reach": "forward"},
        "ever": write("here", {"index": 1}, "swap", 2.0),
    }
    body = intervention({"x": read("here", {"index": 1}, "m")}, writes)
    made = observing(body, outputs={"X": "x"})
    made = {**made, "sites": {**made["sites"], "here": {"component": "attention_key", "layers": LAYER}}}
    for mode in ("naive", "fast"):
        assert (llama.one(made, mode=mode).tensor("X") == 3.0).all()


def test_two_swaps_of_one_reach_contradict_and_of_two_do_not(llama: Desk) -> None:
    def document(first: str, second: str) -> dict:
        writes = {
            "a": {**write("here", {"index": 1}, "swap", 0.0), "reach": first},
            "b": {**write("here", {"index": 1}, "swap", 1.0), "reach": second},
        }
        made = observing(intervention({"x": read("head", -1, "m")}, writes), outputs={"X": "x"})
        return {**made, "sites": {**made["sites"], "here": {"component": "attention_key", "layers": LAYER}}}

    llama.compile(document("lasting", "forward"))
    for reach in REACHES:
        assert any(
            "the second would undo the first" in problem.message for problem in llama.problems(document(reach, reach))
        )


def test_only_a_write_of_the_same_reach_is_mended(llama: Desk) -> None:
    def document(reach: str) -> dict:
        writes = {
            "a": {**write("here", {"index": 1}, "add_scaled", 1.0), "reach": "forward"},
            "b": {**write("here", {"index": 1}, "renormalize"), "reach": reach},
        }
        made = observing(intervention({"x": read("head", -1, "m")}, writes), outputs={"X": "x"})
        return {**made, "sites": {**made["sites"], "here": {"component": "attention_key", "layers": LAYER}}}

    llama.compile(document("forward"))
    (problem,) = llama.problems(document("lasting"))
    assert "no write before it is there" in problem.message
