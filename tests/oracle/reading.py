"""What every value of a document must be: an independent reading of it, each row alone, over `tests.plain`.

Documents are plain JSON that the product accepted; nothing is checked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, cached_property

import torch
from tests import plain
from tests.oracle import scoring, spaces, stacks
from tests.oracle.choosing import Choosing, Row
from tests.oracle.decoding import Decoding, located, said
from tests.oracle.parts import PATTERNS, padded
from tests.oracle.positions import cut, deferred, dig, pos_of, stretch, width
from tests.oracle.told import Cell, Told
from tests.oracle.world import Prompt, World
from torch import Tensor


def observe(world: World, document: dict) -> dict[tuple[str, ...], Told]:
    """Every observe step of one document without sweeps, by its path."""
    document = stacks.apart(document, world.model.config.num_hidden_layers)
    told: dict[tuple[str, ...], Told] = {}
    published: dict[str, list[Tensor | str]] = {}
    for step, node in document["steps"].items():
        used = node.get("interventions", node.get("intervention")) or next(iter(document["interventions"]))
        for i, one in enumerate(used if isinstance(used, list) else [used]):
            name = one if isinstance(one, str) else f"{step}[{i}]" if isinstance(used, list) else step
            body = document["interventions"][one] if isinstance(one, str) else one
            path = (step, name) if isinstance(used, list) else (step,)
            reading = Reading(world, document, node["rows"], body, published)
            told[path] = reading.told()
            for output, spec in node.get("outputs", {}).items():
                spec = {"read": spec} if isinstance(spec, str) else spec
                if spec["read"] in body["reads"]:
                    if spec.get("reduce") == "pca":
                        told[path].outputs |= reading.principal(output, spec["read"], spec["k"])
                        continue
                    published[output], told[path].outputs[output] = reading.publish(**spec)
                    if spec.get("reduce", "none") == "none":
                        told[path].generated |= reading.counts(output, spec["read"])
    for one in told.values():
        one.tables = stacks.together(one.tables, _side_by_side)
        one.outputs = stacks.together(one.outputs, lambda parts: torch.stack(list(parts.values())))
    return told


def _side_by_side(by_layer: dict[int, list[Cell]]) -> list[Cell]:
    """The layers of one row, then those of the next."""
    tables = [[replace(cell, layer=layer) for cell in cells] for layer, cells in by_layer.items()]
    return [cell for cells in zip(*tables, strict=True) for cell in cells]


class Reading:
    """One intervention on the rows of one step."""

    def __init__(self, world: World, document: dict, refs: dict, body: dict, published: dict) -> None:
        self.world, self.document, self.body, self.published = world, document, body, published
        self.fields = {role: document["roles"][role]["field"] for role in document["roles"]}
        self.refs, self.decoding = refs, Decoding.of(body.get("decode", 0))
        stated = document["model"].get("generation", "neutral")
        lowest = {"neutral": {}, "checkpoint": world.generation}[stated] if isinstance(stated, str) else stated
        self.choosing = Choosing.of([lowest, body.get("generation", {})], body.get("decode", 0))
        self.reads, self.writes = body["reads"], body.get("writes", {})
        self.models, self.metrics = body.get("models", {}), body.get("metrics", {})
        roles = [read["input"] for read in self.reads.values()] + [model["input"] for model in self.models.values()]
        used = [role for role in document["roles"] if role in roles]
        rows = world.rows(refs["base" if "base" in used else used[0]])
        self.ids = [str(row.get("example_id", i)) for i, row in enumerate(rows)]
        self.edits, self.rollout, self.value = cache(self._edits), cache(self._rollout), cache(self._value)
        self.untouched = cache(self._untouched)

    @cached_property
    def forwards(self) -> list[tuple[str, str]]:
        pairs = {(read.get("model", "original"), read["input"]) for read in self.reads.values()}
        return sorted(pairs | {(name, model["input"]) for name, model in self.models.items()})

    def prompt(self, role: str, row: int) -> Prompt:
        return self.world.prompt(dig(self.world.rows(self.refs[role])[row], self.fields[role]))

    def variable(self, role: str, row: int, name: str) -> str | None:
        column, rest = re.fullmatch(r"(\w+)(.*)", self.fields[role]).groups()
        cells = self.world.rows(self.refs[role])[row]
        found = dig(cells, f"{column}_variables{rest}.{name}")
        found = cells.get(name) if found is None else found
        return None if found is None else str(found)

    def columns(self, pos: dict, role: str, row: int) -> list[int] | str:
        """The tokens of a position that is known before the run, counted as `plain` counts them."""
        prompt = self.prompt(role, row)
        if pos.get("frame") == "generated":
            fed = self.fed(role, row)
            if isinstance(fed, str):
                return fed
            steps = located(pos, self.decoding.steps if fed is None else len(fed))
            return steps if isinstance(steps, str) else [len(prompt.ids) - 1 + step for step in steps]
        run: list[int] | str = list(range(prompt.prefix, len(prompt.ids)))
        scope = pos.get("scope")
        if scope and scope.get("segment") == "prefix":
            run = list(range(prompt.prefix)) or "alignment_missing"
        elif scope:
            found = stretch(prompt, scope, self.variable(role, row, scope.get("variable", "")))
            if isinstance(found, str):
                return found
            spans = prompt.spans
            run = [i for i in run if spans[i][0] < found[1] and spans[i][1] > found[0]]
        return run if isinstance(run, str) else cut(pos, run)

    def source(self, role: str) -> str:
        """The role whose rows hold the answers to another's prompts."""
        return "base" if "base" in self.refs else role

    def fed(self, role: str, row: int) -> list[int] | str | None:
        return self.decoding.fed(self.world, self.world.rows(self.refs[self.source(role)])[row])

    def steps(self, role: str) -> int:
        """How many steps the longest row has."""
        fed = [self.fed(role, row) for row in range(len(self.ids))] if self.decoding.column else []
        return max((len(ids) for ids in fed if isinstance(ids, list)), default=self.decoding.steps)

    def landing(self, name: str, role: str, row: int) -> tuple[list[int], list[Tensor] | float | None] | str:
        """Where a write acts on a row, and with which operand [w] at each place."""
        write = self.writes[name]
        where, operand = self.columns(pos_of(write), role, row), write.get("operand")
        if isinstance(where, str) or operand is None or isinstance(operand, (int, float)):
            return where if isinstance(where, str) else (where, operand)
        if isinstance(operand, dict):
            rows = self.published[operand["ref"]]
            value: Tensor | str = rows[row if len(rows) > 1 else 0]
        else:
            value = self.value(operand, row)[0]
            within = self.space(self.reads[operand])
            if isinstance(value, Tensor) and within:
                value = torch.stack([within.encode(one.double()).float() for one in value])
        if isinstance(value, str):
            return value
        return where, [value[0 if len(value) == 1 else i] for i in range(len(where))]

    def _edits(self, model: str, role: str, row: int) -> tuple[list[plain.Edit], bool]:
        """The edits of a model on a row: one per place, its writes in order; and whether a write was skipped."""
        places: dict[tuple[str, str, int], list[Callable]] = {}
        skipped = False
        for name in self.models[model]["writes"] if model in self.models else ():
            write, landed = self.writes[name], self.landing(name, role, row)
            if isinstance(landed, str):
                skipped = True
                continue
            site = self.document["sites"][write["site"]]
            spot = self.world.spot(site)
            generated = pos_of(write).get("frame") == "generated"
            last = len(self.prompt(role, row).ids) - 1
            for i, token in enumerate(landed[0]):
                at = (self.ids[row], token - last, 0, 1) if generated else (self.ids[row], 0, i, len(landed[0]))
                operand = landed[1][i] if isinstance(landed[1], list) else landed[1]
                if spot[1] in PATTERNS.values():
                    change = scoring.patterned(write, operand, at, max(token, last) + 1)
                else:
                    change = scoring.mechanism(write, operand, at)
                within = self.space(write)
                change = within.within(change) if within else change
                entries = self.world.entries(site)
                places.setdefault((*spot, token), []).append(scoring.among(entries, change) if entries else change)
        return [plain.Edit(*at, scoring.chain(changes)) for at, changes in places.items()], skipped

    def _rollout(self, model: str, role: str, row: int) -> plain.Rollout:
        ids, looks = self.prompt(role, row).ids, []
        for name, read in self.reads.items():
            site = self.document["sites"][read["site"]]
            if (read.get("model", "original"), read["input"]) == (model, role) and site["component"] != "input_ids":
                where = self._looked(name, row)
                looks += [plain.Look(f"{name}@{token}", *self.world.spot(site), token) for token in where]
        edits = self.edits(model, role, row)[0]
        fed = self.fed(role, row)
        ids, looks = tuple(ids), tuple(looks)
        drawn = "" if self.choosing.seed is None else self.ids[row]
        if not edits and fed is None:
            return self.untouched(ids, looks, drawn)
        return self._run(ids, looks, edits, [] if isinstance(fed, str) else fed, drawn)

    def _untouched(self, ids: tuple[int, ...], looks: tuple[plain.Look, ...], drawn: str) -> plain.Rollout:
        return self._run(ids, looks, (), None, drawn)

    def _run(
        self,
        ids: tuple[int, ...],
        looks: tuple[plain.Look, ...],
        edits: Sequence[plain.Edit],
        fed: list[int] | None,
        drawn: str,
    ) -> plain.Rollout:
        """`drawn`: the example id that tokens are drawn for."""
        held = [] if self.decoding.stops else self.world.eos
        steps = self.decoding.steps if fed is None else len(fed)

        def pick(said: list[int], logits: Tensor) -> int:
            return self.choosing.pick(Row(list(ids), said, steps, self.world.eos), logits, drawn, held)

        chosen = pick if fed is None and self.choosing.acts else None
        rollout = plain.run(self.world.model, ids, edits, looks, steps, held, fed, chosen)
        return self.decoding.ended(rollout, self.world.eos)

    def _looked(self, name: str, row: int) -> list[int]:
        read = self.reads[name]
        if deferred(pos_of(read)):
            last = len(self.prompt(read["input"], row).ids) - 1
            return [last + step for step in range(self.steps(read["input"]))]
        where = self.columns(pos_of(read), read["input"], row)
        return [] if isinstance(where, str) else where

    def _value(self, name: str, row: int) -> tuple[Tensor | str, tuple[int, ...], tuple[str, ...]]:
        """A read on a row: [n, w] or the reason there is none; prompt indices or steps; the texts there."""
        read = self.reads[name]
        model, role, pos = read.get("model", "original"), read["input"], pos_of(read)
        if self.edits(model, role, row)[1]:
            return "write_skipped", (), ()
        prompt, rollout = self.prompt(role, row), self.rollout(model, role, row)
        last = len(prompt.ids) - 1
        fed = self.fed(role, row)
        if deferred(pos):
            spoken = self.variable(role, row, pos.get("scope", {}).get("variable", ""))
            steps = fed if isinstance(fed, str) else said(self.world, pos, rollout.ids, spoken)
            where = steps if isinstance(steps, str) else [last + step for step in steps]
        elif pos.get("frame") == "generated" and self.decoding.stops:
            steps = located(pos, len(rollout.ids))
            where = steps if isinstance(steps, str) else [last + step for step in steps]
        else:
            where = self.columns(pos, role, row)
        if isinstance(where, str):
            return where, (), ()
        generated, entered = pos.get("frame") == "generated", int(pos.get("token") == "input")
        ids = rollout.ids if generated else prompt.ids
        places = [token - last if generated else token for token in where]
        texts = tuple(self.world.tokenizer.decode([ids[place - entered]]) for place in places)
        shown = tuple(place if generated else place - prompt.prefix for place in places)
        if self.document["sites"][read["site"]]["component"] == "input_ids":
            fed = prompt.ids + rollout.ids
            return torch.tensor([[float(fed[token])] for token in where]), shown, texts
        entries = self.world.entries(self.document["sites"][read["site"]])
        values = torch.stack(padded([rollout.values[f"{name}@{token}"] for token in where]))
        return values if entries is None else values[:, entries], shown, texts

    def seen(self, name: str, value: Tensor) -> Tensor:
        """A value [n, w] as its read looks at it, in double precision; `probs` as log-probabilities."""
        within = self.space(self.reads[name])
        if within:
            return torch.stack([within.encode(one.double()) for one in value])
        view = self.reads[name].get("view", "raw")
        if view == "raw":
            return value.double()
        logits = self.world.unembed(value).double()
        return logits if view == "logits" else logits.log_softmax(-1)

    def told(self) -> Told:
        told = Told(self.decoding.runs)
        models = [model for model, _ in self.forwards]
        for model, role in self.forwards if self.decoding.runs else ():
            name = f"{model}.generated" if models.count(model) == 1 else f"{model}@{role}.generated"
            rollouts, most = [self.rollout(model, role, row) for row in range(len(self.ids))], self.steps(role)
            ids = [rollout.ids for rollout in rollouts]
            told.generated[name] = [[*some, *[self.world.pad] * (most - len(some))] for some in ids]
            if self.chooses:
                best = [rollout.logits.argmax(-1).tolist() for rollout in rollouts]
                told.generated[f"{name}.argmax"] = [[*some, *[self.world.pad] * (most - len(some))] for some in best]
            if self.decoding.uneven:
                told.generated[f"{name}.lengths"] = [len(some) for some in ids]
        for name, metric in self.metrics.items():
            told.tables[name] = [self._cell(metric, row) for row in range(len(self.ids))]
        return told

    @property
    def chooses(self) -> bool:
        """Whether rows may say another token than the likeliest, by settings or draws."""
        return self.decoding.runs and self.decoding.column is None and self.choosing.acts

    def _cell(self, metric: dict, row: int) -> Cell:
        cell = self._scored(metric, row)
        if not self.chooses:
            return cell
        read = self.reads[metric["of"]]
        rollout = self.rollout(read.get("model", "original"), read["input"], row)
        return replace(cell, emitted=tuple(rollout.ids), argmax=tuple(rollout.logits.argmax(-1).tolist()))

    def _scored(self, metric: dict, row: int) -> Cell:
        read = self.reads[metric["of"]]
        rollout = self.rollout(read.get("model", "original"), read["input"], row)
        ends = (step for step, logits in enumerate(rollout.logits) if int(logits.argmax()) in self.world.eos)
        stopped = next(ends, None) if rollout.ids else None
        value, places, texts = self.value(metric["of"], row)
        other = self.value(metric["against"], row)[0] if "against" in metric else None
        tokens = dict(self._answers(metric, row))
        reasons = [found for found in (value, other, *tokens.values()) if isinstance(found, str)]
        if reasons:
            reason = "write_skipped" if "write_skipped" in reasons else reasons[0]
            return Cell(None, reason, places, texts, stopped)
        if metric["kind"] == "continuation_logprob":
            log_p = self.seen(metric["of"], value).log_softmax(-1)
            total = sum(log_p[step, token].item() for step, token in enumerate(rollout.ids))
            return Cell(total, None, places, texts, stopped)
        against = None if other is None else self.seen(metric["against"], other)[0]
        decode = self.world.tokenizer.decode
        of = self.seen(metric["of"], value)[0].flatten()
        against = None if against is None else against.flatten()
        score = scoring.metric(metric, of, against, tokens, lambda i: decode([i]))
        finite = isinstance(score, list) or abs(score) < float("inf")
        return Cell(score if finite else None, None if finite else "non_finite", places, texts, stopped)

    def _answers(self, metric: dict, row: int) -> Iterator[tuple[str, int | str]]:
        source = self.source(self.reads[metric["of"]]["input"])
        prompt = self.prompt(self.reads[metric["of"]]["input"], row).text
        form = metric.get("token_form", "space_prefixed")
        for name in ("expected", "a", "b", "target", "token"):
            if name in metric:
                cell = dig(self.world.rows(self.refs[source])[row], metric[name])
                if cell is None or not str(cell).strip():
                    yield name, "empty_cell"
                elif form == "id":
                    yield name, cell
                else:
                    before = prompt if form == "in_context" else ""
                    text = before + (f" {cell.lstrip()}" if form == "space_prefixed" else cell)
                    ids = self.world.tokenizer(text, add_special_tokens=False)["input_ids"]
                    yield name, ids[-1] if before else _only(ids)

    def publish(self, read: str, reduce: str = "none") -> tuple[list[Tensor | str], Tensor]:
        """An output: what each row (or all of them) hands on as an operand, and the tensor that is saved."""
        rows = [self.value(read, row)[0] for row in range(len(self.ids))]
        shown = padded([self._shown(read, row) if isinstance(row, Tensor) else row for row in rows])
        there = [row for row in shown if isinstance(row, Tensor)]
        pos, config = pos_of(self.reads[read]), self.world.model.config
        features = config.hidden_size if self.reads[read].get("view", "raw") == "raw" else config.vocab_size
        site = self.document["sites"][self.reads[read]["site"]]
        heads = len(site.get("heads") or range(config.num_attention_heads))
        none = (heads, 0) if site["component"] in PATTERNS else (features,)
        lost = torch.full((1, *(there[0].shape[1:] if there else none)), torch.nan)
        ragged = "scope" in pos or width(pos) is None
        if self.space(self.reads[read]):
            rows = shown
        if reduce == "mean":
            if not there:
                return [next(row for row in rows if isinstance(row, str))], lost[0]
            mean = torch.cat(there).mean(0, keepdim=True) if ragged else torch.stack(there).mean(0)
            return [mean], mean[0] if len(mean) == 1 else mean
        wide = self._wide(pos)
        if wide is None:
            return rows, torch.cat([lost[:0], *there])
        whole = torch.stack([row if isinstance(row, Tensor) else lost.expand(wide, *lost.shape[1:]) for row in shown])
        return rows, whole[:, 0] if wide == 1 else whole

    def counts(self, output: str, read: str) -> dict[str, list]:
        """Of an output of patterns, over how many keys each is: those of every row, flat where rows may differ."""
        if self.document["sites"][self.reads[read]["site"]]["component"] not in PATTERNS:
            return {}
        wide = self._wide(pos_of(self.reads[read]))
        rows = [[0] * (wide or 0)] * len(self.ids)
        for row in range(len(self.ids)):
            value, places, _ = self.value(read, row)
            if isinstance(value, Tensor):
                size = len(self.prompt(self.reads[read]["input"], row).ids)
                generated = pos_of(self.reads[read]).get("frame") == "generated"
                rows[row] = [size + (place if generated else 0) for place in places]
        if wide is None:
            return {f"{output}.keys": [count for row in rows for count in row]}
        return {f"{output}.keys": [row[0] for row in rows] if wide == 1 else rows}

    def _wide(self, pos: dict) -> int | None:
        """How many tokens a position has in every row; None where rows may differ."""
        if "scope" in pos:
            return None
        if "all" in pos and pos.get("frame") == "generated" and not self.decoding.uneven:
            return self.decoding.steps - (pos.get("token") == "input")
        return width(pos)

    def _shown(self, name: str, value: Tensor) -> Tensor:
        seen = self.seen(name, value).float()
        return seen.exp() if self.reads[name].get("view") == "probs" else seen

    def principal(self, output: str, read: str, k: int) -> dict[str, Tensor]:
        """An output of principal directions: its tensors by name."""
        rows = [self.value(read, row)[0] for row in range(len(self.ids))]
        basis, mean = spaces.principal(torch.cat([self.seen(read, row) for row in rows if isinstance(row, Tensor)]), k)
        return {f"{output}.basis": basis, f"{output}.mean": mean}

    def space(self, tap: dict) -> spaces.Space | None:
        """The space a read or write is in."""
        declared = self.document.get("featurizers", {}).get(tap.get("featurizer"))
        component = self.document["sites"][tap["site"]]["component"]
        config = self.world.model.config
        return spaces.space(declared, config.vocab_size if component in ("lm_head", "logits") else config.hidden_size)


def _only(ids: list[int]) -> int:
    (only,) = ids
    return only
