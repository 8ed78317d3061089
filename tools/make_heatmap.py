"""Draws docs/images/layer_position.png from the product's own run: `python tools/make_heatmap.py [OUT]`.

OUT is the directory of a run of documents/v2/layer_position.json; without it the document is run first. The picture
carries a digest of the numbers it shows, so that a test can tell whether it is current.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from pathlib import Path

import causalab_mini as cm
from causalab_mini.cli.retelling import retell
from causalab_mini.report.charts import charts
from causalab_mini.report.plots import image

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "documents" / "v2" / "layer_position.json"
PICTURE = ROOT / "docs" / "images" / "layer_position.png"

Cells = dict[tuple[int, int], float]


def cells(out: Path) -> Cells:
    """The mean of `flipped` at every (layer, position) of a run's summary."""
    flipped = cm.load(out).summary().query("metric == 'flipped'").set_index(["layer", "position"])["mean"]
    return flipped.to_dict()


def digest(found: Cells) -> str:
    """SHA-256 of the numbers a picture shows, to two places."""
    shown = ";".join(f"{layer},{position}:{mean:.2f}" for (layer, position), mean in sorted(found.items()))
    return hashlib.sha256(shown.encode()).hexdigest()


def draw(out: Path, picture: Path) -> None:
    """The map of a run as a picture."""
    results = cm.load(out)
    told = retell(results, DOCUMENT, ROOT / "datasets", None, rows=False)
    (chart,) = charts(results, told.tokens, "flipped")
    picture.write_bytes(image(chart, "png", digest(cells(out))))


def main() -> None:
    """Run the document unless a directory is given, and draw."""
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]), PICTURE)
        return
    with tempfile.TemporaryDirectory() as folder:
        cm.run(DOCUMENT, Path(folder) / "grid", data_root=ROOT / "datasets")
        draw(Path(folder) / "grid", PICTURE)


if __name__ == "__main__":
    main()
