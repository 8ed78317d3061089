"""Decodes as objects: rows that stop, rows fed a text, tokens where they are read; each against the row alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests import plain
from tests.desk import Desk, Seen

from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.engine.modules import load
from causalab_mini.errors import Refusal
from causalab_mini.results.records import Observed
from causalab_mini.vocabulary.reasons import Reason

KEY = "causalab-mini/weekdays-llama"
ROWS = [
    {"example_id": "a", "input": "If today is Thursday, tomorrow is", "said": " Friday. We work"},
    {"example_id": "b", "input": "The day after Friday is", "said": " Saturday."},
    {"example_id": "c", "input": "Note: Today is Saturday, so tomorrow will be", "said": ""},
    {"example_id": "d", "input": "The capital of France is", "said": " Paris. Paris. Paris"},
]
STEPS = 8
MODES = ["naive", "exact", "fast"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    root = tmp_path_factory.mktemp("rows")
    (root / "own").mkdir()
    (root / "own/rows.json").write_text(json.dumps(ROWS))
    folder = resolve(KEY).folder
    return Desk(folder, load(folder, "fp32", None, "cpu"), Path(root))


def document(decode: object, reads: dict, metrics: dict, writes: dict | None = None, saves: list | None = None) -> dict:
    written = writes or {}
    return {
        "model": {"key": KEY, "dtype": "fp32"},
        "roles": {"base": {"field": "input"}},
        "sites": {"mid": {"component": "block_output", "layers": 2}, "head": {"component": "lm_head"}},
        "interventions": {
            "one": {
                "reads": reads,
                "writes": written,
                "models": {"m": {"input": "base", "writes": list(written)}},
                "metrics": metrics,
                "decode": decode,
            }
        },
        "steps": {"s": {"kind": "observe", "rows": {"base": "own/rows"}, "saves": saves or []}},
    }


def observe(desk: Desk, made: dict, mode: str = "auto") -> Observed:
    (observed,) = desk.run(made, mode=mode)[""].values()
    return observed


def head(**pos: object) -> dict:
    return {"site": "head", "pos": {"frame": "generated", **pos}, "model": "m", "input": "base"}


def alone(desk: Desk, row: int, **options: object) -> plain.Rollout:
    return plain.run(desk.network.model, desk.checkpoint.encode(ROWS[row]["input"]).ids, **options)


def stopped(desk: Desk, row: int, edits=()) -> tuple[list[int], torch.Tensor]:
    """What a row says until its first EOS, and the raw logits of those steps."""
    found = alone(desk, row, steps=STEPS, edits=edits)
    ends = [step for step, token in enumerate(found.ids) if token in desk.checkpoint.eos_ids]
    length = ends[0] + 1 if ends else STEPS
    return found.ids[:length], found.logits[:length]


@pytest.mark.parametrize("mode", MODES)
def test_a_row_that_stops_ends_with_its_first_eos(desk: Desk, mode: str) -> None:
    reads = {"end": head(index=-1, scope={"segment": "eos"}), "late": head(index=5), "last": head(last=1)}
    metrics = {name: {"kind": "entropy", "of": name} for name in reads}
    saves = [{"value": "m.generated", "file_path": "g.safetensors"}]
    observed = observe(desk, document({"steps": STEPS, "eos": "stop"}, reads, metrics, saves=saves), mode=mode)
    tables = {table.name: table for table in observed.tables}
    tensors = observed.bundles[0].tensors
    lengths = []
    for row in range(len(ROWS)):
        ids, logits = stopped(desk, row)
        lengths.append(len(ids))
        pad = [desk.checkpoint.pad_id] * (STEPS - len(ids))
        assert tensors["m.generated"][row].tolist() == [*ids, *pad]
        log_p = logits.log_softmax(-1)
        entropies = -(log_p.exp() * log_p).sum(-1)
        said_eos = ids[-1] in desk.checkpoint.eos_ids
        end, late, last = (tables[name].rows[row] for name in ("end", "late", "last"))
        assert last.positions == (len(ids) - 1,)
        assert last.value == pytest.approx(entropies[-1].item(), rel=1e-3, abs=1e-5)
        assert last.stopped_at == (len(ids) - 1 if said_eos else None)
        if said_eos:
            assert end.positions == (len(ids) - 1,)
            assert end.value == pytest.approx(entropies[-1].item(), rel=1e-3, abs=1e-5)
        else:
            assert end.reason is Reason.ALIGNMENT_MISSING
        if len(ids) > 5:
            assert late.value == pytest.approx(entropies[5].item(), rel=1e-3, abs=1e-5)
        else:
            assert late.reason is Reason.OUT_OF_RANGE
    assert tensors["m.generated.lengths"].tolist() == lengths
    assert min(lengths) < STEPS


@pytest.mark.parametrize("mode", MODES)
def test_a_write_does_nothing_to_a_row_that_has_ended(desk: Desk, mode: str) -> None:
    push = {
        "site": "mid",
        "pos": {"frame": "generated", "span": [3, STEPS]},
        "mechanism": "add_scaled",
        "operand": 0.5,
    }
    reads = {"last": head(last=1)}
    metrics = {"e": {"kind": "entropy", "of": "last"}}
    observed = observe(desk, document({"steps": STEPS, "eos": "stop"}, reads, metrics, {"push": push}), mode=mode)
    (report,) = observed.writes
    for row, firings in enumerate(report.firings):
        start = len(desk.checkpoint.encode(ROWS[row]["input"]).ids) - 1
        edits = [
            plain.Edit("model.layers.2", "output", start + step, lambda value: value + 0.5) for step in range(3, STEPS)
        ]
        ids, logits = stopped(desk, row, edits)
        log_p = logits[-1].log_softmax(-1)
        assert firings == max(len(ids) - 3, 0)
        assert observed.tables[0].rows[row].positions == (len(ids) - 1,)
        assert observed.tables[0].rows[row].value == pytest.approx(
            float(-(log_p.exp() * log_p).sum()), rel=1e-3, abs=1e-5
        )


@pytest.mark.parametrize("mode", MODES)
def test_a_forced_row_is_fed_its_text_and_scored_on_it(desk: Desk, mode: str) -> None:
    reads = {"all": head(all=True), "second": head(index=1)}
    metrics = {
        "whole": {"kind": "continuation_logprob", "of": "all"},
        "second": {"kind": "entropy", "of": "second"},
    }
    saves = [{"value": "m.generated", "file_path": "g.safetensors"}]
    observed = observe(desk, document({"force": "said"}, reads, metrics, saves=saves), mode=mode)
    whole, second = observed.tables
    texts = [tuple(desk.checkpoint.tokenizer.own(row["said"]).ids) for row in ROWS]
    longest = max(map(len, texts))
    pad = desk.checkpoint.pad_id
    assert observed.bundles[0].tensors["m.generated"].tolist() == [
        [*ids, *[pad] * (longest - len(ids))] for ids in texts
    ]
    assert observed.bundles[0].tensors["m.generated.lengths"].tolist() == [len(ids) for ids in texts]
    for row, ids in enumerate(texts):
        if not ids:
            assert whole.rows[row].reason is second.rows[row].reason is Reason.EMPTY_CELL
            continue
        found = alone(desk, row, steps=len(ids), forced=ids)
        log_p = found.logits.log_softmax(-1)
        wanted = sum(log_p[step, token].item() for step, token in enumerate(ids))
        assert whole.rows[row].value == pytest.approx(wanted, rel=1e-4, abs=1e-5)
        assert whole.rows[row].positions == tuple(range(len(ids)))
        assert second.rows[row].value == pytest.approx(float(-(log_p[1].exp() * log_p[1]).sum()), rel=1e-3, abs=1e-5)


def test_what_is_produced_is_scored_as_a_whole_too(desk: Desk) -> None:
    reads, metrics = {"all": head(all=True)}, {"whole": {"kind": "continuation_logprob", "of": "all"}}
    observed = observe(desk, document(4, reads, metrics))
    for row, cell in enumerate(observed.tables[0].rows):
        found = alone(desk, row, steps=4, held=desk.checkpoint.eos_ids)
        log_p = found.logits.log_softmax(-1)
        wanted = sum(log_p[step, token].item() for step, token in enumerate(found.ids))
        assert cell.value == pytest.approx(wanted, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_the_input_of_a_token_is_the_output_of_the_next(desk: Desk, mode: str) -> None:
    def at(token: str, **pos: object) -> dict:
        where = {"frame": "generated", "token": token, **pos}
        return {"site": "mid", "pos": where, "model": "m", "input": "base"}

    reads = {
        "in1": at("input", index=1),
        "out2": at("output", index=2),
        "in_span": at("input", span=[0, 2]),
        "out_span": at("output", span=[1, 3]),
        "in_all": at("input", all=True),
        "in_back": at("input", index=-2),
        "out_back": at("output", index=-1),
    }
    metrics = {
        "one": {"kind": "cosine", "of": "in1", "against": "out2"},
        "back": {"kind": "cosine", "of": "in_back", "against": "out_back"},
    }
    made = document(4, reads, metrics)
    step = made["steps"]["s"]
    step["outputs"] = {name: name for name in ("in_span", "out_span", "in_all")}
    step["saves"] = [{"value": name, "file_path": f"{name}.safetensors"} for name in step["outputs"]]
    observed = observe(desk, made, mode=mode)
    tensors = {bundle.name: bundle.tensors[bundle.name] for bundle in observed.bundles}
    assert torch.equal(tensors["in_span"], tensors["out_span"])
    assert tensors["in_all"].shape[:2] == (len(ROWS), 3)
    one, back = observed.tables
    for row, (cell, last) in enumerate(zip(one.rows, back.rows, strict=True)):
        ids = alone(desk, row, steps=4, held=desk.checkpoint.eos_ids).ids
        assert cell.value == pytest.approx(1.0, abs=1e-5)
        assert cell.positions == (2,)
        assert cell.tokens == (desk.checkpoint.token_text(ids[1]),)
        assert last.value == pytest.approx(1.0, abs=1e-5)
        assert last.positions == (3,)
        start = len(desk.checkpoint.encode(ROWS[row]["input"]).ids)
        look = plain.Look("x", "model.layers.2", "output", start + 1)
        wanted = alone(desk, row, steps=4, held=desk.checkpoint.eos_ids, looks=[look]).values["x"]
        # The input of token 1 stands at the token itself, one after the prompt and token 0.
        assert torch.allclose(tensors["in_span"][row, 1], wanted, rtol=1e-4, atol=1e-5)


def test_an_operand_that_only_the_end_locates_is_refused(desk: Desk) -> None:
    reads = {"v": {"site": "mid", "pos": {"frame": "generated", "index": 2}, "input": "base"}, "x": head(index=0)}
    write = {"w": {"site": "mid", "pos": {"frame": "generated", "index": 0}, "mechanism": "swap", "operand": "v"}}
    metrics = {"e": {"kind": "entropy", "of": "x"}}
    with pytest.raises(Refusal, match="known when it stops"):
        desk.compile(document({"steps": 4, "eos": "stop"}, reads, metrics, write))
    desk.compile(document(4, reads, metrics, write))


def test_a_column_that_cannot_be_fed_is_refused(desk: Desk) -> None:
    with pytest.raises(Refusal, match="no row of 'own/rows' has a column 'sayd'"):
        desk.compile(document({"force": "sayd"}, {"x": head(index=0)}, {"e": {"kind": "entropy", "of": "x"}}))
    with pytest.raises(Refusal, match="past the last step"):
        desk.compile(document({"force": "said"}, {"x": head(index=60)}, {"e": {"kind": "entropy", "of": "x"}}))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("engine", ["hooks", "traced"])
def test_a_row_that_ends_with_the_step_it_shares(desk: Desk, engine: str, mode: str) -> None:
    """Step 0 is what another intervention looks at as well; of the later ones there is nothing."""
    made = document(2, {"x": {"site": "mid", "pos": {"frame": "generated", "all": True}, "input": "base"}}, {})
    goes_on = made["interventions"]["one"]
    ends = {
        **goes_on,
        "decode": {"steps": 2, "eos": "stop"},
        "generation": {"sequence_bias": [[[min(desk.checkpoint.eos_ids)], 1000.0]]},
    }
    saves = [{"value": "X", "file_path": "x.safetensors"}]
    step = {"kind": "observe", "rows": {"base": "own/rows"}, "outputs": {"X": "x"}, "saves": saves}
    made["interventions"]["two"] = ends
    made["steps"] = {
        "s": {**step, "interventions": "one"},
        "t": {**step, "interventions": "two", "outputs": {"Y": "x"}},
    }
    made["steps"]["t"]["saves"] = [{"value": "Y", "file_path": "y.safetensors"}]
    found = desk.run(made, engine, mode=mode)[""]
    whole, ended = Seen(found[("s",)]).tensor("X"), Seen(found[("t",)]).tensors("Y")
    assert ended["Y.lengths"].tolist() == [1] * len(ROWS)
    torch.testing.assert_close(ended["Y"], whole[:, 0], rtol=0, atol=1e-4)
