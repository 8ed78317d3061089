"""Sites, names, positions, reads and writes."""

from __future__ import annotations

from tests.refusals.words import HEAD, METRIC, MODEL, READ, STEP, SWAP, WRITE, generated, metric
from tests.unit.spec.build import GONE

SITES = [
    ([("sites.early.component", "block_outptu")], "sites.early.component", "no component", "'block_output'"),
    ([("sites.early.layers", GONE)], "sites.early.layers", "no layer is named", None),
    ([("sites.early.layers", [])], "sites.early.layers", "the list of layers is empty", None),
    ([("sites.early.layers", -1)], "sites.early.layers", "layers count from 0, and -1 was found", None),
    ([("sites.head.layers", 0)], "sites.head.layers", "'lm_head' belongs to the whole model", "leave 'layers' out"),
    ([("sites.early.heads", [0])], "sites.early.heads", "'block_output' has no heads", None),
    ([("sites.early.units", [0])], "sites.early.units", "'block_output' has no units", None),
    ([("sites.early.heads", [0, 0])], "sites.early.heads", "the head 0 stands there twice", None),
    ([("sites.early.heads", [-1])], "sites.early.heads", "heads count from 0, and -1 was found", None),
    ([("sites.early.heads", [])], "sites.early.heads", "the list of heads is empty", None),
    ([("sites.early.heads", [0]), ("sites.early.units", [0])], "sites.early", "'heads' and 'units' both", None),
    ([("featurizers.f.kind", "identty")], "featurizers.f.kind", "no featurizer kind 'identty'", "'identity'"),
    ([("featurizers.f", {"kind": "identity", "k": 2})], "featurizers.f.k", "'identity' has no 'k'", None),
]

NAMES = [
    ([(f"{READ}.site", "erly")], f"{READ}.site", "there is no site 'erly'", "did you mean 'early'?"),
    ([(f"{READ}.input", "bass")], f"{READ}.input", "there is no role 'bass'", "did you mean 'base'?"),
    ([(f"{READ}.model", "patchd")], f"{READ}.model", "there is no model 'patchd'", "did you mean 'patched'?"),
    ([(f"{READ}.featurizer", "f")], f"{READ}.featurizer", "there is no featurizer 'f'", "identity"),
    ([(f"{WRITE}.site", "erly")], f"{WRITE}.site", "there is no site 'erly'", None),
    ([(f"{WRITE}.featurizer", "f")], f"{WRITE}.featurizer", "there is no featurizer 'f'", None),
    ([(f"{WRITE}.operand", "v_fc")], f"{WRITE}.operand", "there is no read 'v_fc'", "did you mean 'v_cf'?"),
    ([(f"{WRITE}.mechanism", "swpa")], f"{WRITE}.mechanism", "there is no mechanism 'swpa'", "'swap'"),
    ([(f"{MODEL}.writes", ["pach"])], f"{MODEL}.writes[0]", "there is no write 'pach'", "did you mean 'patch'?"),
    ([(f"{MODEL}.writes", ["patch", "patch"])], f"{MODEL}.writes[1]", "'patch' stands there twice", None),
    ([(f"{MODEL}.input", "bass")], f"{MODEL}.input", "there is no role 'bass'", None),
    ([(f"{METRIC}.of", "logit")], f"{METRIC}.of", "there is no read 'logit'", "did you mean 'logits'?"),
    ([(METRIC, metric("kl", against="x"))], f"{METRIC}.against", "there is no read 'x'", None),
    ([(f"{STEP}.interventions", "swapp")], f"{STEP}.interventions", "no intervention 'swapp'", "'swap'"),
    ([(f"{STEP}.rows.bass", "a/b")], f"{STEP}.rows.bass", "there is no role 'bass'", "did you mean 'base'?"),
    ([(f"{STEP}.outputs.m", "v_fc")], f"{STEP}.outputs.m", "has a read 'v_fc'", "did you mean 'v_cf'?"),
]

