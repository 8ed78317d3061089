"""Shapes, strict types, and parts that are not built."""

from __future__ import annotations

from tests.refusals.words import HEAD, METRIC, OTHER, READ, STEP, SWAP, WRITE, metric
from tests.unit.spec.build import GONE

SHAPES = [
    # the document
    ([("stepz", {})], "stepz", "there is no key 'stepz' here", "did you mean 'steps'?"),
    ([("roles", GONE)], "roles", "the key 'roles' is missing", None),
    ([("roles", {})], "roles", "at least one of the roles is needed", None),
    ([("roles", [])], "roles", "an object of names is needed, and the list []", None),
    ([("steps", {})], "steps", "at least one of the steps is needed", None),
    ([("interventions", {}), (f"{STEP}.interventions", GONE)], f"{STEP}.interventions", "declares none", None),
    ([("format", "causalab-mini/2")], "format", "'causalab-mini/1' is needed", "did you mean"),
    ([("header", {"descripton": "x"})], "header.descripton", "there is no key", "did you mean 'description'?"),
    ([("model", GONE)], "model", "the key 'model' is missing", None),
    ([("model.dtype", "fp23")], "model.dtype", "'fp32', 'bf16' or 'fp16' is needed, and \"fp23\"", "'fp32'"),
    ([("model.dtype", GONE)], "model.dtype", "the key 'dtype' is missing", None),
    ([("model.key", "")], "model.key", "not empty", None),
    ([("model.attn_implementation", "flash")], "model.attn_implementation", "'eager' or 'sdpa' is needed", None),
    ([("roles.base.field", 3)], "roles.base.field", "text is needed, and 3 was found", None),
    ([("roles.2nd", {"field": "x"})], "roles.2nd", '"2nd" is not a name', "does not start with a digit"),
    ([("roles.a b", {"field": "x"})], "roles.a b", "is not a name", "letters, digits"),
    ([("roles.original", {"field": "x"})], "roles.original", "'original' is taken", "another name"),
    ([(f"{SWAP}.reads.identity", OTHER["reads"]["r"])], f"{SWAP}.reads.identity", "'identity' is taken", None),
    # strict types
    ([(f"{HEAD}.pos.index", True)], f"{HEAD}.pos.index", "an integer is needed, and true was found", None),
    ([(f"{HEAD}.pos.index", "3")], f"{HEAD}.pos.index", 'an integer is needed, and "3" was found', "without quotes"),
    ([(f"{HEAD}.pos.index", 2.0)], f"{HEAD}.pos.index", "an integer is needed, and 2.0 was found", "write 2"),
    ([(f"{READ}.pos", True)], f"{READ}.pos", "an integer or an object is needed, and true was found", None),
    ([(f"{READ}.pos", "last")], f"{READ}.pos", 'an integer or an object is needed, and "last"', None),
    ([("sites.early.layers", True)], "sites.early.layers", "and true was found", None),
    ([("sites.early.layers", [True])], "sites.early.layers", "and the list [true] was found", None),
    ([("sites.early.layers", "0")], "sites.early.layers", 'and "0" was found', None),
    ([("sites.early.heads", 3)], "sites.early.heads", "a list is needed, and 3 was found", None),
    ([(f"{SWAP}.decode", "3")], f"{SWAP}.decode", 'a number of steps or an object is needed, and "3" was found', None),
    (
        [(f"{SWAP}.decode", True)],
        f"{SWAP}.decode",
        "a number of steps or an object is needed, and true was found",
        None,
    ),
    ([(f"{SWAP}.decode", -1)], f"{SWAP}.decode", "at least 0 is needed, and -1 was found", None),
    ([(f"{WRITE}.operand", True)], f"{WRITE}.operand", "a read's name, a number", None),
    ([(f"{WRITE}.operand", {"reff": "x"})], f"{WRITE}.operand.reff", "there is no key 'reff'", "'ref'"),
    ([(f"{WRITE}.operand", "a b")], f"{WRITE}.operand", "a name is needed", None),
    ([(f"{WRITE}.operand", {"x": 1})], f"{WRITE}.operand.ref", "the key 'ref' is missing", None),
    ([(f"{METRIC}.kind", [])], f"{METRIC}.kind", "text is needed, and the list [] was found", None),
    ([(f"{WRITE}.missing", "drop")], f"{WRITE}.missing", "'refuse' or 'skip' is needed", None),
    ([(f"{READ}.view", "logit")], f"{READ}.view", 'is needed, and "logit" was found', "did you mean 'logits'?"),
    ([(f"{READ}.input", GONE)], f"{READ}.input", "the key 'input' is missing", None),
    ([(f"{READ}.pos", {"indx": 0})], f"{READ}.pos.indx", "there is no key 'indx'", "did you mean 'index'?"),
    ([(f"{READ}.pos", {"last": 0})], f"{READ}.pos.last", "more than 0 is needed, and 0 was found", None),
    ([(f"{READ}.pos", {"all": False})], f"{READ}.pos.all", "true is needed, and false was found", None),
    ([(f"{READ}.pos", {"span": [1]})], f"{READ}.pos.span", "a list of two integers is needed", None),
    (
        [(f"{READ}.pos", {"span": [1, 2, 3]})],
        f"{READ}.pos.span",
        "two integers is needed, and the list [1, 2, 3]",
        None,
    ),
    ([(f"{READ}.pos", {"index": 0, "frame": "output"})], f"{READ}.pos.frame", "'prompt' or 'generated' is", None),
    ([(f"{METRIC}.kind", "token_prop")], f"{METRIC}.kind", "no kind 'token_prop'", "did you mean 'token_prob'?"),
    ([(f"{METRIC}.kind", GONE)], f"{METRIC}.kind", "the key 'kind' is missing", None),
    ([(f"{METRIC}.expected", "x")], f"{METRIC}.expected", "there is no key 'expected'", None),
    ([(f"{METRIC}.token", GONE)], f"{METRIC}.token", "the key 'token' is missing", None),
    ([(f"{METRIC}.token_form", "spaced")], f"{METRIC}.token_form", "'space_prefixed'", None),
    ([(METRIC, metric("top_k", k=0))], f"{METRIC}.k", "at least 1 is needed, and 0", None),
    ([(f"{SWAP}.reads", GONE)], f"{SWAP}.reads", "the key 'reads' is missing", None),
    ([(f"{SWAP}.reads", {})], f"{SWAP}.reads", "at least one of the reads is needed", None),
    ([(SWAP, [])], SWAP, "an object is needed, and the list []", None),
    ([(f"{STEP}.kind", "watch")], f"{STEP}.kind", "'observe' is needed, and \"watch\" was found", None),
    ([(f"{STEP}.rows", GONE)], f"{STEP}.rows", "the key 'rows' is missing", None),
    ([(f"{STEP}.rows.base", 3)], f"{STEP}.rows.base", "text is needed, and 3 was found", None),
    ([(f"{STEP}.interventions", 3)], f"{STEP}.interventions", "an intervention's name", None),
    ([(f"{STEP}.intervention", "swap")], f"{STEP}.intervention", "are one key", "keep one"),
    ([(f"{STEP}.saves", {})], f"{STEP}.saves", "a list is needed, and an object was found", None),
    ([(f"{STEP}.saves[0].value", GONE)], f"{STEP}.saves[0].value", "the key 'value' is missing", None),
    ([(f"{STEP}.outputs", {"m": 3})], f"{STEP}.outputs.m", "a read's name or an object is needed", None),
]

