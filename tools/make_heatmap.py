"""Draws docs/images/layer_position.png from the product's own run: `python tools/make_heatmap.py [OUT]`.

OUT is the directory of a run of documents/v2/layer_position.json; without it the document is run first. The picture
carries a digest of the numbers it shows, so that a test can tell whether it is current.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "documents" / "v2" / "layer_position.json"
PICTURE = ROOT / "docs" / "images" / "layer_position.png"

Cells = dict[tuple[int, int], float]


def cells(out: Path) -> Cells:
    """The mean of `flipped` at every (layer, position) of a run's summary."""
    lines = json.loads((out / "summary.json").read_text())
    return {(line["layer"], line["position"]): line["mean"] for line in lines if line["metric"] == "flipped"}


def digest(found: Cells) -> str:
    """SHA-256 of the numbers a picture shows, to two places."""
    shown = ";".join(f"{layer},{position}:{mean:.2f}" for (layer, position), mean in sorted(found.items()))
    return hashlib.sha256(shown.encode()).hexdigest()


def labels(positions: list[int]) -> list[str]:
    """The token at each position of the rows' prompts; `‹weekday›` where rows differ."""
    from causalab_mini.checkpoint.resolve import resolve

    document = json.loads(DOCUMENT.read_text())
    ref, field = document["steps"]["score"]["rows"]["base"], document["roles"]["base"]["field"]
    rows = json.loads((ROOT / "datasets" / f"{ref}.json").read_text())
    checkpoint = resolve(document["model"]["key"])
    texts = [checkpoint.encode(row[field]).ids for row in rows]
    found = [{checkpoint.token_text(ids[position]).strip() for ids in texts} for position in positions]
    return [next(iter(tokens)) if len(tokens) == 1 else "‹weekday›" for tokens in found]


def draw(found: Cells, picture: Path) -> None:
    """The map as a picture: layers upwards, positions to the right, every cell with its number."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    layers, positions = (sorted({key[axis] for key in found}) for axis in (0, 1))
    grid = [[found[layer, position] for position in positions] for layer in layers]
    ink, paper = "#1b1f24", "#ffffff"
    figure, axes = pyplot.subplots(figsize=(7.2, 4.0), dpi=150, facecolor=paper, layout="constrained")
    image = axes.imshow(grid, cmap="cividis", vmin=0, vmax=1, origin="lower", aspect="auto")
    names = [f"{name}\n{position}" for name, position in zip(labels(positions), positions, strict=True)]
    axes.set_xticks(range(len(positions)), names)
    axes.set_yticks(range(len(layers)), [str(layer) for layer in layers])
    axes.set_xlabel("token of the prompt, and its position", color=ink)
    axes.set_ylabel("layer", color=ink)
    axes.set_title("One residual interchanged: share of answers that flip", color=ink, fontsize=11)
    axes.set_xticks([i - 0.5 for i in range(1, len(positions))], minor=True)
    axes.set_yticks([i - 0.5 for i in range(1, len(layers))], minor=True)
    axes.grid(which="minor", color=paper, linewidth=2)
    axes.tick_params(which="both", length=0, colors=ink)
    for spine in axes.spines.values():
        spine.set_visible(False)
    for row, line in enumerate(grid):
        for column, mean in enumerate(line):
            color = ink if mean > 0.5 else paper
            axes.text(column, row, f"{mean:.2f}", ha="center", va="center", color=color, fontsize=9)
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.set_label("flipped (mean over 42 pairs of days)", color=ink)
    bar.outline.set_visible(False)  # type: ignore[operator]
    bar.ax.tick_params(length=0, colors=ink)
    figure.savefig(picture, facecolor=paper, metadata={"Description": digest(found), "Software": None})
    pyplot.close(figure)


def main() -> int:
    """Run the document unless a directory is given, and draw."""
    if len(sys.argv) > 1:
        draw(cells(Path(sys.argv[1])), PICTURE)
        return 0
    from causalab_mini.cli import execute

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "grid"
        code = execute(["run", str(DOCUMENT), "--data-root", str(ROOT / "datasets"), "--out", str(out)])
        if code == 0:
            draw(cells(out), PICTURE)
    return code


if __name__ == "__main__":
    sys.exit(main())
