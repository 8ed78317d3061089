"""A write's mechanism as the node that computes it."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import ValidationError

from causalab_mini.errors import Problem
from causalab_mini.spec import messages
from causalab_mini.spec.document import Write
from causalab_mini.vocabulary.mechanisms import MECHANISMS, Mechanism


def of(write: Write) -> Mechanism:
    """The mechanism of a write that passed `spec.check`."""
    return MECHANISMS.get(write.mechanism).node.model_validate(write.params)


def parameter_problems(write: Write, path: str) -> Iterator[Problem]:
    """What is wrong with the parameters of a known mechanism; `path` is the write's."""
    node = MECHANISMS.get(write.mechanism).node
    try:
        if write.params and not node.model_fields:
            given = ", ".join(f"'{name}'" for name in write.params)
            yield Problem(
                f"{path}.params", f"'{node.keyword}' takes no parameters, and {given} was found", "leave it out"
            )
            return
        mechanism = node.model_validate(write.params)
    except ValidationError as error:
        for problem in messages.problems(error.errors(include_url=False), write.params, node):
            yield problem.within(f"{path}.params")
        return
    complaint = mechanism.complaint()
    if complaint is not None:
        yield Problem(f"{path}.params", complaint, f"the formula is {node.formula}")
