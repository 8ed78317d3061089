"""Experiments on a language model's internals, as JSON documents.

import causalab_mini as cm

results = cm.run("documents/v2/patching.json", "out/patching")
results.summary()
"""

# The room goes first: on the package, its name is the verb's.
import causalab_mini.run  # noqa: F401 # pyright: ignore[reportUnusedImport]
from causalab_mini.errors import Problem, Refusal, RunFailure
from causalab_mini.python import AnyDocument, check, compare, dry_run, explain, load, run, validate
from causalab_mini.results.reader import Results

__version__ = "0.1.0"
__all__ = [
    "AnyDocument",
    "Problem",
    "Refusal",
    "Results",
    "RunFailure",
    "check",
    "compare",
    "dry_run",
    "explain",
    "load",
    "run",
    "validate",
]
