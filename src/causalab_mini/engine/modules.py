"""Load one model from a folder, and say which of its modules holds which component.

Reads safetensors from disk and nothing else: no network, no pickle, no code from the folder. Refuses to know
documents, positions or engines.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_utils import PreTrainedModel

from causalab_mini.engine import mixers, taps
from causalab_mini.engine.families import FAMILIES, Family, Side, family_of
from causalab_mini.engine.guess import guess
from causalab_mini.engine.values import quiet
from causalab_mini.errors import ModelUnavailable, suggest

DTYPES: dict[str, torch.dtype] = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
DEVICES = ("cpu", "cuda", "mps", "auto")
ATTENTIONS = ("eager", "sdpa")
LOGITS = ("logit_scale", "logits_scaling", "final_logit_softcapping")
"""What configs call a factor of the logits, a divisor of them, and their cap."""


@dataclass(frozen=True)
class Spot:
    """One side of one module: a dotted path from the root ("" is the root itself), which side, which element of it."""

    path: str
    side: Side
    item: int = 0


@dataclass(frozen=True)
class Network:
    """A loaded model in eval mode, without gradients, and its family's map."""

    model: PreTrainedModel
    family: Family
    device: torch.device

    @property
    def eager(self) -> bool:
        """Whether it computes under eager attention."""
        return self.model.config._attn_implementation == "eager"  # pyright: ignore[reportPrivateUsage]

    @property
    def depth(self) -> int:
        """How many blocks there are."""
        return len(cast(nn.ModuleList, self.model.get_submodule(self.family.blocks)))

    def locate(self, component: str, layer: int | None = None) -> Spot:
        """The module and side that hold `component` (of block `layer`, counted from 0, for a block's component).

        `input_ids` has none: the tokens are what a call is given.
        """
        family = self.family
        whole = {
            "embeddings": Spot(self._there(family.projected) or family.embeddings, "output"),
            "ln_final": Spot(family.norm, "output"),
            "lm_head": Spot("", "output"),
            "logits": Spot("", "output"),
        }
        if component in whole:
            if layer is not None:
                raise ValueError(f"{component} belongs to the whole model, not to layer {layer}")
            return whole[component]
        place = family.within(component)
        if place is None:
            raise ValueError(f"no module holds '{component}'")
        if layer is None or not 0 <= layer < self.depth:
            raise ValueError(f"{component} needs a layer from 0 to {self.depth - 1}, not {layer}")
        return Spot(f"{family.blocks}.{layer}.{place.path}".removesuffix("."), place.side, place.item)

    def _there(self, path: str) -> str:
        """`path`, where the model has a module there; a family's part may be left out by the config."""
        parent, _, name = path.rpartition(".")
        return path if path and getattr(self.model.get_submodule(parent), name, None) is not None else ""

    def unembed(self, hidden: Tensor) -> Tensor:
        """Logits [n, V] of residual-stream vectors `hidden` [n, d]: the final norm, the head, the scale and the cap."""
        if hidden.ndim != 2:
            raise ValueError(f"unembed takes [n, d], not {tuple(hidden.shape)}")
        ways = [self._there(path) for path in (self.family.norm, self.family.narrowed, self.family.head)]
        with torch.no_grad():
            logits = hidden
            for path in filter(None, ways):
                logits = cast(Tensor, self.model.get_submodule(path)(logits))
            config = self.model.config
            scale, divisor, cap = (cast(float | None, getattr(config, name, None)) for name in LOGITS)
            logits = logits if scale is None else logits * scale
            logits = logits if divisor is None else logits / divisor
            return logits if cap is None else torch.tanh(logits / cap) * cap


