"""The colours of pictures and pages, in light and in dark.

Text has at least 4.5 : 1 against what it stands on and lines have 3 : 1, and series differ to colour-blind readers too
(after Okabe and Ito); a test computes it. Maps run over matplotlib's cividis, or PuOr where values have signs.
"""

from __future__ import annotations

LIGHT = {
    "paper": "#ffffff",
    "panel": "#f4f6f8",
    "ink": "#1b1f24",
    "faint": "#57606a",
    "rule": "#d0d7de",
    "link": "#0550ae",
    "focus": "#0969da",
    "read": "#0b5d3b",
    "read-paper": "#ddf4e6",
    "write": "#8a1c1c",
    "write-paper": "#fde4e1",
    "both": "#5b2a86",
    "both-paper": "#eee2fa",
    "made-paper": "#e7f0fb",
    "warn": "#6b4400",
    "warn-paper": "#fff4d6",
    "series-0": "#0072b2",
    "series-1": "#c04a00",
    "series-2": "#00785a",
    "series-3": "#a0427a",
    "series-4": "#6b5b00",
    "series-5": "#4a4a4a",
}
DARK = {
    "paper": "#12161b",
    "panel": "#1c232b",
    "ink": "#e6edf3",
    "faint": "#a3adb8",
    "rule": "#3a434e",
    "link": "#7cb7ff",
    "focus": "#7cb7ff",
    "read": "#a5e8c3",
    "read-paper": "#123524",
    "write": "#ffc2bb",
    "write-paper": "#4a1a1a",
    "both": "#dec3ff",
    "both-paper": "#37204f",
    "made-paper": "#1a2c42",
    "warn": "#ffd98a",
    "warn-paper": "#3a2c08",
    "series-0": "#56b4e9",
    "series-1": "#f0a04b",
    "series-2": "#2bc79a",
    "series-3": "#e08cc0",
    "series-4": "#f0e442",
    "series-5": "#c8ccd2",
}
SERIES = tuple(name for name in LIGHT if name.startswith("series-"))
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))


def luminance(colour: str) -> float:
    """The relative luminance of `#rrggbb`, 0 to 1 (WCAG 2)."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """How much two colours stand out against each other, 1 to 21 (WCAG 2)."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
