"""Attention patterns in documents: operands and means, what is compared and saved, what is refused; every schedule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests import families, outcome
from tests.building import generated, intervention, observing, read, rows, write, write_table
from tests.desk import Desk, Seen
from torch import Tensor

from causalab_mini.errors import EngineFailure
from causalab_mini.run.runner import Run

SAME = ["If today is Thursday, tomorrow is", "If today is Monday, tomorrow is", "If today is Friday, tomorrow is"]
UNEVEN = ["If today is Thursday, tomorrow is", "Friday is", "If today is Thursday, then I, and surely you, say"]
PROBS = {"component": "attention_probs", "layers": 1}
SCORES = {"component": "attention_scores", "layers": 1}
MODES = ("naive", "exact", "fast")


@pytest.fixture(scope="session")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        name: write_table(tmp_path_factory.mktemp(name), rows(texts))
        for name, texts in (("same", SAME), ("uneven", UNEVEN))
    }


@pytest.fixture(scope="session")
def eager(random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", 64).under("eager")


@pytest.fixture
def same(eager: Desk, roots: dict[str, Path]) -> Desk:
    desk = eager.over(roots["same"])
    assert len({len(families.encode(desk.folder, text)) for text in SAME}) == 1
    return desk


@pytest.fixture
def uneven(eager: Desk, roots: dict[str, Path]) -> Desk:
    return eager.over(roots["uneven"])


def asked(body: dict, outputs: dict, site: dict = PROBS, attention: str | None = "eager") -> dict:
    made = observing(body, outputs=outputs)
    model = {**made["model"], "attn_implementation": attention}
    return {**made, "model": model, "sites": {**made["sites"], "here": site, "scores": SCORES}}


def ways(desk: Desk, document: dict) -> list[Seen]:
    """The document under every mode, the first of them naive."""
    with outcome.priced(1):
        return [desk.one(document, "traced" if mode == "exact" else "hooks", mode=mode) for mode in MODES]


def refused(desk: Desk, document: dict) -> tuple[str, str, str]:
    (problem,) = desk.problems(document)
    return problem.path, problem.message, problem.hint or ""


def test_probabilities_are_the_softmax_of_scores(uneven: Desk) -> None:
    body = intervention({"p": read("here"), "s": read("scores")})
    for seen in ways(uneven, asked(body, {"P": "p", "S": "s"})):
        for probs, scores, keys in zip(
            seen.tensor("P"), seen.tensor("S"), seen.tensors("P")["P.keys"].tolist(), strict=True
        ):
            torch.testing.assert_close(probs[:, :keys].sum(-1), torch.ones(len(probs)))
            torch.testing.assert_close(scores[:, :keys].softmax(-1), probs[:, :keys])
            assert not probs[:, keys:].any()
            assert not scores[:, keys:].any()


def test_heads_are_picked_in_the_order_of_the_site(uneven: Desk) -> None:
    body = intervention({"all": read("here"), "some": read("some")})
    document = asked(body, {"ALL": "all", "SOME": "some"})
    document["sites"]["some"] = {**PROBS, "heads": [3, 0]}
    seen = uneven.one(document)
    assert torch.equal(seen.tensor("SOME"), seen.tensor("ALL")[:, [3, 0]])
    assert seen.metadata("SOME")["heads"] == "3,0"
    assert seen.metadata("SOME")["dims"] == ["row", "head", "key"]


def test_a_first_token_read_beside_longer_texts_is_as_wide_as_its_rows(uneven: Desk) -> None:
    """Where schedules share beginnings, the lane that has a value may be of a longer text."""
    texts = ["If today is", "If today is Monday"]
    root = write_table(uneven.root.parent / "beginnings", rows(texts))
    desk = uneven.over(root)
    body = intervention({"p": read("here", 0), "long": read("head", -1, role="other")})
    document = asked(body, {"P": "p", "LONG": "long"})
    document["steps"]["only"]["rows"] = {"base": "own/rows#short", "other": "own/rows#long"}
    table = [{**row, "split": split} for row, split in zip(rows(texts), ("short", "long"), strict=True)]
    table[1]["counterfactual_inputs"] = [texts[1] + ", then tomorrow is surely"]
    write_table(root, table)
    shapes = [seen.tensor("P").shape for seen in ways(desk, document)]
    size = len(families.encode(desk.folder, texts[0]))
    assert shapes == [(1, 4, size)] * len(MODES)


def test_a_layer_axis_comes_first(uneven: Desk) -> None:
    body = intervention({"p": read("here", generated(all=True))}, decode=2)
    document = asked(body, {"P": "p"}, {**PROBS, "layers": [2, 0]})
    for seen in ways(uneven, document):
        assert seen.metadata("P")["dims"] == ["layer", "row", "step", "head", "key"]
        tensor = seen.tensor("P")
        for position, layer in enumerate((2, 0)):
            alone = uneven.one(asked(body, {"P": "p"}, {**PROBS, "layers": layer}))
            torch.testing.assert_close(tensor[position], alone.tensor("P"))


def test_a_mean_over_rows_of_one_length(same: Desk) -> None:
    body = intervention({"p": read("here", {"last": 2}), "a": read("here", {"all": True})})
    outputs = {"N": "p", "M": {"read": "p", "reduce": "mean"}, "A": {"read": "a", "reduce": "mean"}, "B": "a"}
    for seen in ways(same, asked(body, outputs)):
        torch.testing.assert_close(seen.tensor("M"), seen.tensor("N").mean(0))
        torch.testing.assert_close(seen.tensor("A"), seen.tensor("B").mean(0))
        assert seen.metadata("M")["dims"] == ["position", "head", "key"]
        assert seen.metadata("A")["dims"] == ["head", "key"]


def test_patterns_compared_by_cosine(same: Desk, uneven: Desk) -> None:
    reads = {"p": read("here"), "q": read("here", -1, "m")}
    writes = {"w": write("here", -1, "lerp", 0.25, t=0.5)}
    body = intervention(reads, writes, metrics={"c": {"kind": "cosine", "of": "p", "against": "q"}})
    for desk in (same, uneven):
        for seen in ways(desk, asked(body, {"P": "p", "Q": "q"})):
            one, other = (seen.tensor(name).flatten(1).double() for name in ("P", "Q"))
            wanted = torch.nn.functional.cosine_similarity(one, other)
            assert seen.values("c") == pytest.approx(wanted.tolist(), abs=1e-5)
            assert max(wanted) < 0.9999


def test_noise_depends_on_nothing_but_the_row(uneven: Desk) -> None:
    reads = {"there": read("here", {"last": 2}, "m"), "later": read("here", generated(all=True), "m")}
    writes = {
        "w": write("here", {"last": 2}, "gaussian", seed=5, scale=0.1),
        "v": write("here", generated(index=1), "gaussian", seed=5, scale=0.1),
    }
    document = asked(intervention(reads, writes, decode=3), {"T": "there", "L": "later"})
    first, *others = ways(uneven, document)
    others.append(uneven.one(document, "hooks", 1, "naive"))
    for name in ("T", "L"):
        for seen in others:
            torch.testing.assert_close(seen.tensor(name), first.tensor(name), rtol=1e-4, atol=1e-5)


def test_renormalize_mends_the_norm_over_the_keys_that_are_seen(uneven: Desk) -> None:
    writes = {"w": write("here", -2, "add_scaled", 0.5), "n": write("here", -2, "renormalize")}
    body = intervention({"p": read("here", -2), "q": read("here", -2, "m")}, writes)
    for seen in ways(uneven, asked(body, {"P": "p", "Q": "q"})):
        before, after = seen.tensor("P"), seen.tensor("Q")
        torch.testing.assert_close(before.flatten(1).norm(dim=-1), after.flatten(1).norm(dim=-1))
        assert torch.equal(before == 0, after == 0)
        assert not torch.equal(before, after)


def test_a_report_counts_only_the_keys_that_are_seen(uneven: Desk) -> None:
    """The second token sees three keys, each of its probabilities at most 1: 7 changes them by 7 at most."""
    writes = {"w": write("here", 1, "swap", 7.0)}
    body = intervention({"p": read("here", 1), "x": read("head", -1, "m")}, writes)
    for seen in ways(uneven, asked(body, {"P": "p", "X": "x"})):
        (report,) = seen.observed.writes
        least = [row[row > 0].min() for row in seen.tensor("P")]
        assert report.largest_change == pytest.approx([7.0 - float(one) for one in least], rel=1e-4)


def test_a_zeroed_key_head_has_score_zero_for_the_query_heads_that_share_it(uneven: Desk) -> None:
    def scores(*reads: str) -> list[Tensor]:
        body = intervention(
            {"clean": read("scores"), "s": read("scores", -1, "m")}, {"w": write("key", 1, "swap", 0.0)}
        )
        document = asked(body, {"CLEAN": "clean", "S": "s"})
        document["sites"]["key"] = {"component": "attention_key", "layers": 1, "heads": [1]}
        seen = uneven.one(document)
        return [seen.tensor(name) for name in reads]

    clean, written = scores("CLEAN", "S")
    prefix = len(uneven.checkpoint.prefix)
    assert not written[:, 2:, prefix + 1].any()
    changed = (clean != written).flatten(0, 1).view(len(clean), 4, -1).any(0)
    assert changed[2:, prefix + 1].all()
    assert not changed[:2].any()
    changed[:, prefix + 1] = False
    assert not changed.any()


def test_what_a_query_does_not_see_is_never_written(uneven: Desk) -> None:
    """Attention to later tokens would make a text depend on what comes after it."""
    body = intervention({"p": read("here", {"all": True}, "m")}, {"w": write("here", {"all": True}, "swap", 1.0)})
    for seen in ways(uneven, asked(body, {"P": "p"})):
        tensors = seen.tensors("P")
        at = 0
        for length in tensors["P.lengths"].tolist():
            for token in range(length):
                pattern = tensors["P"][at + token]
                own = token + len(uneven.checkpoint.prefix) + 1
                assert (pattern[:, :own] == 1).all()
                assert not pattern[:, own:].any()
            at += length


def test_refused_under_another_attention(uneven: Desk, random_world: Callable[[str, int], Desk]) -> None:
    body = intervention({"p": read("here")})
    for attention in (None, "sdpa"):
        path, message, hint = refused(uneven, asked(body, {"P": "p"}, attention=attention))
        assert path == "sites.here.component"
        assert "attention_probs is there under eager attention, and this model computes under 'sdpa'" in message
        assert '"attn_implementation": "eager"' in hint
    random_world("gemma2", 16).over(uneven.root).compile(asked(body, {"P": "p"}, attention=None))


def test_an_engine_refuses_another_attention(uneven: Desk, random_world: Callable[[str, int], Desk]) -> None:
    desk = random_world("llama", 16).over(uneven.root)
    experiment = desk.compile(asked(intervention({"p": read("here")}), {"P": "p"}))
    for engine in desk.engines.values():
        with pytest.raises(EngineFailure, match="under eager attention, and this model computes under sdpa"):
            list(Run(experiment, desk.checkpoint, desk.network, engine).results())


def test_refused_between_rows_of_unequal_length(uneven: Desk) -> None:
    reads = {"v": read("here", -1, role="other"), "x": read("head", -1, "m")}
    body = intervention(reads, {"w": write("here", -1, "swap", "v")})
    path, message, hint = refused(uneven, asked(body, {"X": "x"}))
    sizes = [len(families.encode(uneven.folder, text)) for text in UNEVEN]
    assert path == "interventions.one.writes.w.operand"
    assert "the operand's pattern does not fit on 3 of 3 rows" in message
    assert f"'row-0': over {sizes[1]} keys, and the write's over {sizes[0]}" in message
    assert "equally many tokens" in hint


def test_refused_between_steps(same: Desk) -> None:
    reads = {"v": read("here", generated(index=1)), "x": read("head", -1, "m")}
    body = intervention(reads, {"w": write("here", generated(index=2), "swap", "v")}, decode=3)
    assert "keys, and the write's over" in refused(same, asked(body, {"X": "x"}))[1]
    # The step of the prefill is the prompt's last token.
    body = intervention(
        reads | {"v": read("here", -1)}, {"w": write("here", generated(index=0), "swap", "v")}, decode=3
    )
    same.compile(asked(body, {"X": "x"}))


def test_scores_are_those_of_one_query(same: Desk) -> None:
    reads = {"v": read("here", -2, role="other"), "x": read("head", -1, "m")}
    body = intervention(reads, {"w": write("here", -1, "swap", "v")})
    same.compile(asked(body, {"X": "x"}))
    size = len(families.encode(same.folder, SAME[0]))
    message = refused(same, asked(body, {"X": "x"}, SCORES))[1]
    assert f"'row-0': of token {size - 2}, and the write's of token {size - 1}" in message


def test_refused_means_and_operands_of_outputs(same: Desk, uneven: Desk) -> None:
    body = intervention({"p": read("here")})
    path, message, _ = refused(uneven, asked(body, {"M": {"read": "p", "reduce": "mean"}}))
    sizes = [len(families.encode(uneven.folder, text)) for text in UNEVEN]
    assert path == "steps.only.outputs.M"
    assert f"patterns over {min(sizes)} to {max(sizes)} keys" in message
    steps = intervention({"p": read("here", generated(all=True))}, decode=2)
    assert "which have no mean" in refused(same, asked(steps, {"M": {"read": "p", "reduce": "mean"}}))[1]


def test_refused_comparisons(uneven: Desk) -> None:
    def comparing(other: dict, **more: object) -> dict:
        reads = {"p": read("here"), "q": other}
        return {**intervention(reads, metrics={"c": {"kind": "cosine", "of": "p", "against": "q"}}), **more}

    path, message, _ = refused(uneven, asked(comparing(read("here", -1, role="other")), {"P": "p"}))
    assert path == "interventions.one.metrics.c"
    assert "over different numbers of keys on 3 of 3 rows" in message
    late = comparing(read("here", generated(index=-1)), decode={"steps": 2, "eos": "stop"})
    assert "known only when the continuation is finished" in refused(uneven, asked(late, {"P": "p"}))[1]
