"""A decode: so many steps, or the tokens of a column; one rule for the end."""

from __future__ import annotations

from collections.abc import Iterator

from causalab_mini.errors import Problem
from causalab_mini.spec.check.names import Scope


def check(scope: Scope) -> Iterator[Problem]:
    """The decode of an intervention."""
    decode, path = scope.intervention.decode, f"{scope.path}.decode"
    if decode.steps is None and decode.force is None:
        yield Problem(
            path, "a decode says how many steps, or which column to force, and this one neither", 'add "steps"'
        )
    if decode.force is not None and decode.steps is not None:
        message = (
            f"the steps of a forced decode are those of the column '{decode.force}', and 'steps' says {decode.steps}"
        )
        yield Problem(f"{path}.steps", message, "leave one of them out")
    if decode.force is not None and "eos" in decode.model_fields_set:
        message = f"what is fed is the column '{decode.force}' to its end, so 'eos' has nothing to say"
        yield Problem(f"{path}.eos", message, "leave one of them out")
    if decode.force is not None and decode.sample is not None:
        message = f"what is fed is the column '{decode.force}', so nothing is left to sample"
        yield Problem(f"{path}.sample", message, "leave one of them out")
    if decode.sample is not None and decode.steps == 0:
        yield Problem(f"{path}.sample", "nothing is generated in 0 steps, so nothing can be sampled", "add steps")
