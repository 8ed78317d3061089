"""Draws documents with sites of attention patterns, looked at and written, beside settings and other places."""

from __future__ import annotations

from tests.drawing_settings import Settled

PATTERNS = ("attention_scores", "attention_probs")


class Patterned(Settled):
    """The same with attention patterns looked at and written, beside other places."""

    def document(self) -> dict:
        document = super().document()
        document["model"]["attn_implementation"] = "eager"
        return document

    def intervention(self, name: str, refs: list[str]) -> dict:
        body = super().intervention(name, refs)
        pick, model = self.random, self.random.choice(sorted(body["models"]))
        role = body["models"][model]["input"]
        component, heads = pick.choice(PATTERNS), pick.choice([None, [0], [1], [1, 0]])
        there = self.pattern(component, heads)
        pos = self.position(writing=True)
        mechanism = pick.choice(["swap", "swap", "lerp", "add_scaled", "clamp", "gaussian"])
        operand: object = pick.choice(["pattern_theirs", "pattern_theirs", 0.3])
        other = heads and [pick.choice([0, 1])] if heads is None or len(heads) == 1 else [0, 1]
        body["reads"]["pattern_theirs"] = {"site": self.pattern(component, other), "pos": pos, "input": role}
        params = {
            "swap": {},
            "lerp": {"t": pick.choice([0.25, 1.5])},
            "add_scaled": {"scale": pick.choice([0.5, -2.0])},
            "clamp": pick.choice([{"lo": 0.3}, {"hi": 0.1}]),
            "gaussian": {"seed": pick.randrange(5), "scale": 0.5},
        }[mechanism]
        body["writes"]["pattern_put"] = {
            "site": there,
            "pos": pos,
            "mechanism": mechanism,
            "params": params,
            "operand": None if mechanism in ("clamp", "gaussian") else operand,
            "missing": "skip",
        }
        body["models"][model]["writes"].insert(0, "pattern_put")
        for seen in ("pattern_seen", "pattern_after"):
            site = self.pattern(pick.choice(PATTERNS), pick.choice([None, [1], [1, 0]]))
            body["reads"][seen] = {"site": site, "pos": self.position(), "model": model, "input": role}
        return body

    def pattern(self, component: str, heads: list[int] | None) -> str:
        """A declared site of patterns."""
        layer = self.random.randrange(self.depth)
        name = f"{component}{layer}" + ("" if heads is None else f"_{''.join(map(str, heads))}")
        self.sites[name] = {"component": component, "layers": layer, **({} if heads is None else {"heads": heads})}
        return name

    def step(self, body: dict, name: str) -> dict:
        """Patterns are outputs, and no operands of what comes later."""
        step = super().step(body, name)
        for read in sorted(read for read in body["reads"] if read.startswith("pattern")):
            step["outputs"][f"{name}_{read}"] = {"read": read, "reduce": "none"}
            step["saves"].append({"value": f"{name}_{read}", "file_path": f"{name}.{read}.safetensors"})
        return step
