"""The rows of a run as strips of tokens: each prompt, what was generated or forced, and what touches what.

Knows plans, the tokenizer and saved ids; refuses to know how a strip is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.plan.nodes import Experiment, Forward, Observe
from causalab_mini.plan.rows import listed
from causalab_mini.plan.touched import Tap, alike, prompt_marks, step_marks, taps, visible
from causalab_mini.results.reader import Results
from causalab_mini.vocabulary.reasons import Reason

CONTINUED = 3
"""Of points whose rows are touched alike, so many continuations are shown."""


@dataclass(frozen=True)
class Token:
    """A token, the place it has (a prompt index, `+step`, or prefix), and the marks of what touches it."""

    text: str
    place: str
    marks: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """`read`, `write`, `both` or nothing."""
        letters = {mark[0] for mark in self.marks}
        return "both" if len(letters) > 1 else {"R": "read", "W": "write"}.get("".join(letters), "")


@dataclass(frozen=True)
class Strip:
    """The tokens of one forward on one row; `generated` those of its continuation."""

    name: str
    prompt: tuple[Token, ...]
    generated: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Touched:
    """One row at the points that touch it alike: its strips, and which taps are nowhere in it and why."""

    points: str
    legend: tuple[tuple[str, str], ...]
    strips: tuple[Strip, ...]
    nowhere: tuple[tuple[str, str], ...]


Rows = Mapping[tuple[str, str], Sequence[Touched]]
"""What is shown of a row, by step and example id."""


def touched_rows(experiment: Experiment, checkpoint: Checkpoint, results: Results, most: int) -> Rows:
    """The first `most` rows of every step."""
    found: dict[tuple[str, str], list[Touched]] = {}
    for labels, observes in alike(experiment):
        observe = observes[0]
        tapped = list(taps(observes))
        step = "/".join(observe.path)
        said = [(label, _said(results, label, one)) for label, one in zip(labels, observes, strict=True)]
        legend = tuple((tap.mark, tap.legend()) for tap in tapped)
        for row, example_id in enumerate(observe.example_ids[:most]):
            strips = tuple(_strips(observe, tapped, row, said, checkpoint))
            nowhere = tuple(
                (tap.mark, window.value) for tap in tapped if isinstance(window := tap.tap.windows[row], Reason)
            )
            points = listed(labels) if labels[0] else ""
            found.setdefault((step, example_id), []).append(Touched(points, legend, strips, nowhere))
    return found


Said = Mapping[str, Sequence[Sequence[int]]]
"""The ids every row generated, by the name of the continuation."""


def _said(results: Results, label: str, observe: Observe) -> Said:
    """The continuations of a point that were saved."""
    known = results.tensors(label)
    found: dict[str, Sequence[Sequence[int]]] = {}
    for name in filter(None, observe.generated):
        if name in known:
            step = "/".join(observe.path)
            ids = results.tensor(name, label, step).tolist()
            lengths = f"{name}.lengths"
            if lengths in known:
                ids = [row[:n] for row, n in zip(ids, results.tensor(lengths, label, step).tolist(), strict=True)]
            found[name] = ids
    return found


def _strips(
    observe: Observe, tapped: Sequence[Tap], row: int, said: Sequence[tuple[str, Said]], checkpoint: Checkpoint
) -> Iterator[Strip]:
    for forward, generated in zip(observe.forwards, observe.generated, strict=True):
        name = f"{forward.model} on {forward.role}"
        prompt = tuple(_prompt(forward, tapped, row, checkpoint))
        spoken = [(label, ids[generated][row]) for label, ids in said if generated in ids]
        if forced := forward.decoding.fed(row):
            spoken = [("", forced)]
        if not spoken:
            yield Strip(name, prompt)
        for label, ids in spoken[:CONTINUED]:
            tokens = (
                Token(visible(token, checkpoint), f"+{step}", step_marks(tapped, forward, row, step))
                for step, token in enumerate(ids)
            )
            yield Strip(f"{name} at {label}" if label else name, prompt, tuple(tokens))


def _prompt(forward: Forward, tapped: Sequence[Tap], row: int, checkpoint: Checkpoint) -> Iterator[Token]:
    text = forward.batch.rows[row]
    for column, token in enumerate(text.ids):
        index = column - text.prefix
        place = "prefix" if index < 0 else str(index)
        yield Token(visible(token, checkpoint), place, prompt_marks(tapped, forward, row, column))
