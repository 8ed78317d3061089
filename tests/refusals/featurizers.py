"""Featurizers: their keys, their sites, what is read and written through them, and outputs that are directions."""

from __future__ import annotations

from tests.refusals.words import HEAD, METRIC, MODEL, READ, STEP, SWAP, WRITE, metric

F = "featurizers.f"
DRAWN = {"kind": "subspace", "k": 2, "seed": 0}
BOTH = [(f"{READ}.featurizer", "f"), (f"{WRITE}.featurizer", "f")]
SECOND = {"site": "early", "pos": -1, "mechanism": "swap", "operand": "v_cf", "featurizer": "f"}
BASIS = {"read": "v_cf", "reduce": "pca", "k": 2}

FEATURIZERS = [
    ([(F, {"kind": "identity", "file_path": "a"})], f"{F}.file_path", "'identity' has no 'file_path'", "leave it out"),
    ([(F, {"kind": "gate", "file_path": "a", "k": 2})], f"{F}.k", "'gate' has no 'k'", None),
    ([(F, {"kind": "sae", "file_path": "a", "seed": 2})], f"{F}.seed", "'sae' has no 'seed'", None),
    ([(F, {"kind": "sae"})], f"{F}.file_path", "'sae' is loaded, and no file is named", '"file_path"'),
    ([(F, {"kind": "pca", "k": 2})], f"{F}.file_path", "'pca' is loaded, and no file is named", None),
    ([(F, {"kind": "subspace", "k": 2})], F, "drawn with a seed or loaded from a file, and neither", '"seed": 0'),
    ([(F, {"kind": "subspace", "seed": 2})], f"{F}.k", "how many dimensions the subspace has is not said", '"k": 1'),
    ([(F, {**DRAWN, "file_path": "a"})], f"{F}.seed", "is loaded from a file, and has a seed too", "keep one"),
    ([(F, {**DRAWN, "k": 0})], f"{F}.k", "at least 1 dimension, and k is 0", None),
    ([(F, {**DRAWN, "seed": -1})], f"{F}.seed", "a seed is 0 to 2⁶³ − 1, and -1 was found", None),
    ([(F, {**DRAWN, "parametrization": "qr"})], f"{F}.parametrization", "'cayley' is needed", None),
    (
        [(F, DRAWN), *BOTH, (f"{READ}.site", "late")],
        f"{WRITE}.featurizer",
        "'f' acts at the site 'late', and here at 'early'",
        "declare another",
    ),
    ([(F, DRAWN), (f"{READ}.featurizer", "f"), (f"{READ}.site", "ids")], f"{READ}.featurizer", "token ids", None),
    (
        [(F, DRAWN), *BOTH, (f"{READ}.view", "logits")],
        f"{READ}.view",
        "the features of 'f' are no part of it",
        "leave 'view' or 'featurizer' out",
    ),
    ([(F, DRAWN), (f"{HEAD}.featurizer", "f")], f"{METRIC}.of", "reads the features of 'f'", "cosine"),
    (
        [(F, DRAWN), (f"{WRITE}.featurizer", "f")],
        f"{WRITE}.operand",
        "read through the featurizer 'identity', and the write is through 'f'",
        "one featurizer for both",
    ),
    (
        [(F, DRAWN), (f"{READ}.featurizer", "f"), (METRIC, metric("cosine", of="v_cf", against="logits"))],
        f"{METRIC}.against",
        "features of 'f'",
        None,
    ),
    (
        [
            (F, {"kind": "sae", "file_path": "a"}),
            *BOTH,
            (f"{WRITE}.features", [0]),
            (f"{SWAP}.writes.other", {**SECOND, "features": [1]}),
            (f"{MODEL}.writes", ["patch", "other"]),
        ],
        f"{MODEL}.writes",
        "'patch' and 'other' both set block_output[0]",
        "keep one",
    ),
    ([(f"{STEP}.outputs.m", {**BASIS, "k": None})], f"{STEP}.outputs.m.k", "how many directions a pca has", '"k": 1'),
    ([(f"{STEP}.outputs.m", {**BASIS, "k": 0})], f"{STEP}.outputs.m.k", "at least 1 direction, and k is 0", None),
    (
        [(f"{STEP}.outputs.m", {"read": "v_cf", "reduce": "mean", "k": 2})],
        f"{STEP}.outputs.m.k",
        "the reduction 'mean' has no 'k'",
        "leave it out",
    ),
]
