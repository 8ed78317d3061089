"""The reads and writes of one intervention, row by row: where they land, or why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.naming import shown
from causalab_mini.frames.continuation import located, steps
from causalab_mini.frames.window import Window
from causalab_mini.plan import nodes, nowhere, patterns, places
from causalab_mini.plan.contradictions import contradictions, shared
from causalab_mini.plan.problems import Problems
from causalab_mini.plan.rows import Rows, listed
from causalab_mini.plan.spaces import Spaces, place_width
from causalab_mini.spec import mechanisms
from causalab_mini.spec.document import Document, Intervention, Read, Ref, Write
from causalab_mini.spec.positions import Position
from causalab_mini.vocabulary.reasons import Reason


@dataclass(frozen=True)
class Bound:
    """The rows of one step: each role's texts, and the rows' ids."""

    batches: Mapping[str, nodes.Batch]
    example_ids: tuple[str, ...]


@dataclass(frozen=True)
class Published:
    """An output of an earlier step: who published it, from which read, if rows may end before it, how many rows."""

    path: tuple[str, ...]
    publish: nodes.Publish
    read: nodes.Read
    late: bool
    rows: int


@dataclass(frozen=True)
class Taps:
    """Makes the forwards of one intervention. Paths are relative to the intervention."""

    document: Document
    intervention: Intervention
    checkpoint: Checkpoint
    rows: Rows
    problems: Problems
    bound: Bound
    decoding: nodes.Decoding
    spaces: Spaces
    broken: set[str] = field(default_factory=set[str])
    """Reads that are no operand because of a problem that has been told."""

    def forward(
        self,
        model: str,
        role: str,
        earlier: tuple[nodes.Forward, ...],
        published: Mapping[str, Published],
    ) -> nodes.Forward:
        """One model on one role. `earlier`: the forwards that run before it."""
        batch = self.bound.batches[role]
        names = self.intervention.models[model].writes if model in self.intervention.models else ()
        reads_so_far = {read.name: read for forward in earlier for read in forward.reads}
        writes: list[nodes.Write] = []
        for name in names:
            with self.problems.within("writes", name):
                writes.append(self._write(name, self.intervention.writes[name], batch, reads_so_far, published))
        for first, second, row in contradictions(writes, batch.rows, bare=self.checkpoint.bare):
            self.problems.add(
                f"on row '{self.bound.example_ids[row]}' the writes '{first.name}' and '{second.name}' both set "
                f"{shared(first.place, second.place)} at one token: the second would undo the first",
                "keep one, or write at different tokens",
                at=f"models.{model}.writes",
            )
        self._fits(batch)
        skipped = {row for write in writes for row, window in enumerate(write.windows) if isinstance(window, Reason)}
        reads: list[nodes.Read] = []
        for name, read in self.intervention.reads.items():
            if (read.model, read.input) == (model, role):
                with self.problems.within("reads", name):
                    reads.append(self._read(name, read, batch, skipped))
        return nodes.Forward(model, role, batch, self.decoding, tuple(writes), tuple(reads))

    def _fits(self, batch: nodes.Batch) -> None:
        """Refuse rows that are longer, with what they generate, than the positions the model was made for."""
        context, later = self.checkpoint.context, max(self.decoding.steps - 1, 0)
        long = [
            f"'{example_id}' ({len(text.ids)} tokens)"
            for example_id, text in zip(self.bound.example_ids, batch.rows, strict=True)
            if context is not None and len(text.ids) + later > context
        ]
        if long:
            more = f" and {later} generated ones" if later else ""
            self.problems.add(
                f"{len(long)} of {len(batch.rows)} rows of {batch.ref}{more} do not fit the {context} positions of "
                f"{shown(self.checkpoint)}: {listed(long)}",
                "use shorter rows or a smaller decode",
            )

    def _place(self, name: str) -> nodes.Place:
        patterns.refuse_other_attention(name, self.document, self.checkpoint, self.problems)
        return places.place(name, self.document.sites[name], self.checkpoint, self.problems)

    def _space(self, tap: Read | Write, place: nodes.Place) -> nodes.Space | None:
        return self.spaces.get(tap.featurizer, self.document.sites[tap.site], place_width(self.checkpoint, place))

    def _windows(self, pos: Position, batch: nodes.Batch) -> tuple[Window, ...]:
        """Where `pos` lands in every row: columns of the prompt, or steps (every step for a deferred cut)."""
        if not pos.generated:
            return self.rows.windows(batch.ref, batch.field, pos)
        decoding = self.decoding
        found = tuple(range(decoding.steps)) if pos.deferred else steps(pos, decoding.steps)
        if decoding.forced is None:
            return (found,) * len(batch.rows)
        lengths = (decoding.length(row) for row in range(len(batch.rows)))
        return tuple(
            n if isinstance(n, Reason) else tuple(range(n)) if pos.deferred else located(pos, n) for n in lengths
        )

    def _read(self, name: str, read: Read, batch: nodes.Batch, skipped: set[int]) -> nodes.Read:
        place = self._place(read.site).seen()
        blind = None if read.view == "raw" else self.checkpoint.blind()
        if blind is not None:
            self.problems.add(f"{shown(self.checkpoint)} has no views: {blind}", "read the value itself", at="view")
        with self.problems.within("pos"):
            windows = self._windows(read.pos, batch)
            windows = tuple(Reason.WRITE_SKIPPED if row in skipped else w for row, w in enumerate(windows))
            texts = None
            if read.pos.deferred and read.pos.scope is not None and read.pos.scope.variable is not None:
                texts = self.rows.texts(batch.ref, batch.field, read.pos.scope.variable)
            space = self._space(read, place)
            view = "probs" if place.component.distribution else read.view
            made = nodes.Read(name, place, read.pos, windows, view, space, texts)
            seen = patterns.seen(read.pos, _sources(made), batch.rows) if place.component.pattern else ()
            return replace(made, seen=seen)
        self.broken.add(name)
        return nodes.Read(name, place, read.pos, (Reason.OUT_OF_RANGE,) * len(batch.rows))

    def _write(
        self,
        name: str,
        write: Write,
        batch: nodes.Batch,
        reads: Mapping[str, nodes.Read],
        published: Mapping[str, Published],
    ) -> nodes.Write:
        place = self._place(write.site)
        place = place.seen() if write.reach == "forward" else place
        if (fixed := self.checkpoint.fixed(place.component)) is not None:
            with self.problems.under("sites", write.site):
                self.problems.add(f"{place.component.name} can only be read here: {fixed}", at="component")
        mechanism = mechanisms.of(write)
        operand = self._operand(write, reads, published)
        windows: tuple[Window, ...] = ()
        space = self._space(write, place)
        width = place_width(self.checkpoint, place) if space is None else space.k
        past = [feature for feature in write.features or () if feature >= width]
        if past:
            what = place.spelled() if space is None else f"'{space.name}'"
            self.problems.add(f"feature {past[0]} is past the width {width} of {what}", at="features")
        with self.problems.within("pos"):
            windows = self._windows(write.pos, batch)
        own = windows
        if windows and not (isinstance(operand, nodes.ReadOperand) and operand.read in self.broken):
            with self.problems.within("operand"):
                windows = self._landing(windows, operand, reads, published)
        if write.missing == "refuse":
            said = _said(operand, reads, published)
            nowhere.refuse(own, windows, said, self.bound.example_ids[: len(windows)], self.problems)
        skips = write.missing == "skip"
        made = nodes.Write(name, place, write.pos, windows, mechanism, operand, space, write.features, skips)
        if place.component.pattern and windows:
            self._patterned(made, batch, reads, published)
        return made

    def _patterned(
        self,
        write: nodes.Write,
        batch: nodes.Batch,
        reads: Mapping[str, nodes.Read],
        published: Mapping[str, Published],
    ) -> None:
        """Refuse a write at patterns whose operand is over other keys."""
        match write.operand:
            case nodes.ReadOperand(name):
                sources, mean = reads[name].seen, None
            case nodes.OutputOperand(_, name):
                output = published[name]
                sources, mean = output.read.seen, output.read if output.publish.reduce == "mean" else None
            case _:
                return
        if sources and (mean is not None or len(sources) == len(batch.rows)):
            patterns.refuse_misfits(write, batch.rows, sources, mean, self.bound.example_ids, self.problems)

    def _operand(
        self, write: Write, reads: Mapping[str, nodes.Read], published: Mapping[str, Published]
    ) -> nodes.Operand:
        match write.operand:
            case None:
                return None
            case Ref(ref=name):
                # What its step could not be compiled for has been told.
                return nodes.OutputOperand(published[name].path, name) if name in published else None
            case str() as name:
                read = reads[name]
                if read.pos.deferred and read.pos.scope is not None:
                    self.problems.add(
                        f"'{name}' is at {read.pos.compact()}, which is located only when the continuation is finished",
                        'name a step, as in {"frame": "generated", "index": 0}',
                        at="operand",
                    )
                    self.broken.add(name)
                elif self.decoding.stops and read.pos.generated and any(_late(window) for window in read.windows):
                    self.problems.add(
                        f"'{name}' is at {read.pos.compact()}, and whether a row gets there is known when it stops",
                        'read the operand in the prompt or at step 0, or leave "eos": "stop" out',
                        at="operand",
                    )
                    self.broken.add(name)
                return nodes.ReadOperand(name)
            case number:
                return float(number)

    def _landing(
        self,
        windows: tuple[Window, ...],
        operand: nodes.Operand,
        reads: Mapping[str, nodes.Read],
        published: Mapping[str, Published],
    ) -> tuple[Window, ...]:
        """The write's windows, a row whose operand has no value counted as landing nowhere."""
        match operand:
            case nodes.ReadOperand(name):
                sources = _sources(reads[name])
            case nodes.OutputOperand(_, name):
                output = published[name]
                sources = _sources(output.read)
                if output.publish.reduce == "mean":
                    missing = [source for source in sources if isinstance(source, Reason)]
                    nothing = len(missing) == len(sources)
                    return tuple(w if isinstance(w, Reason) else missing[0] for w in windows) if nothing else windows
                if output.late or (output.read.pos.deferred and output.read.pos.scope is not None):
                    self.problems.add(
                        f"'{name}' is at {output.read.pos.compact()}, and which rows have it is known only when the "
                        "continuations are finished",
                        'publish it with "reduce": "mean"',
                    )
                    return windows
                if output.rows != len(windows):
                    self.problems.add(
                        f"'{name}' has {output.rows} rows and this step has {len(windows)}",
                        'publish it with "reduce": "mean", or run both steps on the same rows',
                    )
                    return windows
            case _:
                return windows
        landed: list[Window] = []
        for row, (window, source) in enumerate(zip(windows, sources, strict=True)):
            if isinstance(window, Reason) or isinstance(source, Reason):
                landed.append(window if isinstance(window, Reason) else source)
                continue
            landed.append(window)
            if len(source) not in (1, len(window)):
                self.problems.add(
                    f"on row '{self.bound.example_ids[row]}' the operand has {len(source)} tokens and the write "
                    f"{len(window)}",
                    "let the operand be one token, or as many as the write",
                )
                break
        return tuple(landed) + windows[len(landed) :]


def _said(operand: nodes.Operand, reads: Mapping[str, nodes.Read], published: Mapping[str, Published]) -> str:
    """The name and the position of an operand that is read, "" for any other."""
    match operand:
        case nodes.ReadOperand(name):
            return f"'{name}' at {reads[name].pos.compact()}"
        case nodes.OutputOperand(_, name):
            return f"'{name}' at {published[name].read.pos.compact()}"
        case _:
            return ""


def _late(window: Window) -> bool:
    """Whether a read is at a step after the prefill's."""
    return not isinstance(window, Reason) and any(window)


def _sources(read: nodes.Read) -> tuple[Window, ...]:
    """Where a read's value comes from in every row; every step where only the finished continuation can say."""
    if not read.pos.deferred or read.pos.scope is not None:
        return read.windows
    return tuple(window if isinstance(window, Reason) else located(read.pos, len(window)) for window in read.windows)
