"""The interchange of the layer sweep at three layers and the last five tokens: the same loops on another document."""

from __future__ import annotations

from benchmarks.layer_sweep import plain, traced
from benchmarks.race import Job, main

JOB = Job("layer_position", "an interchange at 3 layers × 5 tokens", 1 / 6, plain, traced)

if __name__ == "__main__":
    main(JOB)