POSITIONS = [
    ([(f"{READ}.pos", {})], f"{READ}.pos", "has one cut, and none was found", "index, span, last, all"),
    ([(f"{READ}.pos", {"index": 0, "all": True})], f"{READ}.pos", "one cut, and 'index' and 'all' were found", None),
    ([(f"{READ}.pos", {"span": [2, 2]})], f"{READ}.pos", "the span [2, 2] is empty", "holds a and not b"),
    ([(f"{READ}.pos", {"span": [-1, -3]})], f"{READ}.pos", "[-1, -3] ends before it begins", None),
    ([(f"{READ}.pos", {"span": [-4, 0]})], f"{READ}.pos", "[-4, 0] is empty", '{"last": 4}'),
    ([(f"{READ}.pos", {"index": 0, "scope": {}})], f"{READ}.pos", "a variable, a segment or both", None),
    (
        [(f"{READ}.pos", {"index": 0, "scope": {"segment": "prefix", "occurrence": 1}})],
        f"{READ}.pos",
        "no variable is named",
        None,
    ),
    ([(f"{READ}.pos", {"index": 0, "token": "input"})], f"{READ}.pos", "the frame is the prompt", None),
    (
        [(f"{READ}.pos", {"index": -1, "scope": {"segment": "eos"}})],
        f"{READ}.pos",
        "the segment 'eos' ends a continuation, and {index:-1 scope:{segment:eos}} is in the prompt frame",
        '"frame": "generated"',
    ),
    (
        [(f"{HEAD}.pos", generated(index=-1, scope={"segment": "user[0]"}))],
        f"{HEAD}.pos",
        "'user[0]' is a segment of a prompt, and {generated index:-1 scope:{segment:user[0]}}",
        "a chat turn is in the prompt frame",
    ),
    ([(f"{SWAP}.decode", 0)], f"{HEAD}.pos", "{generated index:0} counts generated tokens, and 'decode' is 0", None),
    ([(f"{HEAD}.pos", generated(index=3))], f"{HEAD}.pos", "is step 3 of a 3-token decode", "0 to 2"),
    ([(f"{SWAP}.decode", 8), (f"{HEAD}.pos.index", 9)], f"{HEAD}.pos", "is step 9 of an 8-token decode", None),
    ([(f"{HEAD}.pos", generated(index=-4))], f"{HEAD}.pos", "counts 4 tokens back in a 3-token decode", None),
    ([(f"{HEAD}.pos", generated(last=4)), (METRIC, GONE)], f"{HEAD}.pos", "the last 4 tokens of a 3-token", None),
    ([(f"{HEAD}.pos", generated(span=[1, 4]))], f"{HEAD}.pos", "reaches step 3 of a 3-token decode", None),
    ([(f"{HEAD}.pos", generated(span=[2, -1])), (METRIC, GONE)], f"{HEAD}.pos", "is empty in a 3-token", None),
    ([(f"{HEAD}.pos", generated(span=[-1, 1])), (METRIC, GONE)], f"{HEAD}.pos", "is empty in a 3-token", None),
    ([(f"{HEAD}.pos", generated(span=[-4, 2])), (METRIC, GONE)], f"{HEAD}.pos", "counts 4 tokens back", None),
    (
        [(f"{WRITE}.pos", generated(index=-1))],
        f"{WRITE}.pos",
        "a write in the continuation frame is at a step the decode has reached — a cut of the finished continuation, "
        "{generated index:-1}, is something to read, not to write",
        '"all": true',
    ),
    ([(f"{WRITE}.pos", generated(last=1))], f"{WRITE}.pos", "{generated last:1}, is something to read", None),
    (
        [(f"{WRITE}.pos", generated(all=True, scope={"variable": "entity"}))],
        f"{WRITE}.pos",
        "{generated all scope:{variable:entity}}, is something to read, not to write",
        None,
    ),
    ([(f"{WRITE}.pos", generated(span=[0, 4]))], f"{WRITE}.pos", "reaches step 3 of a 3-token decode", None),
    ([(f"{WRITE}.pos", generated(index=3))], f"{WRITE}.pos", "is step 3 of a 3-token decode", None),
]

NEXT = ("sites.next", {"component": "next_token_probs"})
ROUTER = ("sites.early", {"component": "expert_indices", "layers": 0})

READS = [
    ([NEXT, (f"{READ}.site", "next"), (f"{READ}.pos", 0)], f"{READ}.pos", "is there at the last token of the prompt",
     "elsewhere, lm_head"),
    ([NEXT, (f"{READ}.site", "next"), (f"{READ}.pos", {"index": -1, "scope": {"variable": "entity"}})],
     f"{READ}.pos", "{index:-1 scope:{variable:entity}} was found", None),
    ([NEXT, (f"{READ}.site", "next"), (f"{READ}.view", "probs")], f"{READ}.view", "is no part of it",
     "it is a distribution already"),
    ([(f"{HEAD}.view", "probs")], f"{HEAD}.view", "'lm_head' is no part of it", "leave 'view' out"),
    ([("sites.norm.component", "ln_final"), (f"{READ}.site", "norm"), (f"{READ}.view", "logits")],
     f"{READ}.view", "'ln_final' is no part of it", None),
]  # fmt: skip