DECODES = [
    ([(f"{SWAP}.decode", {"steps": -1})], f"{SWAP}.decode.steps", "at least 0 is needed, and -1 was found", None),
    ([(f"{SWAP}.decode", {"steps": 3, "force": "said"})], f"{SWAP}.decode.steps", "'steps' says 3", None),
    ([(f"{SWAP}.decode", {"force": "said", "eos": "stop"})], f"{SWAP}.decode.eos", "'eos' has nothing to say", None),
    ([(f"{SWAP}.decode", {})], f"{SWAP}.decode", "this one neither", "steps"),
    ([(f"{SWAP}.decode", {"step": 3})], f"{SWAP}.decode.step", "", "did you mean 'steps'?"),
    (
        [(f"{HEAD}.pos", {"frame": "generated", "index": 2, "token": "input"})],
        f"{HEAD}.pos",
        "the last of 3 is never read",
        "0 to 1",
    ),
    (
        [(f"{HEAD}.pos", {"frame": "generated", "index": -1, "token": "input"})],
        f"{HEAD}.pos",
        "the last of 3 is never read",
        None,
    ),
    (
        [(f"{HEAD}.pos", {"frame": "generated", "last": 1, "token": "input"})],
        f"{HEAD}.pos",
        "the last of 3 is never read",
        None,
    ),
]

UNBUILT = [
    ([(f"{STEP}.kind", "fit")], f"{STEP}.kind", "the step kind 'fit' is not implemented yet", None),
    ([("steps.w", {"kind": "weights", "names": ["f"]})], "steps.w.kind", "'weights' is not implemented yet", None),
]
