"""The self-test: whether what a loaded model holds under each name is what the name says, on three tokens.

A component is proved by an equation between values that were taken independently of one another; refused where an
equation fails; left unproven where there is none. Nothing here knows documents or rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers.cache_utils import Cache

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.verdicts import VIEWS, Finding, Proof, Verdict
from causalab_mini.engine import pattern_proofs, proofs
from causalab_mini.engine.caches import fresh
from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.hooks import Hooks
from causalab_mini.engine.modules import Network
from causalab_mini.engine.recurred import Walk, walks
from causalab_mini.engine.seen import NAMES, NotShown, Seen, close, tokens, tolerance
from causalab_mini.errors import CausalabError
from causalab_mini.vocabulary.components import COMPONENTS, Component, network_order

GIVEN = ("input_ids", "lm_head", "logits", "next_token_probs")
"""What a call is given, and what the model returns: there by definition."""

EAGER = "it is there under eager attention, and the model was tested under another"
NOWHERE = "no module was found that holds it"
NOT_REACHED = "the model does not come by it, or not where other families do"


def examine(network: Network, checkpoint: Checkpoint) -> Verdict:
    """What three tokens show of every component. Never raises: a model that does not run is a verdict on the whole."""
    dtype = NAMES.get(next(network.model.parameters()).dtype, "bf16")
    try:
        with torch.inference_mode():
            return Verdict(dtype, *_Examination(network, checkpoint, tolerance(dtype)).findings())
    except Exception as error:
        return Verdict(dtype, whole=f"the self-test could not be run on it: {type(error).__name__}: {error}")


@dataclass
class _Examination:
    """One run of the self-test."""

    network: Network
    checkpoint: Checkpoint
    tolerance: float
    found: dict[str, Finding] = field(default_factory=dict[str, Finding])

    def findings(self) -> tuple[dict[str, Finding], str]:
        """By component and of the views; and why nothing can be used, if so."""
        wanted = [component for component in COMPONENTS if self._here(component)]
        values = self._values(wanted)
        seen = Seen(self.network, self.checkpoint, values, self.tolerance, self._walks())
        for component in wanted:
            if component.name in GIVEN:
                self.found[component.name] = Finding(Proof.PROVED)
            elif component.state:
                self.found[component.name] = self._judged(proofs.PROOFS[component.name], seen)
            elif component.pattern and not self.network.eager:
                self.found[component.name] = Finding(Proof.UNPROVEN, EAGER)
            elif component.name not in self.found:
                self.found[component.name] = self._one(component, seen)
        if self._proved("block_mid") and not self._carried(seen):
            reason = "the residual stream does not go on with what is written between attention and the MLP"
            self.found["block_mid"] = Finding(Proof.REFUSED, reason)
        self.found[VIEWS] = self._judged(proofs.views, seen)
        return self.found, "" if self.checkpoint.config.supported else self._promises()

    def _here(self, component: Component) -> bool:
        return bool(self._layers(component))

    def _layers(self, component: Component) -> list[int | None]:
        layers = range(self.checkpoint.depth) if component.per_layer else (None,)
        bare = self.checkpoint.untested()
        return [layer for layer in layers if bare.lacks(component, layer) is None]

    def _one(self, component: Component, seen: Seen) -> Finding:
        """The shape, then the equation."""
        width = self.checkpoint.width(component)
        for layer, value in seen.of(component.name):
            found = value.shape[-2 if component.pattern else -1]
            if found != width:
                where = "" if layer is None else f" in block {layer}"
                reason = f"it is {found} wide{where}, where the config makes it {width}"
                return Finding(Proof.REFUSED, reason)
        own = {**proofs.PROOFS, **pattern_proofs.PROOFS}
        return self._judged(own.get(component.name, proofs.nothing), seen)

    def _judged(self, proof: Callable[[Seen], str | None], seen: Seen) -> Finding:
        try:
            failed = proof(seen)
        except (KeyError, AttributeError, RuntimeError, NotShown) as error:
            reason = str(error) if isinstance(error, NotShown) else "what it would be compared with is not there"
            return Finding(Proof.UNPROVEN, reason)
        return Finding(Proof.PROVED) if failed is None else Finding(Proof.REFUSED, failed)

    def _proved(self, name: str) -> bool:
        return name in self.found and self.found[name].proof is Proof.PROVED

    def _values(self, wanted: list[Component]) -> dict[str, dict[int | None, Tensor]]:
        """The values of components, by layer, [3, w]: in one forward or, where that fails, in as few as tell which."""
        there = [one for one in wanted if not one.state and (self.network.eager or not one.pattern)]
        values = (self.checkpoint.value_of(component) for component in there)
        names = [name for name in dict.fromkeys(values) if name != "input_ids"]
        components = [COMPONENTS.get(name) for name in names]
        with suppress(CausalabError, ValueError, AttributeError):
            return self._forward(components)
        taken: list[Component] = []
        for component in components:
            try:
                self._forward([*taken, component])
                taken.append(component)
            except (CausalabError, ValueError, AttributeError) as error:
                reason = NOWHERE if isinstance(error, ValueError) else NOT_REACHED
                for alias in wanted:
                    if self.checkpoint.value_of(alias) == component.name:
                        self.found[alias.name] = Finding(Proof.UNPROVEN, reason)
        return self._forward(taken)

    def _forward(
        self, components: list[Component], edit: Callable[[Tensor], Tensor] | None = None
    ) -> dict[str, dict[int | None, Tensor]]:
        places = [(component, layer) for component in components for layer in self._layers(component)]
        visits: list[Visit] = []
        for component, layer in sorted(places, key=lambda place: network_order(*place)):
            spot = self.network.locate(component.name, layer)
            change = edit if component.name == "block_mid" else None
            keep = {f"{component.name} {'' if layer is None else layer}": _only_row}
            visits.append(Visit(spot.path, spot.side, change, keep, spot.item))
        ids = tokens(self.checkpoint.vocab)
        kept = self._run(ids, torch.ones_like(ids), visits)
        found: dict[str, dict[int | None, Tensor]] = {}
        for component, layer in places:
            value = kept[f"{component.name} {'' if layer is None else layer}"]
            found.setdefault(component.name, {})[layer] = value
        return found

    def _walks(self) -> dict[int, Walk]:
        with suppress(CausalabError, ValueError, KeyError):
            return walks(self.network, tokens(self.checkpoint.vocab))
        return {}

    def _run(self, ids: Tensor, mask: Tensor, visits: list[Visit], cache: Cache | None = None) -> dict[str, Tensor]:
        device, columns = self.network.device, ids.shape[1]
        ids, mask = ids.to(device), mask.to(device)
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -columns:]
        own = fresh(self.network) if cache is None else cache
        inputs = Inputs(ids, mask, positions, torch.arange(columns, device=device), own)
        return Hooks(self.network).forward(inputs, visits)

    def _carried(self, seen: Seen) -> bool:
        """Whether a block's output follows what is written between attention and the MLP."""
        names = ("block_mid", "mlp_output", "block_output")
        written = self._forward([COMPONENTS.get(name) for name in names], edit=lambda t: t + t.flip(-1))
        for layer in written["block_mid"]:
            middle, mlp, leaving = (written[name][layer] - seen.at(name, layer) for name in names)
            if not seen.close(middle + mlp, leaving):
                return False
        return True

    def _promises(self) -> str:
        """Of a family that is not known: whether it may be run token by token, and in padded batches."""
        ids = tokens(self.checkpoint.vocab)
        whole = self._logits(ids, torch.ones_like(ids))[0]
        cache = fresh(self.network)
        self._logits(ids[:, :2], torch.ones(1, 2, dtype=torch.long), cache)
        stepped = self._logits(ids[:, 2:], torch.ones_like(ids), cache)[0, -1]
        if not close(stepped, whole[-1], self.tolerance):
            return "its logits after a step from the cache are not those of the whole text"
        both = torch.cat((ids, torch.cat((torch.zeros_like(ids[:, :1]), ids[:, :2]), dim=1)))
        mask = torch.tensor([[1, 1, 1], [0, 1, 1]])
        padded = self._logits(both, mask)
        if not close(padded[1, 1:], whole[:2], self.tolerance):
            return "a row's logits in a padded batch are not those of the row alone"
        return ""

    def _logits(self, ids: Tensor, mask: Tensor, cache: Cache | None = None) -> Tensor:
        return self._run(ids, mask, [Visit("", "output", None, {"logits": lambda t: t})], cache)["logits"].float()


def _only_row(value: Tensor) -> Tensor:
    return value[0]


def refused(verdict: Verdict) -> Iterator[tuple[str, str]]:
    """The components a verdict refuses, with the reasons."""
    for name, finding in verdict.findings.items():
        if finding.proof is Proof.REFUSED:
            yield name, finding.reason
