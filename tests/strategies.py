"""Generators for property tests: small tables of words, and documents that sweep, chain, write and decode over them.

What is drawn is nearly always a document the product accepts; the rest is refused by the compiler, for reasons this
file does not repeat.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st
from tests.tables import tables

TABLE = "drawn/rows"
STREAM = ("block_input", "attention_output", "mlp_output", "block_output")
Draw = st.DrawFn


@dataclass(frozen=True)
class Case:
    """A document and the table it runs on."""

    document: dict
    rows: list[dict]

    def write(self, root: Path) -> Path:
        """Put the table under `root`, a data root."""
        path = root / f"{TABLE}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.rows))
        return root


@st.composite
def cases(draw: Draw, depth: int, *, exact: bool, points: bool = False) -> Case:
    """A table and a document for a model of `depth` layers.

    `exact`: draw metrics that jump, too (ranks, matches), which two executions agree on only to the bit. `points`: at
    least one axis is swept.
    """
    rows = draw(tables())
    return Case(_Document(draw, depth, rows, exact, points).made, rows)


class _Document:
    """Builds one document, each choice drawn."""

    def __init__(self, draw: Draw, depth: int, rows: list[dict], exact: bool, points: bool) -> None:
        self.draw = draw
        self.depth = depth
        self.exact = exact
        self.shortest = {
            "base": min(len(row["input"].split()) for row in rows),
            "other": min(len(row["counterfactual_inputs"][0].split()) for row in rows),
        }
        self.sites: dict[str, dict] = {"head": {"component": "lm_head"}}
        self.axes: set[str] = set()
        self.most = 2
        self.outputs: dict[str, bool] = {}
        self.decode = 0
        first = self.intervention([])
        interventions = {"a": first}
        steps: dict[str, dict] = {"one": self.step("a", first)}
        if self.pick(0, 2) == 0:
            refs = [name for name, one in self.outputs.items() if one]
            interventions["b"] = self.intervention(refs)
            steps["two"] = self.step("b", interventions["b"])
        if points and not self.axes:
            self.sites["swept"] = {"component": "block_output", "layers": {"sweep": list(range(depth)), "as": "layer"}}
            first["reads"]["more"] = {"site": "swept", "pos": -1, "input": "base", "view": "logits"}
            first["metrics"]["more"] = {"kind": "entropy", "of": "more"}
        self.made = {
            "model": {"key": "any", "dtype": "fp32"},
            "roles": {"base": {"field": "input"}, "other": {"field": "counterfactual_inputs[0]"}},
            "sites": self.sites,
            "interventions": interventions,
            "steps": steps,
        }

    def pick(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def of(self, *choices: object) -> object:
        return self.draw(st.sampled_from(choices))

    def sweep(self, axis: str, values: list) -> object:
        """One of the values, or an axis of them: at most two axes a document, each with two values or three."""
        if axis in self.axes or len(self.axes) >= self.most or len(values) < 2 or self.pick(0, 2):
            return self.of(*values)
        self.axes.add(axis)
        # A map of at most six points.
        most = 2 if len(self.axes) > 1 else 3
        kept = self.draw(st.lists(st.sampled_from(values), min_size=2, max_size=most, unique=True))
        return {"sweep": kept, "as": axis}

    def site(self, axis: str, *, several: bool = False) -> str:
        """A declared site; of several layers, here and there, where it may be."""
        if several and self.pick(0, 3) == 0:
            return self.stack()
        if self.pick(0, 7) == 0:
            name = str(self.of("embeddings", "ln_final"))
            self.sites[name] = {"component": name}
            return name
        component = str(self.of(*STREAM, "block_output", "block_output"))
        layers = self.sweep(axis, list(range(self.depth)))
        name = f"{component}_{axis if isinstance(layers, dict) else layers}"
        self.sites[name] = {"component": component, "layers": layers}
        return name

    def stack(self) -> str:
        component, layers = str(self.of(*STREAM)), self.of("all", list(range(self.depth)), [self.depth - 1, 0])
        name = f"{component}_{'_'.join(map(str, layers))}"
        self.sites[name] = {"component": component, "layers": layers}
        return name

    def role(self) -> str:
        return str(self.of("base", "base", "other"))

    def spot(self, role: str, axis: str = "at") -> dict:
        """One prompt token that every row has."""
        size = self.shortest[role]
        near = [index for index in (-1, -2, -3, 0, 1) if -size <= index < size]
        return {"index": self.sweep(axis, near)}

    def step_cut(self, *, writing: bool, one: bool) -> dict:
        step = self.pick(0, self.decode - 1)
        if self.pick(0, 1):
            return {"frame": "generated", "index": self.sweep("step", list(range(self.decode)))}
        cuts: list[dict] = [{"index": step}]
        if not one:
            cuts += [{"all": True}, {"span": [0, step + 1]}, {"span": [step, self.decode]}]
        if not writing:
            cuts += [{"index": -1}, {"index": -1, "scope": {"variable": "word"}}]
        if not (writing or one):
            cuts += [{"last": step + 1}]
        return {"frame": "generated", **self.of(*cuts)}

    def position(self, role: str, *, writing: bool = False, one: bool = False) -> dict:
        if self.decode and self.pick(0, 1):
            return self.step_cut(writing=writing, one=one)
        size = self.shortest[role]
        cuts: list[dict] = [{"index": -1, "scope": {"variable": "word", "occurrence": 0}}]
        if not one:
            cuts += [{"last": self.pick(1, size)}, {"all": True}, {"span": [0, self.pick(1, size)]}]
        return self.spot(role) if self.pick(0, 1) else dict(self.of(*cuts))

    def intervention(self, refs: list[str]) -> dict:
        self.decode = self.pick(0, 4) if self.pick(0, 1) else 0
        reads: dict[str, dict] = {}
        writes: dict[str, dict] = {}
        models: dict[str, dict] = {}
        for number in range(self.pick(1, 2)):
            role = self.role()
            reads[f"v{number}"] = {"site": self.site("layer"), "pos": self.position(role), "input": role}
        heads: list[str] = []
        usual = self.pick(0, 2) == 0
        if usual:
            # The interchange: what one prompt has at a place, put where the other has it; beside the clean run.
            place = {"site": self.site("layer"), "pos": self.spot(min(self.shortest, key=self.shortest.__getitem__))}
            reads["v0"] = {**place, "input": "other"}
        if usual or self.pick(0, 1):
            reads["clean"] = self.head("base", "original")
            heads.append("clean")
        for number in range(max(self.pick(1, 3) - (1 if heads else 0), int(usual))):
            role = self.role()
            own: dict[str, dict] = {}
            for index in range(self.pick(1, 2)):
                own[f"w{number}{index}"] = self.write(role, reads, refs)
            if usual and not number:
                role = "base"
                own = {"w00": {**place, "mechanism": self.of("swap", "add_scaled"), "operand": "v0", "missing": "skip"}}
            if self.pick(0, 4) == 0:
                last = list(own.values())[-1]
                kept = {key: last[key] for key in ("site", "pos", "missing", "reach") if key in last}
                own[f"w{number}n"] = kept | {"mechanism": "renormalize"}
            writes |= own
            models[f"m{number}"] = {"input": role, "writes": list(own)}
            reads[f"h{number}"] = self.head(role, f"m{number}")
            heads.append(f"h{number}")
            if self.pick(0, 1):
                # What a later model may write.
                reads[f"u{number}"] = {
                    "site": self.site("layer"),
                    "pos": self.position(role),
                    "model": f"m{number}",
                    "input": role,
                }
        return {
            "reads": reads,
            "writes": writes,
            "models": models,
            "metrics": self.metrics(heads),
            "decode": self.decode,
        }

    def head(self, role: str, model: str) -> dict:
        look = (
            {"site": self.site("layer", several=True), "view": "logits"} if self.pick(0, 3) == 0 else {"site": "head"}
        )
        if look["site"] == "ln_final":
            look = {"site": "head"}
        return {**look, "pos": self.position(role, one=True), "model": model, "input": role}

    def write(self, role: str, reads: dict, refs: list[str]) -> dict:
        mechanism = str(self.of("swap", "swap", "add_scaled", "lerp", "clamp", "gaussian"))
        strengths = {"add_scaled": "scale", "lerp": "t", "gaussian": "scale", "clamp": "hi"}
        params: dict = {"clamp": {"lo": -1.0}, "gaussian": {"seed": 3}}.get(mechanism, {})
        if mechanism in strengths:
            params[strengths[mechanism]] = self.sweep("strength", [0.5, 3.0] if mechanism == "clamp" else [0.5, -2.0])
        position = self.position(role, writing=True)
        write: dict = {
            "site": self.site("layer", several=True),
            "pos": position,
            "mechanism": mechanism,
            "params": params,
        }
        if mechanism in ("swap", "add_scaled", "lerp"):
            operands: list[object] = [0.75]
            operands += [
                name
                for name, read in reads.items()
                if name[0] in "vu" and (_one(read["pos"]) or (read["pos"] == position and "last" in position))
            ]
            operands += [{"ref": name} for name in refs] * 3
            write["operand"] = self.of(*operands, *operands[1:])
        if not self.exact and self.pick(0, 3) == 0:
            # What a cache takes in, on a model that has one; nothing that is read here is as wide.
            write |= {"site": self.cached(), "reach": self.of("lasting", "forward")}
            write |= {"operand": 0.75} if "operand" in write else {}
        if self.pick(0, 5) == 0:
            write["features"] = [0, 2]
        return {**write, "missing": "skip"}

    def cached(self) -> str:
        name, layer = str(self.of("attention_key", "attention_value")), self.pick(0, self.depth - 1)
        self.sites[f"{name}_{layer}"] = {"component": name, "layers": layer}
        return f"{name}_{layer}"

    def metrics(self, heads: list[str]) -> dict:
        kinds: list[dict] = [
            {"kind": "token_logit", "token": "answer"},
            {"kind": "logit_diff", "a": "answer", "b": "other"},
            {"kind": "entropy"},
            {"kind": "token_prob", "token": "other"},
            {"kind": "kl", "against": self.of(*heads)},
        ]
        if self.exact:
            kinds += [
                {"kind": "match", "expected": "answer"},
                {"kind": "token_rank", "token": "other"},
                {"kind": "top_k", "k": 3},
            ]
        few = self.pick(1, len(heads)) if self.pick(0, 2) == 0 else len(heads)
        chosen = [(head, dict(self.of(*kinds))) for head in heads[:few]]
        return {f"metric_{head}": {**kind, "of": head} for head, kind in chosen}

    def step(self, name: str, body: dict) -> dict:
        outputs = {}
        for read in self.draw(st.sets(st.sampled_from(sorted(body["reads"])), max_size=2)):
            if read[0] in "vu":
                outputs[f"{name}_{read}"] = {"read": read, "reduce": self.of("none", "mean")}
                self.outputs[f"{name}_{read}"] = _one(body["reads"][read]["pos"])
        saved: list[str] = sorted(outputs)
        if body["decode"] and self.pick(0, 1):
            pairs = {(read.get("model", "original"), read["input"]) for read in body["reads"].values()}
            models = [model for model, _ in pairs]
            saved += sorted(
                f"{model}.generated" if models.count(model) == 1 else f"{model}@{role}.generated"
                for model, role in pairs
            )
        return {
            "kind": "observe",
            "rows": {"base": TABLE, "other": TABLE},
            "interventions": name,
            "outputs": outputs,
            "saves": [{"value": value, "file_path": f"{name}.{i}.safetensors"} for i, value in enumerate(saved)],
        }


def _one(position: dict) -> bool:
    """Whether a position is one token, known before anything is generated."""
    return "index" in position and not ("frame" in position and "scope" in position)
