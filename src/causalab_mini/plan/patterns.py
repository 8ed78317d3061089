"""Attention patterns of rows: over how many keys, by which query, and whether two fit each other.

A query of the prompt sees keys of the whole prompt's length, prefix included; one at step k, k more. Queries count like
columns: that of step k is the prompt's last token and k more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.text import Text
from causalab_mini.frames.window import Window
from causalab_mini.plan.nodes import Forward, Publish, Read, Seen, SeenRows, Write
from causalab_mini.plan.problems import Problems
from causalab_mini.plan.rows import listed
from causalab_mini.spec.document import Document
from causalab_mini.spec.positions import Position
from causalab_mini.vocabulary.components import COMPONENTS
from causalab_mini.vocabulary.metric import Metric
from causalab_mini.vocabulary.reasons import Reason

SCORES = "attention_scores"


def seen(pos: Position, windows: Sequence[Window], rows: Sequence[Text]) -> SeenRows:
    """What the queries of every row's window see."""
    return tuple(
        window if isinstance(window, Reason) else _seen(pos, window, len(text.ids))
        for window, text in zip(windows, rows, strict=True)
    )


def _seen(pos: Position, window: tuple[int, ...], length: int) -> tuple[Seen, ...]:
    if pos.generated:
        return tuple(Seen(length + step, length - 1 + step) for step in window)
    return tuple(Seen(length, column) for column in window)


def refuse_other_attention(site: str, document: Document, checkpoint: Checkpoint, problems: Problems) -> None:
    """Refuse a site of patterns where the model would not compute under eager attention."""
    family, component = checkpoint.config.capability, document.sites[site].component
    computed = document.model.attn_implementation or (None if family is None else family.attention)
    if not COMPONENTS.get(component).pattern or computed == "eager":
        return
    with problems.under("sites", site, "component"):
        problems.add(
            f"{component} is there under eager attention, and this model computes under '{computed}'",
            'ask for it: give the model "attn_implementation": "eager"',
        )


def refuse_misfits(
    write: Write, rows: Sequence[Text], sources: SeenRows, mean: Read | None, example_ids: Sequence[str], p: Problems
) -> None:
    """Refuse a write on rows whose operand's pattern does not fit.

    Patterns fit over equally many keys. A score is there only for the keys that its query sees, so that scores need the
    same query, too. `sources` are the operand's, row by row, or those it is the `mean` of.
    """
    strict = write.place.component.name == SCORES
    wrong: list[str] = []
    for row, ours in enumerate(seen(write.pos, write.windows, rows)):
        theirs = list(_alone(sources, mean)) if mean is not None else list(sources[row : row + 1])
        found = (
            None if isinstance(ours, Reason) else next((m for one in theirs if (m := _misfit(ours, one, strict))), None)
        )
        if found is not None:
            wrong.append(f"'{example_ids[row]}': {found}")
    if wrong:
        p.add(
            f"the operand's pattern does not fit on {len(wrong)} of {len(rows)} rows ({listed(wrong)})",
            "let both texts have equally many tokens" + (", and both queries be the same token" if strict else ""),
            at="operand",
        )


def _alone(sources: SeenRows, read: Read | None) -> Iterator[tuple[Seen, ...] | Reason]:
    """What a mean is of: the rows' windows, or every token for itself."""
    for entries in sources:
        if read is not None and read.pos.ragged and not isinstance(entries, Reason):
            yield from ((one,) for one in entries)
        else:
            yield entries


def _misfit(ours: tuple[Seen, ...], theirs: tuple[Seen, ...] | Reason, strict: bool) -> str | None:
    """How an operand does not fit, at the first token where it does not."""
    if isinstance(theirs, Reason):
        return None
    for mine, other in zip(ours, theirs * len(ours) if len(theirs) == 1 else theirs, strict=False):
        if mine.keys != other.keys:
            return f"over {other.keys} keys, and the write's over {mine.keys}"
        if strict and mine.query != other.query:
            return f"of token {other.query}, and the write's of token {mine.query}, counted with the prefix"
    return None


def refuse_uneven(publish: Publish, read: Read, problems: Problems) -> None:
    """Refuse a mean of patterns over different numbers of keys."""
    rows = [entries for entries in read.seen if not isinstance(entries, Reason)]
    if publish.reduce != "mean" or not rows:
        return
    groups = [[one for entries in rows for one in entries]] if read.pos.ragged else list(zip(*rows, strict=True))
    counts = [(min(one.keys for one in group), max(one.keys for one in group)) for group in groups]
    least, most = next(((few, many) for few, many in counts if few != many), (0, 0))
    if most:
        problems.add(
            f"'{publish.read}' holds patterns over {least} to {most} keys, which have no mean",
            'publish it with "reduce": "none", or read rows of equal length',
        )


def refuse_uncompared(
    metric: Metric, forwards: Sequence[Forward], example_ids: Sequence[str], problems: Problems
) -> None:
    """Refuse to compare patterns over different numbers of keys, or of which that is not known yet."""
    found = {read.name: (read, forward) for forward in forwards for read in forward.reads}
    if metric.compared is None or not found[metric.of][0].seen:
        return
    both = [found[name] for name in (metric.of, metric.compared)]
    for read, forward in both:
        if read.pos.deferred and (read.pos.scope is not None or forward.decoding.stops):
            problems.add(
                f"'{read.name}' is at {read.pos.compact()}, and how many keys its query sees is known only when the "
                "continuation is finished",
                "compare patterns of the prompt, or of a step",
            )
            return
    (one, _), (other, _) = both
    wrong = [
        f"'{example_ids[row]}': {mine[0].keys} and {theirs[0].keys}"
        for row, (mine, theirs) in enumerate(zip(one.seen, other.seen, strict=True))
        if not isinstance(mine, Reason) and not isinstance(theirs, Reason) and mine[0].keys != theirs[0].keys
    ]
    if wrong:
        problems.add(
            f"the patterns are over different numbers of keys on {len(wrong)} of {len(example_ids)} rows "
            f"({listed(wrong)})",
            "compare patterns of texts with equally many tokens",
        )
