"""Metrics worked out by hand on logits that writes at the head set: 0 everywhere but at a few tokens."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt
from pathlib import Path

import pytest
import torch
from tests.building import generated, intervention, observing, read, rows, write, write_table
from tests.desk import Desk, Seen
from tests.worlds import VOCABULARY

A, B, C = 300, 301, 302
OTHERS = VOCABULARY - 3
LOGITS = {A: 2.0, B: 1.0, C: -1.0}
"""The logits of model m; those of model n have A and B exchanged."""
TOTAL = exp(2) + exp(1) + exp(-1) + OTHERS
P = {A: exp(2) / TOTAL, B: exp(1) / TOTAL, C: exp(-1) / TOTAL}
REST = 1 / TOTAL
COLUMNS = {"a": [A] * 3, "b": [B] * 3, "c": [C, None, C], "other": [5] * 3}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("metrics"), rows(**COLUMNS))


@pytest.fixture
def desk(root: Path, random_world: Callable[[str, int], Desk]) -> Desk:
    return random_world("llama", 16).over(root)


def scored(desk: Desk, pos: object = -1, decode: int = 0, **metrics: dict) -> Seen:
    """The metrics over reads `x` of m and `y` of n, whose logits at `pos` are those above."""
    writes = {"zero": write("head", pos, "swap", 0.0)}
    for token, value in LOGITS.items():
        writes[f"m{token}"] = write("head", pos, "add_scaled", value, features=[token])
        writes[f"n{token}"] = write("head", pos, "add_scaled", LOGITS[{A: B, B: A, C: C}[token]], features=[token])
    models = {
        "m": {"input": "base", "writes": ["zero", *(name for name in writes if name[0] == "m")]},
        "n": {"input": "base", "writes": ["zero", *(name for name in writes if name[0] == "n")]},
    }
    reads = {"x": read("head", pos, "m"), "y": read("head", pos, "n")}
    return desk.one(observing(intervention(reads, writes, models, metrics, decode)))


def answered(kind: str, **columns: str) -> dict:
    return {"kind": kind, "of": "x", "token_form": "id", **columns}


BY_HAND = [
    (answered("match", expected="a"), 1.0),
    (answered("match", expected="b"), 0.0),
    (answered("logit_diff", a="a", b="b"), 1.0),
    (answered("logit_diff", a="b", b="other"), 1.0),
    (answered("cross_entropy", target="b"), -log(P[B])),
    (answered("token_logit", token="b"), 1.0),
    (answered("token_prob", token="b"), P[B]),
    (answered("token_logprob", token="a"), log(P[A])),
    (answered("token_rank", token="a"), 0.0),
    (answered("token_rank", token="b"), 1.0),
    (answered("token_rank", token="other"), 2.0),
    ({"kind": "entropy", "of": "x"}, -sum(p * log(p) for p in P.values()) - OTHERS * REST * log(REST)),
    ({"kind": "kl", "of": "x", "against": "y"}, P[A] * log(P[A] / P[B]) + P[B] * log(P[B] / P[A])),
    (
        {"kind": "js", "of": "x", "against": "y"},
        P[A] * log(P[A] / ((P[A] + P[B]) / 2)) + P[B] * log(P[B] / ((P[A] + P[B]) / 2)),
    ),
    ({"kind": "cosine", "of": "x", "against": "y"}, (2 * 1 + 1 * 2 + 1) / sqrt(4 + 1 + 1) ** 2),
    ({"kind": "kl", "of": "x", "against": "x"}, 0.0),
]


@pytest.mark.parametrize(("metric", "wanted"), BY_HAND, ids=lambda item: item["kind"] if isinstance(item, dict) else "")
def test_by_hand(desk: Desk, metric: dict, wanted: float) -> None:
    for pos, decode in ((-1, 0), (generated(index=1), 2)):
        assert scored(desk, pos, decode, metric=metric).values("metric") == pytest.approx([wanted] * 3, abs=2e-6)


def test_the_last_rank_counts_all_that_are_more_likely(desk: Desk) -> None:
    seen = scored(desk, metric=answered("token_rank", token="c"))
    assert seen.values("metric") == [VOCABULARY - 1.0, None, VOCABULARY - 1.0]
    assert seen.reasons("metric") == [None, "empty_cell", None]


def test_top_k_shows_ids_texts_and_probabilities(desk: Desk) -> None:
    seen = scored(desk, metric={"kind": "top_k", "of": "x", "k": 2})
    for best in seen.values("metric"):
        assert [entry[0] for entry in best] == [A, B]
        assert [entry[1] for entry in best] == [desk.checkpoint.token_text(A), desk.checkpoint.token_text(B)]
        assert [entry[2] for entry in best] == pytest.approx([P[A], P[B]])
    assert [len(best) for best in scored(desk, metric={"kind": "top_k", "of": "x"}).values("metric")] == [5] * 3


def test_units(desk: Desk) -> None:
    seen = scored(desk, one=answered("token_prob", token="a"), two={"kind": "entropy", "of": "x"})
    assert (seen.table("one").unit, seen.table("one").kind) == ("probability", "token_prob")
    assert (seen.table("two").unit, seen.table("two").kind) == ("nat", "entropy")


def test_views_project_through_the_norm_and_the_head(desk: Desk) -> None:
    """The last block's output through `logits` is what the head gives, and `probs` is its softmax."""
    metrics = {
        f"{kind}_{of}": {"kind": kind, "of": of} for of in ("head", "logits", "probs") for kind in ("entropy", "top_k")
    }
    metrics |= {
        f"js_{one}_{other}": {"kind": "js", "of": one, "against": other}
        for one, other in (("head", "logits"), ("head", "probs"), ("probs", "logits"))
    }
    reads = {
        "head": read("head"),
        "logits": read("out2", view="logits"),
        "probs": read("out2", view="probs"),
        "early": read("out0", view="logits"),
    }
    metrics["far"] = {"kind": "js", "of": "early", "against": "head"}
    seen = desk.one(observing(intervention(reads, metrics=metrics), outputs={"PROBS": "probs", "LOGITS": "logits"}))
    for of in ("logits", "probs"):
        assert seen.values(f"entropy_{of}") == pytest.approx(seen.values("entropy_head"), rel=1e-5)
        for one, other in zip(seen.values(f"top_k_{of}"), seen.values("top_k_head"), strict=True):
            assert [entry[0] for entry in one] == [entry[0] for entry in other]
            assert [entry[2] for entry in one] == pytest.approx([entry[2] for entry in other], rel=1e-4)
    for name in ("js_head_logits", "js_head_probs", "js_probs_logits"):
        assert seen.values(name) == pytest.approx([0.0] * 3, abs=1e-5)
    assert min(seen.values("far")) > 1e-2
    torch.testing.assert_close(seen.tensor("PROBS"), seen.tensor("LOGITS").softmax(-1))


