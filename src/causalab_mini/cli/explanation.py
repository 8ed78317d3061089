"""What `explain` has to say of a compiled document, as text and as facts. No torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from causalab_mini.cli.pages import plan_tree, rows_tree
from causalab_mini.cli.reading import Compiled
from causalab_mini.cli.strips import WIDTH, Line, plain, rows_page
from causalab_mini.plan.explain import explain as plan_page
from causalab_mini.plan.generation import explain_generation
from causalab_mini.schedule.explain import explain_schedule
from causalab_mini.schedule.limits import Limits
from causalab_mini.schedule.optimize import Mode, settled
from causalab_mini.schedule.prepare import prepare


@dataclass(frozen=True)
class Explanation:
    """The plan of a document: `text` for people, `plan` and `rows` as JSON objects. Prints as its text."""

    digest: str
    text: str
    plan: dict[str, object]
    rows: list[dict[str, object]] | None
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def as_json(self) -> dict[str, object]:
        """Its facts as `explain --json` tells them."""
        rows = {} if self.rows is None else {"rows": self.rows}
        return {"digest": self.digest, "plan": self.plan, **rows, "text": self.text, "warnings": list(self.warnings)}


def explanation(
    compiled: Compiled,
    *,
    rows: bool = False,
    schedule: bool = False,
    mode: Mode = "auto",
    batch_size: int | None = None,
    width: int = WIDTH,
    strips: Callable[[Sequence[Line]], str] = plain,
) -> Explanation:
    """The plan; with `rows` also every row's tokens, with `schedule` also the calls of a run in `mode`.

    `strips` makes text of the lines of rows, which are `width` cells wide.
    """
    experiment, checkpoint = compiled.experiment, compiled.checkpoint
    settings = explain_generation(experiment)
    pages = [plan_page(experiment.root), *([settings] if settings else [])]
    if rows:
        pages.append(strips(rows_page(experiment, checkpoint, width)))
    if schedule:
        chosen = settled(mode, half=compiled.source.model.dtype != "fp32")
        pages.append(explain_schedule(prepare(experiment.points, checkpoint, chosen, Limits(lanes=batch_size))))
    return Explanation(
        experiment.digest,
        "\n\n".join(pages),
        plan_tree(experiment.root),
        rows_tree(experiment, checkpoint) if rows else None,
        experiment.warnings,
    )
