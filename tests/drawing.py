"""Draws random documents, and the table they run on: rows of unequal length, each odd in another way."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

TABLE = "odd/rows"
ROWS: list[dict] = [
    {
        "example_id": "plain",
        "input": "If today is Thursday, tomorrow is",
        "counterfactual_inputs": ["If today is Monday, tomorrow is"],
        "counterfactual_inputs_variables": [{"entity": "Monday"}],
        "entity": "Thursday",
        "word": "today",
        "base_answer": " Friday",
        "cf_answer": " Tuesday",
        "said": " Friday. Then",
    },
    {
        "example_id": "long, the word twice",
        "input": "Note: today is today, and if today is Friday then the day after Friday is",
        "counterfactual_inputs": ["The day after Wednesday is"],
        "counterfactual_inputs_variables": [{"entity": "Wednesday"}],
        "entity": "then",
        "word": "today",
        "base_answer": " Saturday",
        "cf_answer": " Thursday",
        "said": " day",
    },
    {
        "example_id": "short, no such word, an empty cell",
        "input": "Today is Saturday",
        "counterfactual_inputs": ["If yesterday was Monday, today is surely"],
        "counterfactual_inputs_variables": [{"entity": "Monday"}],
        "entity": "Saturday",
        "word": "tomorrow",
        "base_answer": " Sunday",
        "cf_answer": "",
        "said": None,
    },
    {
        "example_id": "naïve 你好",
        "input": "naïve 你好 Sunday, and the day after today is",
        "counterfactual_inputs": ["你好: the day after Sunday is"],
        "counterfactual_inputs_variables": [{"entity": "你"}],
        "entity": "你",
        "word": "day",
        "base_answer": " Monday",
        "cf_answer": " Tuesday",
        "said": " 你好, Monday",
    },
    {
        "example_id": "a word inside others",
        "input": "birthdays and holidays, Tuesday is",
        "counterfactual_inputs": ["Friday is"],
        "counterfactual_inputs_variables": [{"entity": "Friday"}],
        "entity": "Tuesday",
        "word": "day",
        "base_answer": None,
        "cf_answer": " Wednesday",
        "said": "  ",
    },
]
BLOCKS = ("block_input", "attention_output", "mlp_output", "block_output")
VIEWS = ("logits", "probs")
WHOLE = ("embeddings", "ln_final")
DISTRIBUTION = ("match", "cross_entropy", "token_prob", "token_logprob", "token_rank", "entropy", "kl", "js", "top_k")
ANSWERED = {"match": "expected", "cross_entropy": "target"}


def write_table(root: Path) -> Path:
    """Write the table under `root`, a data root."""
    path = root / f"{TABLE}.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(ROWS))
    return root


class Draw:
    """One document, drawn from a seed. It may be refused: what it asks for need not fit every row."""

    lengths = (0, 0, 2, 3)
    """How many steps an intervention decodes."""

    def __init__(self, seed: int, depth: int) -> None:
        self.random = Random(seed)
        self.depth = depth
        self.sites: dict[str, dict] = {"head": {"component": "lm_head"}, "logits": {"component": "logits"}}
        self.outputs: dict[str, object] = {}

    def document(self) -> dict:
        first = self.intervention("a", [])
        steps = {"one": self.step(first, "a")}
        interventions = {"a": first}
        if self.random.random() < 0.4:
            refs = list(self.outputs)
            interventions["b"] = self.intervention("b", refs)
            steps["two"] = self.step(interventions["b"], "b")
        return {
            "model": {"key": "any", "dtype": "fp32"},
            "roles": {"base": {"field": "input"}, "other": {"field": "counterfactual_inputs[0]"}},
            "sites": self.sites,
            "interventions": interventions,
            "steps": steps,
        }

    def step(self, body: dict, name: str) -> dict:
        outputs = {}
        reads = sorted(read for read in body["reads"] if not read.startswith("pattern"))
        for read in self.random.sample(reads, min(2, len(reads))):
            if not read.startswith("head") or self.several(body["reads"][read]):
                outputs[f"{name}_{read}"] = {"read": read, "reduce": self.random.choice(["none", "mean"])}
        taps = {key: body["reads"][spec["read"]] for key, spec in outputs.items()}
        self.outputs.update({key: tap for key, tap in taps.items() if not self.several(tap)})
        values = [*body["metrics"], *outputs]
        if body["decode"]:
            pairs = {(read.get("model", "original"), read["input"]) for read in body["reads"].values()}
            pairs = sorted(pairs | {(model, node["input"]) for model, node in body["models"].items()})
            models = [model for model, _ in pairs]
            values += [
                f"{model}.generated" if models.count(model) == 1 else f"{model}@{role}.generated"
                for model, role in pairs
            ]
        saves = [
            {"value": value, "file_path": f"{name}.{value}.{'json' if value in body['metrics'] else 'safetensors'}"}
            for value in values
        ]
        return {
            "kind": "observe",
            "rows": {"base": TABLE, "other": TABLE},
            "interventions": name,
            "outputs": outputs,
            "saves": saves,
        }

    def intervention(self, name: str, refs: list[str]) -> dict:
        pick = self.random
        self.decode = pick.choice(self.lengths)
        body: dict = {"reads": {}, "writes": {}, "models": {}, "metrics": {}, "decode": self.going_on()}
        for i in range(pick.randint(1, 2)):
            body["reads"][f"v{i}"] = {"site": self.site(), "pos": self.position(), "input": self.role()}
        for m in range(pick.randint(1, 2)):
            writes = {f"w{m}{i}": self.write(body["reads"], refs) for i in range(pick.randint(1, 2))}
            if pick.random() < 0.3:
                last = list(writes.values())[-1]
                writes[f"w{m}norm"] = {**last, "mechanism": "renormalize", "params": {}, "operand": None}
            body["writes"].update(writes)
            role = self.role()
            body["models"][f"m{m}"] = {"input": role, "writes": list(writes)}
            body["reads"][f"v{m}m"] = {
                "site": self.site(),
                "pos": self.position(),
                "model": f"m{m}",
                "input": role,
            }
            body["reads"][f"head{m}"] = {
                **pick.choice(
                    [{"site": "head"}, {"site": "logits"}, *({"site": self.site(0.4), "view": v} for v in VIEWS)]
                ),
                "pos": self.position(one=True),
                "model": f"m{m}",
                "input": role,
            }
        body["reads"]["head"] = {"site": "head", "pos": self.position(one=True), "input": "base"}
        self.metrics(body)
        return body

    def going_on(self) -> int | dict:
        """The decode: so many steps, or fewer where a row stops, or as many as a text has tokens."""
        if not self.decode or self.random.random() < 0.5:
            return self.decode
        return self.random.choice([{"steps": self.decode, "eos": "stop"}, {"force": "said"}])

    def metrics(self, body: dict) -> None:
        heads = [read for read in body["reads"] if read.startswith("head")]
        for i in range(3):
            of = self.random.choice(heads)
            kind = self.random.choice(DISTRIBUTION)
            if body["reads"][of].get("view") != "probs":
                kind = self.random.choice((*DISTRIBUTION, "token_logit", "logit_diff"))
            metric: dict = {"kind": kind, "of": of}
            if kind in ("kl", "js"):
                layers = [self.sites[body["reads"][read]["site"]].get("layers") for read in (of, *heads)]
                stacked = [isinstance(found, (list, str)) for found in layers]
                alike = zip(heads, layers[1:], stacked[1:], strict=True)
                metric["against"] = self.random.choice(
                    [head for head, found, several in alike if not (several and stacked[0]) or found == layers[0]]
                )
            elif kind == "logit_diff":
                metric |= {"a": "base_answer", "b": "cf_answer"}
            elif kind not in ("entropy", "top_k"):
                metric[ANSWERED.get(kind, "token")] = self.random.choice(["base_answer", "cf_answer"])
            body["metrics"][f"metric{i}"] = metric
        if self.decode and self.random.random() < 0.5:
            model = self.random.choice([None, *body["models"]])
            of = {"model": model, "input": body["models"][model]["input"]} if model else {"input": "base"}
            body["reads"]["head_all"] = {"site": "head", "pos": {"frame": "generated", "all": True}, **of}
            body["metrics"]["whole"] = {"kind": "continuation_logprob", "of": "head_all"}

    def site(self, several: float = 0.0) -> str:
        """A declared site, of several layers as often as `several` says."""
        if self.random.random() < several:
            component, layers = self.random.choice(BLOCKS), list(range(self.depth))
            self.random.shuffle(layers)
            layers = self.random.choice(["all", layers[:2], layers])
            name = f"{component}_{'_'.join(map(str, layers))}"
            self.sites[name] = {"component": component, "layers": layers}
            return name
        if self.random.random() < 0.15:
            name = self.random.choice(WHOLE)
            self.sites[name] = {"component": name}
        else:
            component, layer = self.random.choice(BLOCKS), self.random.randrange(self.depth)
            name = f"{component}{layer}"
            self.sites[name] = {"component": component, "layers": layer}
        return name

    def several(self, tap: dict) -> bool:
        return isinstance(self.sites[tap["site"]].get("layers"), (list, str))

    def role(self) -> str:
        return self.random.choice(["base", "base", "other"])

    def position(self, one: bool = False, writing: bool = False) -> dict | int:
        pick = self.random
        if self.decode and pick.random() < 0.5:
            step = pick.randrange(self.decode)
            cuts: list[dict] = [{"index": step}]
            if not one:
                cuts += [{"all": True}, {"span": [0, step + 1]}]
            if not writing:
                cuts += [{"index": -1}, {"index": -1, "scope": {"variable": "word"}}]
            if not (writing or one):
                cuts += [{"last": 1 + step}]
            entering = pick.random() < 0.3
            return {"frame": "generated", **pick.choice(cuts), **({"token": "input"} if entering else {})}
        scope = pick.choice([{}, {}, {"scope": self.scope()}])
        cut = pick.choice([{"index": -1}, {"index": 0}, {"index": -2}])
        if not one:
            cut = pick.choice(
                [cut, {"last": 2}, {"span": [-3, -1]}, {"span": [0, 2]}, {"span": [1, -1]}, {"all": True}]
            )
        if scope and pick.random() < 0.5:
            cut = pick.choice([{"index": 0}, {"index": -1}])
        return {**cut, **scope}

    def scope(self) -> dict:
        scope: dict = {"variable": self.random.choice(["entity", "word"])}
        if self.random.random() < 0.4:
            scope["occurrence"] = self.random.choice([0, -1, 1])
        return scope

    def write(self, reads: dict, refs: list[str]) -> dict:
        pick = self.random
        mechanism = pick.choice(["swap", "add_scaled", "lerp", "clamp", "gaussian"])
        params = {
            "swap": {},
            "add_scaled": {"scale": pick.choice([0.5, -2.0, 3])},
            "lerp": {"t": pick.choice([0.25, 1.5])},
            "clamp": pick.choice([{"lo": -0.5, "hi": 0.5}, {"hi": 0.1}, {"lo": 0.0}]),
            "gaussian": {"seed": pick.randrange(5), "scale": 0.5},
        }[mechanism]
        operand: object = None
        position = self.position(writing=True)
        if mechanism in ("swap", "add_scaled", "lerp"):
            operand = pick.choice([*(name for name in reads if not name.startswith("head")), 0.75])
            if refs and pick.random() < 0.6:
                operand = {"ref": pick.choice(refs)}
            source = self.outputs[operand["ref"]] if isinstance(operand, dict) else reads.get(operand)
            wide = source and set(source["pos"]) & {"last", "span", "all"}
            if source and pick.random() < (0.95 if wide else 0.3) and "generated" not in str(source["pos"]):
                position = source["pos"]
        write = {
            "site": self.site(0.25),
            "pos": position,
            "mechanism": mechanism,
            "params": params,
            "operand": operand,
            "missing": "skip",
        }
        if pick.random() < 0.2:
            write["features"] = sorted(pick.sample(range(16), 3))
        return write