def test_answers_by_form(desk: Desk, tmp_path: Path) -> None:
    """Friday is one token with its space in front, and several without; the forms say which text is meant."""
    table = rows(plain=["Friday"] * 3, spaced=["  Friday", " Friday", "Friday"], number=[17] * 3)
    there = desk.over(write_table(tmp_path, table))
    metrics = {
        "plain": {"kind": "token_logit", "of": "x", "token": "plain"},
        "spaced": {"kind": "token_logit", "of": "x", "token": "spaced"},
        "in_context": {"kind": "token_logit", "of": "x", "token": "exact", "token_form": "in_context"},
        "bare": {"kind": "token_logit", "of": "x", "token": "exact", "token_form": "bare"},
        "number": {"kind": "token_logit", "of": "x", "token": "number", "token_form": "id"},
    }
    table = [{**row, "exact": " Friday"} for row in table]
    write_table(tmp_path, table)
    seen = there.one(observing(intervention({"x": read("head")}, metrics=metrics), outputs={"X": "x"}))
    friday = there.world.tokenizer(" Friday", add_special_tokens=False)["input_ids"]
    assert len(friday) == 1
    logits = seen.tensor("X")
    for name in ("plain", "spaced", "in_context", "bare"):
        assert seen.values(name) == logits[:, friday[0]].tolist()
    assert seen.values("number") == logits[:, 17].tolist()