def best_device() -> torch.device:
    """The fastest kind of device this machine has."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


def load(folder: Path, dtype: str, attn_implementation: str | None = None, device: str | None = None) -> Network:
    """Load the model in `folder` for reading and writing its values.

    `dtype` is fp32, bf16 or fp16; `device` is cpu, cuda, mps, auto (spread over what there is) or None for the
    best there is. Raises `ModelUnavailable` when any of it cannot be had.
    """
    family = _family(folder)
    placement = _placement(device)
    if dtype not in DTYPES:
        raise ModelUnavailable(f"no dtype '{dtype}': {suggest(dtype, DTYPES, 'dtypes')}")
    # Any other name would be looked up as code on a hub.
    if attn_implementation not in (None, *ATTENTIONS):
        raise ModelUnavailable(
            f"no attention '{attn_implementation}': {suggest(attn_implementation, ATTENTIONS, 'attentions')}"
        )
    try:
        model = _read(folder, family, DTYPES[dtype], attn_implementation, spread=placement is None)
        if placement is not None and placement.type != "cpu":
            model.to(placement)  # pyright: ignore[reportCallIssue, reportArgumentType]
    except ModelUnavailable:
        raise
    except Exception as error:
        raise ModelUnavailable(f"the model in {folder} cannot be loaded: {type(error).__name__}: {error}") from error
    model.eval()
    model.requires_grad_(False)
    if family_of(family.model_type) is None:
        family = guess(model, family.model_type)
    taps.attach(model, family)
    mixers.attach(model, family)
    return Network(model, family, placement or model.device)


def _family(folder: Path) -> Family:
    """The family named by the folder's config.json: its row or, where it has none, the class transformers names."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise ModelUnavailable(f"no model in {folder}: it has no config.json") from error
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"{path} cannot be read as JSON: {error}") from error
    model_type = config.get("model_type") if isinstance(config, dict) else None
    family = _row(model_type) if isinstance(model_type, str) else None
    if family is None:
        known = [row.model_type for row in FAMILIES]
        raise ModelUnavailable(
            f"{path} names the model type '{model_type}': {suggest(str(model_type), known, 'known model types')}"
        )
    if (folder / "adapter_config.json").exists():
        raise ModelUnavailable(f"{folder} holds an adapter (adapter_config.json): merge it into its model first")
    return family


def _row(model_type: str) -> Family | None:
    """The row of a model type; of one that has none, its class alone; None where transformers has no such model."""
    row = family_of(model_type)
    if row is None:
        from transformers.models.auto.configuration_auto import model_type_to_module_name
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

        architecture = dict(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES).get(model_type)
        if isinstance(architecture, str):
            return Family(model_type, architecture, module=model_type_to_module_name(model_type))
    return row


def _placement(device: str | None) -> torch.device | None:
    """The one device to load onto, or None to spread the model over several."""
    if device is None:
        return best_device()
    if device not in DEVICES:
        raise ModelUnavailable(f"no device '{device}': {suggest(device, DEVICES, 'devices')}")
    if device == "auto":
        if importlib.util.find_spec("accelerate") is None:
            raise ModelUnavailable("device 'auto' needs the package accelerate, which is not installed; name a device")
        return None
    if device == "cuda" and not torch.cuda.is_available():
        raise ModelUnavailable("device 'cuda' was asked for and this machine has none that torch can use")
    if device == "mps" and not torch.backends.mps.is_available():
        raise ModelUnavailable("device 'mps' was asked for and this machine has none that torch can use")
    return torch.device(device)


def _read(
    folder: Path, family: Family, dtype: torch.dtype, attn_implementation: str | None, *, spread: bool
) -> PreTrainedModel:
    """The family's own class, filled from the folder's safetensors; raises when a weight is absent or misshapen."""
    with quiet():
        # The family's own module: the Auto classes import this one as well, and the table of all the others.
        name = family.module or family.model_type
        module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
        architecture = cast(type[PreTrainedModel], getattr(module, family.architecture))
        loaded = architecture.from_pretrained(
            str(folder),
            dtype=dtype,
            attn_implementation=attn_implementation,
            device_map="auto" if spread else None,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    model, report = cast(tuple[PreTrainedModel, dict[str, Any]], loaded)
    absent = sorted(map(str, report["missing_keys"])) + sorted(map(str, report["mismatched_keys"]))
    if absent:
        raise ModelUnavailable(f"the weights in {folder} do not fill the model: {', '.join(absent[:5])} …")
    return model
