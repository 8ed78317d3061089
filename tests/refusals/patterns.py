"""Attention patterns: what they are no operand of, have no features for, and cannot be scored by."""

from __future__ import annotations

from tests.refusals.words import METRIC, READ, STEP, SWAP, WRITE, metric

PROBS = ("sites.probs", {"component": "attention_probs", "layers": 0})
ONE = ("sites.one", {"component": "attention_probs", "layers": 0, "heads": [0]})
F = ("featurizers.f", {"kind": "subspace", "k": 2, "seed": 0})
THERE = [PROBS, (f"{READ}.site", "probs"), (f"{WRITE}.site", "probs")]

PATTERNS = [
    (
        [PROBS, (f"{READ}.site", "probs")],
        f"{WRITE}.operand",
        "'v_cf' is the pattern of all query heads, and the write at block_output is as wide as the residual stream",
        "values of one width",
    ),
    (
        [*THERE, ONE, (f"{READ}.site", "one")],
        f"{WRITE}.operand",
        "'v_cf' is the pattern of 1 head, and the write at attention_probs is the pattern of all query heads",
        None,
    ),
    ([*THERE, (f"{WRITE}.features", [0])], f"{WRITE}.features", "attention_probs has a number for each key", "'heads'"),
    (
        [*THERE, F, (f"{READ}.featurizer", "f"), (f"{WRITE}.featurizer", "f")],
        f"{WRITE}.featurizer",
        "'attention_probs' has a number for each key, of which every row has as many as tokens",
        "leave 'featurizer' out",
    ),
    (
        [*THERE, (f"{STEP}.outputs", {"m": {"read": "v_cf", "reduce": "pca", "k": 1}})],
        f"{STEP}.outputs.m.reduce",
        "'v_cf' holds attention patterns",
        "none or mean",
    ),
    ([*THERE, (f"{READ}.view", "logits")], f"{READ}.view", "'attention_probs' is no part of it", None),
    ([*THERE, (METRIC, metric("entropy", of="v_cf"))], f"{METRIC}.of", "'v_cf' reads attention_probs", None),
    (
        [
            PROBS,
            (f"{SWAP}.reads.p", {"site": "probs", "pos": -1, "input": "base"}),
            (METRIC, metric("cosine", of="v_cf", against="p")),
        ],
        f"{METRIC}.against",
        "'p' is the pattern of all query heads",
        None,
    ),
    ([("sites.probs", {"component": "attention_probs", "layers": 0, "units": [0]})], "sites.probs.units",
     "'attention_probs' has no units", None),
    ([*THERE, (f"{WRITE}.reach", "forward")], f"{WRITE}.reach", "about attention keys and values", None),
]  # fmt: skip
