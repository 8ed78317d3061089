"""A recurrent state edited in six ways at one token of a long text, beside stepping token by token for every edit.

The model is a random one with Gated DeltaNet in three blocks of four, unless a folder is named.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from benchmarks.agreement import apart
from benchmarks.common import ENGINES
from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.resolve import BUNDLED_FOLDER, resolve
from causalab_mini.engine.modules import Network, load
from causalab_mini.engine.values import quiet
from causalab_mini.plan.compile import compile_experiment
from causalab_mini.run.runner import Run
from causalab_mini.schedule.cost import Cost
from causalab_mini.spec.load import load as load_document

TOKENIZER = BUNDLED_FOLDER / "weekdays-llama"
WORDS = "If today is Thursday, tomorrow is Friday. The day after Friday is Saturday. "
TOKENS, WHERE, LAYER = 256, 128, 0
SHARES = (0.1, 0.25, 0.4, 0.6, 0.8, 1.0)
"""How much of the state each edit takes away."""
WANTED = 1 / 20


def document(layer: int) -> dict:
    """The edits as one sweep: the logit of a weekday after the last token."""
    return {
        "model": {"key": "any", "dtype": "fp32"},
        "roles": {"base": {"field": "input"}},
        "sites": {
            "state": {"component": "linear_attention_state", "layers": layer},
            "head": {"component": "lm_head"},
        },
        "interventions": {
            "fade": {
                "reads": {"logits": {"site": "head", "pos": -1, "model": "faded", "input": "base"}},
                "writes": {
                    "fade": {
                        "site": "state",
                        "pos": WHERE,
                        "mechanism": "lerp",
                        "operand": 0.0,
                        "params": {"t": {"sweep": list(SHARES), "as": "share"}},
                    }
                },
                "models": {"faded": {"input": "base", "writes": ["fade"]}},
                "metrics": {"answer": {"kind": "token_logit", "of": "logits", "token": "answer"}},
            }
        },
        "steps": {"measure": {"kind": "observe", "rows": {"base": "bench/long"}, "interventions": "fade"}},
    }


@dataclass(frozen=True)
class World:
    """The text, and a model for each program."""

    weights: Path
    root: Path
    engine: str = "traced"

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The model without its weights."""
        return resolve(str(self.weights), weights=self.weights)

    @cached_property
    def text(self) -> str:
        """As many words as make the tokens."""
        words = (WORDS * TOKENS).split(" ")
        count = next(n for n in range(1, len(words)) if len(self.checkpoint.encode(" ".join(words[:n])).ids) >= TOKENS)
        return " ".join(words[:count])

    def network(self) -> Network:
        """The model, loaded anew."""
        return load(self.checkpoint.folder, "fp32", None, "cpu")

    @cached_property
    def product(self) -> Run:
        """The document, planned, on a model of its own."""
        (self.root / "bench").mkdir(exist_ok=True)
        (self.root / "bench/long.json").write_text(json.dumps([{"input": self.text, "answer": "Friday"}]))
        loaded = load_document(json.dumps(document(LAYER)).encode(), "state_edits")
        network = self.network()
        experiment = compile_experiment(loaded, self.checkpoint, self.root)
        return Run(experiment, self.checkpoint, network, ENGINES[self.engine](network))

    def run(self) -> Tensor:
        """What the product finds, an entry an edit."""
        self.product.done = Cost()
        tables = [result.observed[0].tables[0] for result in self.product.results()]
        return torch.tensor([table.rows[0].value for table in tables])

    @cached_property
    def plain(self) -> Network:
        """The loop's model."""
        return self.network()

    @torch.inference_mode()
    def step_by_step(self) -> Tensor:
        """The same, the whole text stepped through for every edit."""
        ids = self.checkpoint.encode(self.text).ids
        answer = self.checkpoint.answer("Friday", "space_prefixed", "")
        where = WHERE + len(self.checkpoint.prefix)
        found: list[Tensor] = []
        for share in SHARES:
            cache = DynamicCache(config=self.plain.model.config)
            logits = torch.empty(0)
            for position, token in enumerate(ids):
                at = torch.tensor([[position]])
                out = self.plain.model(torch.tensor([[token]]), position_ids=at, cache=cache, use_cache=True)
                logits = out.logits[0, -1]
                if position == where:
                    cache.layers[LAYER].recurrent_states[0].mul_(1 - share)
            found.append(logits[answer])
        return torch.stack(found)


def write_model(folder: Path) -> Path:
    """A random model, seeded, with the bundled tokenizer, in `folder`."""
    from transformers.models.qwen3_5.configuration_qwen3_5 import Qwen3_5TextConfig
    from transformers.models.qwen3_5.modeling_qwen3_5 import Qwen3_5ForCausalLM

    torch.manual_seed(0)
    config = Qwen3_5TextConfig(
        vocab_size=json.loads((TOKENIZER / "config.json").read_bytes())["vocab_size"],
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=8,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        linear_num_key_heads=4,
        linear_num_value_heads=4,
        linear_key_head_dim=32,
        linear_value_head_dim=32,
        max_position_embeddings=2 * TOKENS,
        bos_token_id=0,
        eos_token_id=1,
        initializer_range=0.1,
    )
    Qwen3_5ForCausalLM(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(TOKENIZER / name, folder / name)
    return folder


def seconds(program: Callable[[], Tensor]) -> float:
    """CPU seconds of this process that `program` takes."""
    gc.collect()
    start = time.process_time()
    program()
    return time.process_time() - start


def main() -> None:
    """Check that the numbers agree, then time the two in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, help="a folder of a Gated DeltaNet model; default: a random one")
    parser.add_argument("--engine", choices=list(ENGINES), default="traced")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with TemporaryDirectory() as root:
        with quiet():
            weights = asked.weights or write_model(Path(root) / "model")
        world = World(weights.resolve(), Path(root), asked.engine)
        with quiet():
            one, other = world.run(), world.step_by_step()
        difference = apart({"answer": one}, {"answer": other})
        turns = [(seconds(world.run), seconds(world.step_by_step)) for _ in range(asked.repeats)]
        ratio = median(own / loop for own, loop in turns)
        own, loop = (median(column) for column in zip(*turns, strict=True))
        said = {
            "name": f"{len(SHARES)} edits of one state in {TOKENS} tokens / stepping for every edit",
            "value": ratio,
            "wanted": WANTED,
            "note": f"CPU seconds {own:.3g} / {loop:.3g}; {world.product.done.token_layers:,} token-layers",
        }
    if asked.json:
        print(json.dumps([said]))
    else:
        print(f"{said['name']}: {ratio:.3f} (wanted: {WANTED}); {said['note']}; largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
