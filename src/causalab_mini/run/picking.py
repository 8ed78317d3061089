"""The token of one row where settings or sampling stand between the raw logits and the choice.

Logits are changed by transformers' own processors, built and ordered as `generate` builds them, for the row alone:
its own tokens, without padding. A drawn token depends on the row's logits, its example id, the seed and the step.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, cast

import torch
from torch import Tensor

from causalab_mini.engine.modules import Network
from causalab_mini.engine.values import border
from causalab_mini.errors import RunFailure
from causalab_mini.schedule.ir import Lane, Rules

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedModel
    from transformers.generation.logits_process import LogitsProcessorList


class Build(Protocol):
    """How `generate` makes the processors of a model."""

    def __call__(
        self,
        model: PreTrainedModel,
        config: GenerationConfig,
        *,
        input_ids_seq_length: int,
        encoder_input_ids: Tensor,
        device: str,
    ) -> LogitsProcessorList:
        """The processors for one row, in the order in which they act."""
        ...


class Picker:
    """Picks the tokens of one lane, step by step."""

    def __init__(self, prompt: Sequence[int], rules: Rules, held: Sequence[int], processors: LogitsProcessorList):
        self._prompt = list(prompt)
        self._rules = rules
        self._held = list(held)
        self._processors = processors

    def pick(self, said: Sequence[int], raw: Tensor) -> tuple[int, float]:
        """The token after `said`, given raw logits [V] in fp32, and its margin over the runner-up.

        A token is drawn as the argmax of scores and Gumbel noise, so its margin is told like that of a greedy one.
        """
        with border():
            scores = self._scores(said, raw.detach().cpu())
        if self._rules.sample is not None:
            seed = self._rules.sample.seed
            scores = scores.double() + gumbel(seed, self._rules.example_id, len(said), len(scores))
        top = scores.topk(2).values
        if top[0] == -torch.inf:
            raise RunFailure(
                f"no token is left to choose at step {len(said)}", "the generation settings suppress all of them"
            )
        return int(scores.argmax()), float(top[0] - top[1])

    def _scores(self, said: Sequence[int], raw: Tensor) -> Tensor:
        scores = raw.clone()
        scores[self._held] = -torch.inf
        ids = torch.tensor([[*self._prompt, *said]])
        changed = self._processors(cast(torch.LongTensor, ids), cast(torch.FloatTensor, scores[None]))[0]
        # A processor that mends infinities must not bring back what is held off.
        changed[self._held] = -torch.inf
        return changed


def pickers(lanes: Sequence[Lane], eos_ids: Sequence[int], network: Network) -> dict[int, Picker]:
    """The pickers of those lanes that have rules, by slot."""
    found: dict[int, Picker] = {}
    for slot, lane in enumerate(lanes):
        rules = lane.ends.rules
        if rules is not None:
            held = () if lane.ends.stops else eos_ids
            found[slot] = Picker(lane.ids, rules, held, _processors(lane.ids, rules, eos_ids, network))
    return found


def _processors(prompt: Sequence[int], rules: Rules, eos_ids: Sequence[int], network: Network) -> LogitsProcessorList:
    """What `generate` makes of the rules for this row, with nothing from the model's own config."""
    from transformers import GenerationConfig, GenerationMixin

    sample = rules.sample
    drawn = {} if sample is None else {**sample.model_dump(exclude={"seed"}), "do_sample": True}
    length = {} if rules.length is None else {"max_length": len(prompt) + rules.length}
    with border():
        config = GenerationConfig(**json.loads(rules.processors), **drawn, **length)
        # What `generate` sets on its own copy before it asks for the processors.
        ends = torch.tensor(list(eos_ids)) if eos_ids else None
        config._eos_token_tensor = ends  # pyright: ignore[reportPrivateUsage]
        build = cast(Build, GenerationMixin._get_logits_processor)  # pyright: ignore
        text = torch.tensor([list(prompt)])
        return build(network.model, config, input_ids_seq_length=len(prompt), encoder_input_ids=text, device="cpu")


def gumbel(seed: int, example_id: str, step: int, width: int) -> Tensor:
    """Standard Gumbel noise [width], fp64, CPU: −log(−log u), u uniform.

    The generator's seed is the first eight bytes, big-endian, of SHA-256 of the UTF-8 text `seed:example_id:step`,
    modulo 2⁶³.
    """
    text = f"{seed}:{example_id}:{step}".encode()
    start = int.from_bytes(hashlib.sha256(text).digest()[:8], "big") % 2**63
    generator = torch.Generator(device="cpu").manual_seed(start)
    drawn = torch.rand(width, generator=generator, dtype=torch.float64)
    return -(-drawn.clamp(min=torch.finfo(torch.float64).tiny).log()).log()
