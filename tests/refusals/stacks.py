"""Sites of several layers: what is no layer list, and what several layers are not for."""

from __future__ import annotations

from tests.refusals.models import RENORMALIZE
from tests.refusals.words import HEAD, METRIC, MODEL, READ, SECOND, STEP, SWAP, WRITE, metric, two_steps

SITE = "sites.early.layers"
LENS = {"site": "late", "pos": -1, "model": "patched", "input": "base", "view": "logits"}
SHIFT = {"site": "late", "pos": -1, "mechanism": "add_scaled", "operand": 1.0}
ZERO = {"site": "late", "pos": -1, "mechanism": "swap", "operand": 0}

STACKS = [
    ([(SITE, [0, 0])], SITE, "the layer 0 stands there twice", "keep one"),
    ([(SITE, [2, -1])], SITE, "layers count from 0, and -1 was found", None),
    ([(SITE, "every")], SITE, 'and "every" was found', None),
    ([("sites.head.layers", "all")], "sites.head.layers", "belongs to the whole model", "leave 'layers' out"),
    ([(SITE, "all")], f"{WRITE}.operand", "'v_cf' is read at several layers, which is no operand", '"layers": 0'),
    ([(SITE, [0, 2])], f"{WRITE}.operand", "'v_cf' is read at several layers, which is no operand", None),
    (
        two_steps(("interventions.means.reads.r.site", "late"), ("sites.late.layers", [0, 2])),
        f"{WRITE}.operand",
        "'m' is read at several layers, which is no operand",
        '"layers": 0',
    ),
    (
        [
            ("featurizers.f", {"kind": "subspace", "k": 2, "seed": 0}),
            ("sites.late.layers", "all"),
            (f"{SWAP}.writes.n", {**SHIFT, "featurizer": "f"}),
        ],
        f"{SWAP}.writes.n.featurizer",
        "a featurizer acts at one layer, and the site 'late' is several",
        "sweep",
    ),
    (
        [
            ("featurizers.f", {"kind": "subspace", "k": 2, "seed": 0}),
            (READ, {"site": "late", "pos": -1, "input": "base", "featurizer": "f"}),
            ("sites.late.layers", [1, 2]),
            (f"{WRITE}.operand", 0),
        ],
        f"{READ}.featurizer",
        "a featurizer acts at one layer, and the site 'late' is several",
        None,
    ),
    (
        [
            ("sites.late.layers", "all"),
            (f"{SWAP}.reads.r", LENS),
            (f"{STEP}.outputs.m", {"read": "r", "reduce": "pca", "k": 1}),
        ],
        f"{STEP}.outputs.m.reduce",
        "a pca is of the values of one layer, and 'r' is read at several",
        "sweep",
    ),
    (
        [
            ("sites.late.layers", [0, 2]),
            ("sites.other", {"component": "block_output", "layers": [0, 1]}),
            (HEAD, LENS),
            (f"{SWAP}.reads.r", {**LENS, "site": "other"}),
            (METRIC, metric("kl", against="r")),
        ],
        f"{METRIC}.against",
        "'logits' and 'r' are read at different layers",
        "the same layers for both",
    ),
    (
        [
            ("sites.late.layers", "all"),
            ("sites.other", {"component": "block_input", "layers": [0, 1]}),
            (HEAD, {**LENS, "view": "raw"}),
            (f"{SWAP}.reads.r", {**LENS, "view": "raw", "site": "other"}),
            (METRIC, metric("cosine", against="r")),
        ],
        f"{METRIC}.against",
        "'logits' and 'r' are read at different layers",
        None,
    ),
    (
        [
            ("sites.late.layers", [0, 3]),
            (f"{SWAP}.writes.n", {**RENORMALIZE, "site": "late"}),
            (f"{MODEL}.writes", ["patch", "n"]),
        ],
        f"{MODEL}.writes",
        "'n' renormalizes block_output[0, 3], and no write before it is there at every layer",
        None,
    ),
    (
        [
            ("sites.late.layers", "all"),
            (f"{SWAP}.writes.n", RENORMALIZE),
            (f"{SWAP}.writes.more", SHIFT),
            (f"{MODEL}.writes", ["patch", "n", "more"]),
        ],
        f"{MODEL}.writes",
        "'n' renormalizes block_output[0], and 'more' writes there after it",
        "list it last",
    ),
    (
        [("sites.late.layers", [0, 2]), (f"{SWAP}.writes.n", ZERO), (f"{MODEL}.writes", ["patch", "n"])],
        f"{MODEL}.writes",
        "'patch' and 'n' both set one value of block_output[0] and block_output[0, 2], at {index:-1} and {index:-1}",
        "keep one",
    ),
    (
        [("sites.late.layers", "all"), (f"{SWAP}.writes.n", ZERO), (f"{MODEL}.writes", ["patch", "n"])],
        f"{MODEL}.writes",
        "'patch' and 'n' both set one value of block_output[0] and block_output[all]",
        None,
    ),
    (
        [
            ("sites.late", {"component": "block_input", "layers": [1, 2]}),
            (f"{SWAP}.writes.n", ZERO),
            (f"{MODEL}.writes", ["patch", "n"]),
        ],
        f"{MODEL}.writes",
        "'patch' and 'n' both set one value of block_output[0] and block_input[1, 2]",
        None,
    ),
    (
        [
            ("sites.late.layers", [1, 2]),
            (f"{SWAP}.writes.n", ZERO),
            (f"{SWAP}.writes.again", {**SECOND, **ZERO}),
            (f"{MODEL}.writes", ["n", "again"]),
        ],
        f"{MODEL}.writes",
        "'n' and 'again' both set block_output[1, 2]",
        None,
    ),
]
