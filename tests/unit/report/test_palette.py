"""Colours that can be told apart and read: contrast as WCAG 2 computes it."""

from __future__ import annotations

import itertools

import pytest

from causalab_mini.report.palette import DARK, LIGHT, SERIES, contrast

TEXT = [
    *(("ink", paper) for paper in ("paper", "panel", "made-paper")),
    *(("faint", paper) for paper in ("paper", "panel", "made-paper")),
    ("link", "paper"),
    ("warn", "warn-paper"),
    *((kind, f"{kind}-paper") for kind in ("read", "write", "both")),
]
"""What is written on what."""
SHAPES = [(name, "paper") for name in (*SERIES, "focus", "read", "write", "both", "faint")]


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#ffffff", "#ffffff") == 1
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_readable_and_shapes_are_seen(colours: dict[str, str]) -> None:
    for ink, paper in TEXT:
        assert contrast(colours[ink], colours[paper]) >= 4.5, (ink, paper)
    for shape, paper in SHAPES:
        assert contrast(colours[shape], colours[paper]) >= 3, shape


def test_light_and_dark_have_the_same_colours() -> None:
    assert set(LIGHT) == set(DARK)


# How the eye of a protanope and of a deuteranope mixes linear red, green and blue (Viénot, Brettel and Mollon, 1999).
BLIND = {
    "protan": ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0)),
    "deutan": ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0)),
}


def seen(colour: str, by: str) -> tuple[float, ...]:
    """A colour in linear light, as an eye has it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    mixed = (sum(weight * part for weight, part in zip(row, linear, strict=True)) for row in BLIND[by])
    return tuple(max(0.0, part) ** (1 / 2.2) for part in mixed)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("eye", list(BLIND))
def test_the_first_three_series_differ_to_every_eye(colours: dict[str, str], eye: str) -> None:
    """Further ones differ by marker and dashes."""
    for one, other in itertools.combinations(SERIES[:3], 2):
        pairs = zip(seen(colours[one], eye), seen(colours[other], eye), strict=True)
        assert sum((a - b) ** 2 for a, b in pairs) ** 0.5 > 0.15, (one, other)
