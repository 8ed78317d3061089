"""One intervention on the rows of one step: reads, writes, scores and saves with everything resolved.

Finds every problem it can; returns nothing for a step that has one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.plan import generation, nodes, patterns
from causalab_mini.plan.problems import Problems
from causalab_mini.plan.rows import Rows
from causalab_mini.plan.spaces import Spaces, read_width, stamp
from causalab_mini.plan.taps import Bound, Published, Taps
from causalab_mini.spec.children import Child
from causalab_mini.spec.document import Document, Intervention, Observe, Output
from causalab_mini.spec.forwards import forwards
from causalab_mini.spec.generation import COMMANDED_NOTHING, Layer
from causalab_mini.spec.positions import Position
from causalab_mini.vocabulary.metric import AnswerMetric, Metric
from causalab_mini.vocabulary.metrics import TopK
from causalab_mini.vocabulary.reasons import Reason

BASE = "base"
FIRST = (Position(index=-1), Position(last=1), Position(index=0, frame="generated"))
"""Where the first token after a prompt is predicted."""


class Compiler:
    """Compiles the steps of one point, in order: later steps may use what earlier ones publish."""

    def __init__(
        self,
        document: Document,
        checkpoint: Checkpoint,
        rows: Rows,
        problems: Problems,
        spaces: Spaces,
        command: Layer = COMMANDED_NOTHING,
    ) -> None:
        self._document = document
        self._checkpoint = checkpoint
        self._rows = rows
        self._problems = problems
        self._spaces = spaces
        self._command = command
        self._published: dict[str, Published] = {}

    def observe(self, name: str, step: Observe, child: Child) -> nodes.Observe | None:
        """The plan of `child`, one intervention of the step `name`; None when there is a problem."""
        problems, before = self._problems, len(self._problems.found)
        roles = self._roles(name, step, child.intervention)
        if roles is None:
            return None
        bound = self._bound(name, roles)
        if bound is None:
            return None
        compiled: list[nodes.Forward] = []
        with problems.within(child.path):
            broken: set[str] = set()
            for model, role in forwards(child.intervention):
                decoding = self._set(self._decoding(child.intervention, bound, role), child)
                taps = Taps(
                    self._document,
                    child.intervention,
                    self._checkpoint,
                    self._rows,
                    problems,
                    bound,
                    decoding,
                    self._spaces,
                    broken,
                )
                compiled.append(taps.forward(model, role, tuple(compiled), self._published))
            scores = self._scores(child.intervention, compiled, bound)
        path = (name, child.name) if step.nested else (name,)
        outputs = tuple(self._publish(name, key, output, child, compiled) for key, output in child.outputs.items())
        if len(problems.found) > before:
            return None
        saves = tuple(nodes.Save(save.value, save.file_path) for save in child.saves)
        observe = nodes.Observe(
            name=path[-1],
            step=name,
            intervention=child.name,
            path=path,
            example_ids=bound.example_ids,
            forwards=tuple(compiled),
            scores=scores,
            outputs=outputs,
            saves=saves,
        )
        reads = {read.name: (read, forward.decoding) for forward in compiled for read in forward.reads}
        for publish in outputs:
            read, decoding = reads[publish.read]
            late = decoding.stops and read.pos.generated
            self._published[publish.name] = Published(path, publish, read, late, len(bound.example_ids))
        return observe

    def _publish(
        self, step: str, name: str, output: Output, child: Child, compiled: list[nodes.Forward]
    ) -> nodes.Publish:
        """An output. The directions of a pca are refused where there cannot be as many."""
        read = next(read for forward in compiled for read in forward.reads if read.name == output.read)
        if output.reduce != "pca" or output.k is None:
            publish = nodes.Publish(name, output.read, output.reduce)
            with self._problems.under("steps", step, "outputs", name):
                patterns.refuse_uneven(publish, read, self._problems)
            return publish
        width = read_width(self._checkpoint, read)
        tokens = sum(len(window) for window in read.windows if not isinstance(window, Reason))
        # Centring takes one direction from what `tokens` vectors span.
        most = min(width, max(tokens - 1, 0))
        if output.k > most:
            with self._problems.under("steps", step, "outputs", name):
                message = (
                    f"{tokens} vectors, {width} wide, have at most {most} principal directions, and k is {output.k}"
                )
                self._problems.add(message, "name fewer, or read more rows and tokens", at="k")
        site = self._document.sites[child.intervention.reads[output.read].site]
        stamped = stamp(site, output.reduce, width)
        return nodes.Publish(name, output.read, output.reduce, output.k, tuple(stamped.items()))

    def _roles(self, name: str, step: Observe, intervention: Intervention) -> dict[str, str] | None:
        """The dataset ref of every role the intervention uses, in the order roles are declared."""
        used = {role for _, role in forwards(intervention)}
        missing = sorted(used - step.rows.keys())
        for role in missing:
            self._problems.add(f"the role '{role}' has no rows in this step", at=f"steps.{name}.rows")
        return None if missing else {role: step.rows[role] for role in self._document.roles if role in used}

    def _bound(self, name: str, roles: Mapping[str, str]) -> Bound | None:
        """The roles' texts and the rows' ids; None when they cannot be had or do not pair up."""
        batches: dict[str, nodes.Batch] = {}
        for role, ref in roles.items():
            field = self._document.roles[role].field
            with self._problems.under("steps", name, "rows", role):
                self._rows.table(ref)
                with self._problems.under("roles", role, "field"):
                    batches[role] = self._rows.batch(ref, field)
        if len(batches) < len(roles):
            return None
        counts = {role: len(batch.rows) for role, batch in batches.items()}
        if len(set(counts.values())) > 1:
            found = ", ".join(f"'{role}' has {count}" for role, count in counts.items())
            self._problems.add(
                f"the rows of a step are paired by number, and {found}",
                "name tables (or splits) of equal length",
                at=f"steps.{name}.rows",
            )
            return None
        first = BASE if BASE in batches else next(iter(batches))
        return Bound(batches, self._rows.example_ids(batches[first].ref))

    def _decoding(self, intervention: Intervention, bound: Bound, role: str) -> nodes.Decoding:
        """How the forwards on `role` go on: a forced column is read like an answer column."""
        decode = intervention.decode
        if decode.force is None:
            return nodes.Decoding(decode.steps or 0, stops=decode.eos == "stop", sample=decode.sample)
        with self._problems.within("decode", "force"):
            source = bound.batches.get(BASE, bound.batches[role])
            forced = self._rows.forced(source.ref, decode.force)
            longest = max((len(tokens) for tokens in forced if not isinstance(tokens, Reason)), default=0)
            if not longest:
                self._problems.add(f"no row of {source.ref} has a text in '{decode.force}'", "name a column with text")
            return nodes.Decoding(longest, column=decode.force, forced=forced)
        return nodes.Decoding(0)

    def _set(self, decoding: nodes.Decoding, child: Child) -> nodes.Decoding:
        """A decoding with the generation settings that hold for it."""
        if not decoding.steps:
            return decoding
        layers = generation.layers(self._document, child, self._checkpoint, self._command)
        settings, wrong = generation.effective(layers, child, decoding.steps, self._checkpoint)
        for problem in wrong:
            self._problems.found[problem] = None
        ignored = None if self._document.model.generation == "checkpoint" else generation.ignored(self._checkpoint)
        return replace(decoding, settings=settings, ignored=ignored)

    def _scores(
        self, intervention: Intervention, compiled: list[nodes.Forward], bound: Bound
    ) -> tuple[nodes.Score, ...]:
        role_of = {read.name: forward.role for forward in compiled for read in forward.reads}
        reads = {read.name: read for forward in compiled for read in forward.reads}
        ids = bound.example_ids
        scores: list[nodes.Score] = []
        for name, metric in intervention.metrics.items():
            with self._problems.within("metrics", name):
                most = self._checkpoint.vocab
                if isinstance(metric, TopK) and metric.k > most:
                    self._problems.add(f"k is {metric.k}, and there are {most} tokens", f"name at most {most}", at="k")
                patterns.refuse_uncompared(metric, compiled, ids, self._problems)
                scores.append(self._score(name, metric, bound, role_of[metric.of], reads[metric.of]))
        return tuple(scores)

    def _score(self, name: str, metric: Metric, bound: Bound, role: str, read: nodes.Read) -> nodes.Score:
        answers: list[tuple[str, tuple[int | Reason, ...]]] = []
        if isinstance(metric, AnswerMetric):
            source = bound.batches.get(BASE, bound.batches[role])
            for field in metric.answers:
                with self._problems.within(field):
                    column: str = getattr(metric, field)
                    ids = self._rows.answers(source.ref, column, metric.token_form, bound.batches[role])
                    answers.append((field, ids))
                    if metric.token_form == "space_prefixed" and read.pos in FIRST:
                        self._rows.warn_of_spaces(column, bound.batches[role])
        self._refuse_equal(answers, bound)
        return nodes.Score(name, metric, tuple(answers))

    def _refuse_equal(self, answers: list[tuple[str, tuple[int | Reason, ...]]], bound: Bound) -> None:
        """Two answers of one metric must be different tokens on every row."""
        if len(answers) != 2:
            return
        (a, first), (b, second) = answers
        same = [
            f"'{example_id}' ({self._checkpoint.token_text(x)!r})"
            for example_id, x, y in zip(bound.example_ids, first, second, strict=True)
            if x == y and isinstance(x, int) and not isinstance(x, Reason)
        ]
        if same:
            self._problems.add(f"'{a}' and '{b}' are the same token on {', '.join(same[:5])}: their difference is 0")