WRITES = [
    ([NEXT, (f"{WRITE}.site", "next")], f"{WRITE}.site", "'next_token_probs' can be read and not written", None),
    ([NEXT, (f"{READ}.site", "next")], f"{WRITE}.operand", "as wide as the vocabulary, which is no operand", None),
    ([ROUTER], f"{WRITE}.site", "'expert_indices' can be read and not written", None),
    ([ROUTER], f"{WRITE}.operand", "'v_cf' holds expert ids, which are no operand", None),
    ([(f"{WRITE}.site", "ids")], f"{WRITE}.site", "'input_ids' can be read and not written", None),
    ([(f"{WRITE}.operand", GONE)], f"{WRITE}.operand", "'swap' needs an operand, and there is none", None),
    ([(f"{WRITE}.mechanism", "clamp"), (f"{WRITE}.params", {"lo": 0})], f"{WRITE}.operand", "takes no operand", None),
    ([(f"{WRITE}.operand", 1e300)], f"{WRITE}.operand", "1e+300 does not fit fp32", "a wider dtype"),
    (
        [("model.dtype", "fp16"), (f"{WRITE}.mechanism", "add_scaled"), (f"{WRITE}.params", {"scale": 1e5})],
        f"{WRITE}.params.scale",
        "100000.0 does not fit fp16, whose largest number is 65504",
        None,
    ),
    ([(f"{WRITE}.params", {"scale": 2})], f"{WRITE}.params", "'swap' takes no parameters, and 'scale' was found", None),
    ([(f"{WRITE}.mechanism", "lerp")], f"{WRITE}.params.t", "the key 't' is missing", None),
    (
        [(f"{WRITE}.mechanism", "add_scaled"), (f"{WRITE}.params", {"scale": "4"})],
        f"{WRITE}.params.scale",
        'a number is needed, and "4" was found',
        "without quotes",
    ),
    (
        [(f"{WRITE}.mechanism", "add_scaled"), (f"{WRITE}.params", {"scal": 4})],
        f"{WRITE}.params.scal",
        "there is no key 'scal' here",
        "did you mean 'scale'?",
    ),
    (
        [(f"{WRITE}.mechanism", "gaussian"), (f"{WRITE}.operand", GONE)],
        f"{WRITE}.params.seed",
        "the key 'seed' is missing",
        None,
    ),
    (
        [(f"{WRITE}.mechanism", "clamp"), (f"{WRITE}.operand", GONE)],
        f"{WRITE}.params",
        "clamp needs 'lo', 'hi' or both",
        None,
    ),
    (
        [(f"{WRITE}.mechanism", "clamp"), (f"{WRITE}.operand", GONE), (f"{WRITE}.params", {"lo": 2, "hi": 1})],
        f"{WRITE}.params",
        "clamp's lo 2.0 is above its hi 1.0",
        None,
    ),
    ([(f"{READ}.view", "logits")], f"{WRITE}.operand", "'v_cf' is a logits view", '"view": "raw"'),
    ([(f"{READ}.site", "head")], f"{WRITE}.operand", "'v_cf' is as wide as the vocabulary", None),
    ([(f"{READ}.site", "ids")], f"{WRITE}.operand", "'v_cf' holds token ids", "'embeddings'"),
    ([(f"{WRITE}.site", "head")], f"{WRITE}.operand", "the residual stream, and the write at lm_head is as wide", None),
    (
        [("featurizers.f.kind", "subspace"), (f"{READ}.featurizer", "f")],
        f"{WRITE}.operand",
        "read through the featurizer 'f', and the write is through 'identity'",
        None,
    ),
    ([(f"{READ}.pos", {"last": 3})], f"{WRITE}.operand", "has 3 tokens, and the write at {index:-1} has 1", None),
    (
        [(f"{READ}.pos", {"last": 2}), (f"{WRITE}.pos", {"span": [0, 3]})],
        f"{WRITE}.operand",
        "has 2 tokens, and the write at {span:[0, 3]} has 3",
        "as many as the write",
    ),
    (
        [(f"{READ}.pos", {"last": 2}), (f"{WRITE}.pos", generated(all=True))],
        f"{WRITE}.operand",
        "has 2 tokens, and the write at {generated all} has 3",
        None,
    ),
    ([(f"{WRITE}.features", [0, 0])], f"{WRITE}.features", "the feature 0 stands there twice", None),
    ([(f"{WRITE}.features", [-1])], f"{WRITE}.features", "features count from 0", None),
    ([(f"{WRITE}.features", [])], f"{WRITE}.features", "the list of features is empty", None),
    (
        [("sites.late", {"component": "attention_z", "layers": 0, "heads": [0]}), (f"{WRITE}.site", "late")],
        f"{WRITE}.operand",
        "as wide as the residual stream, and the write at attention_z is as wide as 1 head",
        "values of one width",
    ),
    ([(f"{WRITE}.reach", "forward")], f"{WRITE}.reach", "about attention keys and values", None),
]
