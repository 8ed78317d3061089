"""Train the small sparse autoencoder that documents/v2/sae_feature_ablation.json ablates features of.

    python tools/train_weekdays_sae.py

Its values are those of the residual stream leaving block 4 of the bundled Llama, at the last token of every statement
the
checkpoint was trained on and of the prompts about weekdays. A reconstruction loss and a penalty on active features,
decoder
rows of length 1. One thread and one seed: the file comes out the same on one machine.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from tools.corpus import enumerated
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "src" / "causalab_mini" / "checkpoint" / "bundled" / "weekdays-llama"
FILE = ROOT / "documents" / "v2" / "files" / "weekday_sae.safetensors"
LAYER, FEATURES, STEPS, BATCH, SPARSITY = 4, 64, 4000, 256, 0.03


def values(prompts: list[str]) -> Tensor:
    """The residual stream [n, d] at the last token of each prompt."""
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)
    model = AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32).eval()
    found: list[Tensor] = []
    with torch.no_grad():
        for prompt in prompts:
            hidden = model(**tokenizer(prompt, return_tensors="pt"), output_hidden_states=True).hidden_states
            found.append(hidden[LAYER + 1][0, -1])
    return torch.stack(found)


def train(x: Tensor) -> dict[str, Tensor]:
    """The maps of an autoencoder of values [n, d]."""
    draw = torch.Generator().manual_seed(0)
    scale = x.std()
    decoder = torch.nn.functional.normalize(torch.randn(FEATURES, x.shape[1], generator=draw), dim=1)
    maps = {"W_enc": decoder.T.clone(), "W_dec": decoder, "b_enc": torch.zeros(FEATURES), "b_dec": x.mean(0) / scale}
    for tensor in maps.values():
        tensor.requires_grad_()
    optimizer = torch.optim.Adam(maps.values(), lr=2e-3)
    for _ in range(STEPS):
        batch = x[torch.randint(len(x), (BATCH,), generator=draw)] / scale
        f = ((batch - maps["b_dec"]) @ maps["W_enc"] + maps["b_enc"]).relu()
        error = batch - (f @ maps["W_dec"] + maps["b_dec"])
        loss = error.square().sum(-1).mean() + SPARSITY * x.shape[1] ** 0.5 * f.sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            maps["W_dec"].copy_(torch.nn.functional.normalize(maps["W_dec"], dim=1))
    trained = {name: tensor.detach() for name, tensor in maps.items()}
    # Features are in units of the values themselves.
    return {**trained, "b_enc": trained["b_enc"] * scale, "b_dec": trained["b_dec"] * scale}


def main() -> None:
    """Write the file."""
    torch.set_num_threads(1)
    rows = json.loads((ROOT / "datasets" / "weekdays" / "full.json").read_text())
    prompts = [statement.prompt for statement in enumerated()] + [row["input"] for row in rows]
    x = values(prompts)
    maps = train(x)
    f = ((x - maps["b_dec"]) @ maps["W_enc"] + maps["b_enc"]).relu()
    error = x - (f @ maps["W_dec"] + maps["b_dec"])
    explained = 1 - error.square().sum() / (x - x.mean(0)).square().sum()
    print(f"{len(x)} values, {explained:.3f} of the variance, {(f > 0).sum(-1).float().mean():.1f} features active")
    stamp = {
        "model": "causalab-mini/weekdays-llama",
        "revision": "main",
        "component": "block_output",
        "layer": str(LAYER),
        "kind": "sae",
        "width": str(x.shape[1]),
    }
    save_file({name: tensor.contiguous() for name, tensor in maps.items()}, FILE, metadata=stamp)


if __name__ == "__main__":
    main()
