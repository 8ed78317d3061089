"""Models and metrics."""

from __future__ import annotations

from tests.refusals.words import HEAD, METRIC, MODEL, READ, SECOND, STEP, SWAP, WRITE, generated, metric
from tests.unit.spec.build import GONE

RENORMALIZE = {"site": "early", "pos": -1, "mechanism": "renormalize"}

MODELS = [
    ([(f"{WRITE}.operand", "logits"), (f"{HEAD}.site", "early"), (METRIC, GONE), (f"{STEP}.saves", [])],
     f"{MODEL}.writes", "'patched' needs its own read 'logits'", "'original'"),
    (
        [
            (f"{SWAP}.reads.r", {"site": "early", "pos": -1, "model": "patched", "input": "base"}),
            (f"{READ}.model", "other"),
            (f"{SWAP}.writes.back", {**SECOND, "operand": "r"}),
            (f"{SWAP}.models.other", {"input": "base", "writes": ["back"]}),
        ],
        f"{MODEL}.writes",
        "in a circle: 'patched' needs 'v_cf' of 'other', 'other' needs 'r' of 'patched'",
        None,
    ),
    (
        [(f"{SWAP}.writes.n", RENORMALIZE), (f"{MODEL}.writes", ["n", "patch"])],
        f"{MODEL}.writes",
        "'n' renormalizes block_output[0], and no write before it is there",
        None,
    ),
    (
        [(f"{SWAP}.writes.n", RENORMALIZE), (f"{SWAP}.writes.more", {**SECOND, "mechanism": "add_scaled"}),
         (f"{MODEL}.writes", ["patch", "n", "more"])],
        f"{MODEL}.writes",
        "'n' renormalizes block_output[0], and 'more' writes there after it",
        "list it last",
    ),
    (
        [(f"{SWAP}.writes.n", {**RENORMALIZE, "site": "late"}), (f"{MODEL}.writes", ["patch", "n"])],
        f"{MODEL}.writes",
        "renormalizes block_output[3]",
        None,
    ),
    (
        [(f"{SWAP}.writes.again", SECOND), (f"{MODEL}.writes", ["patch", "again"])],
        f"{MODEL}.writes",
        "'patch' and 'again' both set block_output[0], at {index:-1} and {index:-1}",
        "different tokens",
    ),
    (
        [(f"{SWAP}.writes.again", {**SECOND, "pos": {"last": 2}}), (f"{MODEL}.writes", ["patch", "again"])],
        f"{MODEL}.writes",
        "at {index:-1} and {last:2}",
        None,
    ),
    (
        [(f"{SWAP}.writes.again", {**SECOND, "pos": generated(all=True)}), (f"{MODEL}.writes", ["patch", "again"])],
        f"{MODEL}.writes",
        "at {index:-1} and {generated all}",
        None,
    ),
    (
        [("sites.next", {"component": "block_input", "layers": 1}),
         (f"{SWAP}.writes.again", {**SECOND, "site": "next"}), (f"{MODEL}.writes", ["patch", "again"])],
        f"{MODEL}.writes",
        "both set block_output[0], which is block_input[1]",
        None,
    ),
    (
        [("sites.logits.component", "logits"),
         (f"{SWAP}.writes.a", {"site": "head", "pos": -1, "mechanism": "clamp", "params": {"hi": 3}}),
         (f"{SWAP}.writes.b", {"site": "logits", "pos": -1, "mechanism": "swap", "operand": 0}),
         (f"{MODEL}.writes", ["a", "b"])],
        f"{MODEL}.writes",
        "both set lm_head, which is logits",
        None,
    ),
]  # fmt: skip

METRICS = [
    ([(f"{METRIC}.of", "v_cf")], f"{METRIC}.of", "token_prob needs logits or probabilities", '"view": "logits"'),
    ([(METRIC, metric("token_logit", token="x")), (HEAD, {"site": "late", "pos": 0, "input": "base", "view": "probs"})],
     f"{METRIC}.of", "token_logit needs logits, and 'logits' is probabilities", '"view": "logits"'),
    ([("sites.head.component", "next_token_probs"), (METRIC, metric("token_logit", token="x"))],
     f"{METRIC}.of", "token_logit needs logits, and 'logits' is probabilities", "read lm_head"),
    ([("sites.head.component", "next_token_probs"), (METRIC, metric("logit_diff", a="x", b="y"))],
     f"{METRIC}.of", "logit_diff needs logits, and 'logits' is probabilities", "read lm_head"),
    ([(METRIC, metric("logit_diff", a="x", b="x"))], f"{METRIC}.b", "are both the column 'x'", "two columns"),
    ([(f"{HEAD}.pos", generated(all=True))], f"{METRIC}.of", "one token per row, and 'logits' reads {generated all}",
     '{"index": -1}'),
    ([(f"{HEAD}.pos", {"last": 2})], f"{METRIC}.of", "'logits' reads {last:2}", None),
    ([(f"{HEAD}.pos", {"all": True, "scope": {"variable": "entity"}})], f"{METRIC}.of", "one token per row", None),
    ([(METRIC, metric("kl", against="v_cf"))], f"{METRIC}.against", "kl needs logits or probabilities", None),
    ([(METRIC, metric("cosine", against="v_cf"))], f"{METRIC}.against",
     "'logits' is as wide as the vocabulary, 'v_cf' is as wide as the residual stream", None),
    ([(f"{READ}.site", "ids"), (f"{WRITE}.operand", 0), (METRIC, {"kind": "cosine", "of": "v_cf", "against": "v_cf"})],
     f"{METRIC}.of", "cosine needs a vector, and 'v_cf' reads token ids", None),
]  # fmt: skip
