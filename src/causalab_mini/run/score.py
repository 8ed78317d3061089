"""From the values of an observe step's lanes to its tables and bundles.

A row stands in every table, with its value or the reason it has none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.text import Text
from causalab_mini.engine.modules import Network
from causalab_mini.frames.continuation import cut, text_of
from causalab_mini.frames.window import Window
from causalab_mini.plan.nodes import Forward, Observe, Publish, Read, Score
from causalab_mini.plan.place import Place
from causalab_mini.plan.spaces import read_width
from causalab_mini.results.records import MetricTable, TableRow
from causalab_mini.run import patterns
from causalab_mini.run.directions import directions
from causalab_mini.run.featurizers import Featurizers
from causalab_mini.run.values import Continuation, Values
from causalab_mini.run.widths import fixed_width
from causalab_mini.schedule.lower import keep_of
from causalab_mini.vocabulary.metric import Needs, Scored
from causalab_mini.vocabulary.reasons import Reason

SCORED = 2**20
"""Numbers that are scored at once: a metric over a large vocabulary holds several times as many on its way."""


@dataclass(frozen=True)
class Located:
    """A read's value in one row: [len(window), w] in the model's dtype, or why there is none."""

    value: Tensor | Reason
    window: tuple[int, ...]


class Reading:
    """The reads of one observe step, row by row."""

    def __init__(
        self,
        observe: Observe,
        lanes: Sequence[tuple[int, ...]],
        values: Values,
        checkpoint: Checkpoint,
        unwritten: Callable[[int], bool],
    ) -> None:
        """`lanes`: for every forward of `observe`, each row's lane; `unwritten`: whether a lane lacked an operand."""
        self._unwritten = unwritten
        self._observe = observe
        self._lanes = lanes
        self._values = values
        self._checkpoint = checkpoint
        self._forward_of = {read.name: i for i, forward in enumerate(observe.forwards) for read in forward.reads}
        self._read = {read.name: read for forward in observe.forwards for read in forward.reads}
        self._texts: dict[int, Text] = {}

    @property
    def example_ids(self) -> tuple[str, ...]:
        """The rows, in order."""
        return self._observe.example_ids

    def read(self, name: str) -> Read:
        """The planned read called `name`."""
        return self._read[name]

    def forward(self, name: str) -> Forward:
        """The forward that reads `name`."""
        return self._observe.forwards[self._forward_of[name]]

    def located(self, name: str, layer: int | None = None) -> list[Located]:
        """The read's value in every row; of a stacked read, the value at `layer`."""
        read = self._read[name]
        place = read.place.at(layer)
        return [self._located(read, place, row, lane) for row, lane in enumerate(self._lanes[self._forward_of[name]])]

    def tokens(self, name: str, row: int, window: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Where `window` is, in the words of a table: prompt indices or steps, and the texts there."""
        index = self._forward_of[name]
        if self._read[name].pos.generated:
            ids = self._continuation(index, row).ids
            seen = [step - 1 if self._read[name].pos.token == "input" else step for step in window]
            return window, tuple(self._checkpoint.token_text(ids[step]) for step in seen)
        text = self._observe.forwards[index].batch.rows[row]
        places = tuple(column - text.prefix for column in window)
        return places, tuple(self._checkpoint.token_text(text.ids[column]) for column in window)

    def stopped_at(self, name: str, row: int) -> int | None:
        """The first step at which the row's raw argmax was an EOS id."""
        return self._continuation(self._forward_of[name], row).stopped_at

    def fed(self, name: str, row: int) -> tuple[int, ...]:
        """The tokens the row was fed or produced."""
        return self._continuation(self._forward_of[name], row).ids

    def chosen(self, name: str, row: int) -> Continuation:
        """What the row generated, with the raw logits' most likely ids beside it."""
        return self._continuation(self._forward_of[name], row)

    def _continuation(self, forward: int, row: int) -> Continuation:
        steps = self._observe.forwards[forward].decode
        return self._values.continuation(self._lanes[forward][row], steps)

    def _located(self, read: Read, place: Place, row: int, lane: int) -> Located:
        window = read.windows[row]
        if isinstance(window, Reason):
            return Located(window, ())
        if self._unwritten(lane):
            return Located(Reason.WRITE_SKIPPED, ())
        keep = keep_of(read, row, place)
        assert keep is not None, "a read with a window keeps a value"
        stops = read.pos.generated and self.forward(read.name).decoding.stops
        if not read.pos.deferred and not stops:
            return Located(self._values.value(lane, keep), window)
        found = self._cut(read, row, lane)
        if isinstance(found, Reason):
            return Located(found, ())
        # What was kept are the steps of `window` that the row came to.
        return Located(self._values.value(lane, keep)[[window.index(step) for step in found]], found)

    def _cut(self, read: Read, row: int, lane: int) -> Window:
        index = self._forward_of[read.name]
        text = None if read.texts is None else read.texts[row]
        if lane not in self._texts:
            self._texts[lane] = text_of(self._continuation(index, row).ids, self._checkpoint.decode)
        return cut(read.pos, self._texts[lane], self._checkpoint.eos_ids, text)


class Scorer:
    """Scores reads in fp32, projecting residual values through the final norm and the head where a read asks for it."""

    def __init__(
        self, network: Network, checkpoint: Checkpoint, featurizers: Featurizers, *, alone: bool = False
    ) -> None:
        """`alone`: score every row by itself."""
        self._alone = alone
        self._network = network
        self._featurizers = featurizers
        self._checkpoint = checkpoint

    def table(self, score: Score, reading: Reading) -> MetricTable:
        """One metric over all rows, and all layers of what is stacked: those of a row stand side by side."""
        metric = score.metric
        names = tuple(name for name in (metric.of, metric.compared) if name is not None)
        layers = next((layers for name in names if (layers := reading.read(name).place.layers)), ())
        each = [self._layer(score, reading, layer) for layer in layers or (None,)]
        rows = tuple(row for rows in zip(*each, strict=True) for row in rows)
        return MetricTable(score.name, metric.keyword, metric.unit, reading.forward(metric.of).decode > 0, rows, names)

    def _layer(self, score: Score, reading: Reading, layer: int | None) -> list[TableRow]:
        """One metric over all rows, at `layer` where a read is stacked; one that is not is the same for every layer."""
        metric = score.metric
        of = reading.located(metric.of, layer)
        against = None if metric.compared is None else reading.located(metric.compared, layer)
        reasons = [_reason(score, row, of, against) for row in range(len(of))]
        rows = [row for row, reason in enumerate(reasons) if reason is None]
        scored = [
            value
            for some in self._portions(reading.read(metric.of), rows, of)
            for value in self._scores(score, reading, some, of, against)
        ]
        values: dict[int, object] = dict(zip(rows, scored, strict=True))
        forward = reading.forward(metric.of)
        table: list[TableRow] = []
        for row, example_id in enumerate(reading.example_ids):
            value, reason = values.get(row), reasons[row]
            if isinstance(value, float) and not math.isfinite(value):
                value, reason = None, Reason.NON_FINITE
            places, tokens = reading.tokens(metric.of, row, of[row].window)
            stopped = reading.stopped_at(metric.of, row) if forward.decode else None
            said = reading.chosen(metric.of, row) if forward.decoding.chosen else None
            emitted, argmax = (None, None) if said is None else (said.ids, said.wants)
            table.append(
                TableRow(example_id, row, value, reason, places, tokens, stopped, layer, emitted=emitted, argmax=argmax)
            )
        return table

    def _scores(
        self,
        score: Score,
        reading: Reading,
        rows: list[int],
        of: list[Located],
        against: list[Located] | None,
    ) -> list[object]:
        metric = score.metric
        value = self._rows(reading.read(metric.of), rows, of)
        other = None
        if against is not None and metric.compared is not None:
            other = self._rows(reading.read(metric.compared), rows, against)
        tokens = {field: torch.tensor([ids[row] for row in rows]) for field, ids in score.answers}
        lengths: tuple[int, ...] = ()
        if metric.needs is Needs.CONTINUATION:
            fed = [reading.fed(metric.of, row) for row in rows]
            lengths = tuple(len(ids) for ids in fed)
            tokens["fed"] = torch.tensor([token for ids in fed for token in ids])
        result = metric.score(Scored(value, other, tokens, lengths))
        if isinstance(result, Tensor):
            scored: list[object] = list(result.tolist())
        else:
            scored = [[[i, self._checkpoint.token_text(int(i)), p] for i, _, p in top] for top in result]
        # An argmax and a rank are numbers even where what they compare is none.
        sound = _sound(value) if other is None else _sound(value) & _sound(other)
        if lengths:
            sound = torch.stack([part.all() for part in sound.split(list(lengths))])
        return [one if ok else math.nan for one, ok in zip(scored, sound.tolist(), strict=True)]

    def _portions(self, read: Read, rows: list[int], located: list[Located]) -> list[list[int]]:
        """`rows`, cut into as many as are scored at once."""
        if self._alone:
            return [[row] for row in rows]
        cells = (found.value.numel() for found in located if isinstance(found.value, Tensor) and read.seen)
        tokens = max((len(located[row].window) for row in rows), default=1)
        size = max(1, SCORED // max(tokens * read_width(self._checkpoint, read), *cells, 1))
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def _rows(self, read: Read, rows: list[int], located: list[Located]) -> Tensor:
        """What is scored of each of `rows`, one under the other: [n, w] fp32; raw, logits, or log-probabilities."""
        picked = [located[row].value for row in rows]
        value = torch.cat(patterns.together([v for v in picked if isinstance(v, Tensor)]))
        return self.viewed(read, value).flatten(1)

    def viewed(self, read: Read, value: Tensor) -> Tensor:
        """A value [n, w] as its read looks at it, fp32: its features, or a view; `probs` come as log-probabilities."""
        if read.space is not None:
            return self._featurizers.of(read.space).encode(value)
        if read.view == "raw":
            return value.float()
        if read.place.component.distribution:
            return value.float().log_softmax(-1)
        logits = self._network.unembed(value.to(self._network.device)).float().cpu()
        return logits if read.view == "logits" else logits.log_softmax(-1)

    def published(self, publish: Publish, reading: Reading) -> dict[str, Tensor]:
        """An output's tensors by name, fp32.

        `none`: [rows, w] for one position, [rows, width, w] for a fixed window, flat [tokens, w] with
        `<name>.lengths` [rows] where rows may differ; a row without a value is NaN (length 0). `mean`: over the
        rows that have a value, and over tokens where ragged: [w] or [width, w]; NaN when no row has one. `pca`: of all
        tokens of the rows that have a value, `<name>.basis` [w, k], `<name>.mean` [w]. Of a stacked read, the layers
        come first. Of patterns, [H, N] stands for [w], N the most keys of a row; `none` has `<name>.keys` too.
        """
        layers = reading.read(publish.read).place.layers
        each = [self._published(publish, reading, layer) for layer in layers or (None,)]
        stacked = {publish.name: torch.stack([tensors[publish.name] for tensors in each])} if layers else {}
        return {**each[0], **stacked}

    def _published(self, publish: Publish, reading: Reading, layer: int | None) -> dict[str, Tensor]:
        read = reading.read(publish.read)
        located = reading.located(publish.read, layer)
        shown = patterns.together([self._shown(read, v.value) for v in located if isinstance(v.value, Tensor)])
        none = (read_width(self._checkpoint, read), *([0] if read.place.component.pattern else []))
        forward = reading.forward(publish.read)
        width = fixed_width(read, forward.decoding)
        windows = [found.window if isinstance(found.value, Tensor) else None for found in located]
        keys = patterns.keys(publish, read, forward, windows, width)
        for counts in keys.values():
            # A read that is located afterwards has kept patterns of later steps, too, which are over more keys.
            shown = [patterns.over(one, max(counts.flatten().tolist())) for one in shown]
        features = shown[0].shape[1:] if shown else none
        if publish.reduce == "pca":
            found = directions(torch.cat(shown) if shown else torch.empty(0, *features), publish.k or 1)
            return {f"{publish.name}.basis": found.basis, f"{publish.name}.mean": found.mean}
        if publish.reduce == "mean":
            if not shown:
                return {publish.name: torch.full(features, torch.nan)}
            mean = (torch.cat(shown) if read.pos.ragged else torch.stack(shown)).mean(0)
            return {publish.name: mean if read.pos.ragged or mean.shape[0] > 1 else mean[0]}
        if width is None:
            flat = torch.cat(shown) if shown else torch.empty(0, *features)
            lengths = [len(v.window) if isinstance(v.value, Tensor) else 0 for v in located]
            return {
                publish.name: flat,
                f"{publish.name}.lengths": torch.tensor(lengths),
                **keys,
            }
        rest = iter(shown)
        empty = torch.full((width, *features), torch.nan)
        rows = torch.stack([next(rest) if isinstance(v.value, Tensor) else empty for v in located])
        return {publish.name: rows[:, 0] if width == 1 else rows, **keys}

    def _shown(self, read: Read, value: Tensor) -> Tensor:
        seen = self.viewed(read, value)
        return seen.exp() if read.view == "probs" else seen


def _sound(value: Tensor) -> Tensor:
    """Which rows of `value` [n, w] hold numbers: [n]. An entry of −∞ is a token that cannot be."""
    return ~(value.isnan() | value.isposinf()).any(-1)


def _reason(score: Score, row: int, of: list[Located], against: list[Located] | None) -> Reason | None:
    """Why a row is not scored: a skipped write before a position's reason before an empty cell."""
    read = [of[row].value] if against is None else [of[row].value, against[row].value]
    candidates = [*read, *(ids[row] for _, ids in score.answers)]
    found = [reason for reason in candidates if isinstance(reason, Reason)]
    return Reason.WRITE_SKIPPED if Reason.WRITE_SKIPPED in found else next(iter(found), None)
