"""What a model hands back as one tensor: bare, first of a tuple, or under a name."""

from __future__ import annotations

import pytest
import torch
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutputWithPast

from causalab_mini.engine.values import inner, returned
from causalab_mini.errors import EngineFailure

LOGITS = torch.arange(6.0).reshape(1, 2, 3)


@pytest.mark.parametrize(
    "value",
    [LOGITS, (LOGITS, None), CausalLMOutputWithPast(logits=LOGITS), CausalLMOutputWithPast(torch.zeros(()), LOGITS)],
    ids=["tensor", "tuple", "output", "output with a loss"],
)
def test_one_shape_whatever_the_model_returns(value: object) -> None:
    assert inner(value) is LOGITS  # type: ignore[arg-type]


def test_what_a_model_did_not_return_is_named() -> None:
    output = BaseModelOutput(last_hidden_state=LOGITS)
    with pytest.raises(EngineFailure, match="asked for 'logits', and its BaseModelOutput has: last_hidden_state"):
        inner(output)
    with pytest.raises(EngineFailure, match="'attentions', and its BaseModelOutput has: last_hidden_state"):
        returned(output, "attentions")
    with pytest.raises(EngineFailure, match=r"asked for 'logits'.*has: nothing"):
        inner(CausalLMOutputWithPast())
    with pytest.raises(EngineFailure, match="no tensor in front"):
        inner(())
