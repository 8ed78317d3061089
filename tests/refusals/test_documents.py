"""One small change to a good document, and the refusal it must get: where, and in which words."""

from __future__ import annotations

import pytest
from tests.refusals import featurizers, models, patterns, settings, shapes, stacks, steps, taps
from tests.unit.spec.build import changed, document, problems

EVERYTHING = [
    *shapes.SHAPES,
    *shapes.DECODES,
    *shapes.UNBUILT,
    *settings.SETTINGS,
    *taps.SITES,
    *stacks.STACKS,
    *featurizers.FEATURIZERS,
    *patterns.PATTERNS,
    *taps.NAMES,
    *taps.POSITIONS,
    *taps.READS,
    *taps.WRITES,
    *models.MODELS,
    *models.METRICS,
    *steps.STEPS,
    *steps.SAVES,
    *steps.SWEEPS,
]


def test_the_document_itself_is_fine():
    assert problems(document()) == []


@pytest.mark.parametrize(
    ("edits", "path", "fragment", "hint"), EVERYTHING, ids=[f"{i}-{case[1]}" for i, case in enumerate(EVERYTHING)]
)
def test_refusal(edits: list[tuple[str, object]], path: str, fragment: str, hint: str | None):
    found = problems(changed(*edits))
    matching = [problem for problem in found if problem.path == path and fragment in problem.message]
    assert matching, found
    assert hint is None or hint in (matching[0].hint or "")
    assert all(problem.line is not None for problem in found)
    assert all("invalid" not in problem.message.lower() for problem in found)
    assert len(set(found)) == len(found)


ALONE = [case for case in EVERYTHING if len(case[0]) == 1]


@pytest.mark.parametrize(
    ("edits", "path"), [case[:2] for case in ALONE], ids=[f"{i}-{c[1]}" for i, c in enumerate(ALONE)]
)
def test_one_change_is_not_refused_for_much_else(edits: list[tuple[str, object]], path: str):
    """A single slip gives one problem, or a few that follow from it."""
    found = problems(changed(*edits))
    assert len(found) <= 3, found


def test_a_span_that_holds_nothing_is_the_only_problem():
    """The write that takes its value is not refused for the number of its tokens."""
    for span in ([3, 1], [2, 2]):
        (problem,) = problems(changed(("interventions.swap.reads.v_cf.pos", {"span": span})))
        assert problem.path == "interventions.swap.reads.v_cf.pos"
    (problem,) = problems(changed(("interventions.swap.writes.patch.pos", {"span": [3, 1]})))
    assert problem.path == "interventions.swap.writes.patch.pos"
