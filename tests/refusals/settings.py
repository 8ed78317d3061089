"""Generation settings and sampling."""

from __future__ import annotations

from tests.refusals.words import OTHER, SWAP

OWN = f"{SWAP}.generation"
DRAWN = f"{SWAP}.decode"


def sample(**fields: object) -> list[tuple[str, object]]:
    return [(DRAWN, {"steps": 3, "sample": {"seed": 0, **fields}})]


SETTINGS = [
    ([("model.generation", "checkpiont")], "model.generation", '"neutral", "checkpoint" or an object', None),
    ([("model.generation", 3)], "model.generation", "and 3 was found", None),
    ([("model.generation", {"repetion_penalty": 1.3})], "model.generation.repetion_penalty", "not a generation setting",
     "did you mean 'repetition_penalty'?"),
    ([("model.generation", {"repetition_penalty": 0})], "model.generation.repetition_penalty",
     "a number above 0 is needed, and 0 was found", None),
    ([("model.generation", {"max_new_tokens": 9})], "model.generation.max_new_tokens",
     "'max_new_tokens' is 9 (model.generation), and how long a row goes on is for the steps of decode "
     "(interventions.swap.decode)", '"max_new_tokens": null'),
    ([("model.generation", {"do_sample": True})], "model.generation.do_sample", "it is greedy", '"sample"'),
    ([(OWN, {"num_beams": 4})], f"{OWN}.num_beams", "'num_beams' is 4 (interventions.swap.generation), and decode runs "
     "every row as one sequence", None),
    ([(OWN, {"num_return_sequences": 2})], f"{OWN}.num_return_sequences", "one continuation", None),
    ([(OWN, {"transformers_version": "5"})], f"{OWN}.transformers_version", "sets nothing", "leave it out"),
    ([(OWN, {"suppress_tokens": [-1]})], f"{OWN}.suppress_tokens", "a list of token ids is needed", None),
    ([("model.generation", {"suppress_tokens": [9, 1]}), (OWN, {"forced_eos_token_id": 1}),
      (DRAWN, {"steps": 3, "eos": "stop"})], f"{OWN}.forced_eos_token_id",
     "'forced_eos_token_id' is 1 (interventions.swap.generation), and 'suppress_tokens' is [9, 1] (model.generation): "
     "no token is left where one is forced", "null in a stronger layer"),
    ([(OWN, {"forced_bos_token_id": 5, "suppress_tokens": [5]})], f"{OWN}.forced_bos_token_id",
     "'forced_bos_token_id' is 5 (interventions.swap.generation), and 'suppress_tokens' is [5]", "leave one"),
    ([(OWN, [])], OWN, "an object is needed, and the list []", None),
    ([("interventions.more", {**OTHER, "generation": {"min_length": 3}})], "interventions.more.generation",
     "nothing is generated here", 'add "decode"'),
    ([(DRAWN, {"force": "said"}), (OWN, {"repetition_penalty": 1.3})], f"{OWN}.repetition_penalty",
     "no token is chosen: it feeds the column 'said' (interventions.swap.decode.force)", None),
    ([(DRAWN, {"force": "said", "sample": {"seed": 0}})], f"{DRAWN}.sample", "nothing is left to sample", None),
    ([(DRAWN, {"steps": 0, "sample": {"seed": 0}})], f"{DRAWN}.sample", "nothing is generated in 0 steps", None),
    ([(DRAWN, {"steps": 3, "sample": {}})], f"{DRAWN}.sample.seed", "the key 'seed' is missing", None),
    (sample(temprature=1.0), f"{DRAWN}.sample.temprature", "there is no key", "did you mean 'temperature'?"),
    (sample(temperature=0), f"{DRAWN}.sample.temperature", "more than 0", None),
    (sample(top_k=0), f"{DRAWN}.sample.top_k", "at least 1", None),
    (sample(top_p=1.2), f"{DRAWN}.sample.top_p", "at most 1", None),
    (sample(min_p=-0.1), f"{DRAWN}.sample.min_p", "at least 0", None),
    ([*sample(top_k=5), (OWN, {"top_k": 6})], f"{OWN}.top_k",
     "it samples with temperature=1.0 top_k=5 seed=0 (interventions.swap.decode)", None),
]  # fmt: skip
