"""Recurrent mixers: what their recurrence is given, what it gives, and the state it keeps.

A mixer's arithmetic is a function of its module's file. While a call looks into a mixer, that function leads its
arguments and its result through the mixer's taps. A state in the middle of a prompt is in no tensor of the model: it
is made again from what the recurrence was given, for the lanes and columns that are asked for.

States are [n, Hv, K, U] here, whichever way a family lays them out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from causalab_mini.engine.contract import Inputs, Visit
from causalab_mini.engine.families import Family, tap_name
from causalab_mini.engine.taps import Tap

PARTS = ("key", "value", "decay", "beta", "query", "z")

Kernel = Callable[..., Any]
Pass = Callable[[str, Tensor], Tensor]
"""Leads a part [L, T, …] through its tap, if that is open: the part as it goes on."""


@dataclass(frozen=True)
class Recurrence:
    """One kind of mixer.

    `kernels`: by the name of the function they stand in for, wrappers that lead its arguments through taps. The state
    follows S ← exp(decay)·S + key ⊗ beta·(value − memory): the memory is what S holds at the key already if `delta`,
    else nothing. `unit`: keys are brought to length 1 first. `stored` lays a state out as the family does, `seen` back.
    """

    kernels: Mapping[str, Callable[[Kernel, Pass], Kernel]]
    delta: bool = False
    unit: bool = False
    turned: bool = False
    flat: bool = False

    def stored(self, state: Tensor) -> Tensor:
        """A state [n, Hv, K, U] in the family's own layout."""
        return state[..., 0] if self.flat else state.transpose(-1, -2) if self.turned else state

    def seen(self, state: Tensor) -> Tensor:
        """The same the other way round."""
        return state[..., None] if self.flat else state.transpose(-1, -2) if self.turned else state

    def nothing(self, given: Mapping[str, Tensor]) -> Tensor:
        """The state [n, Hv, K, U] that a text begins with."""
        keys, values = given["key"], given["value"]
        return values.new_zeros(values.shape[0], values.shape[2], keys.shape[-1], values.shape[-1])

    def states(self, given: Mapping[str, Tensor], initial: Tensor) -> Generator[Tensor]:
        """The state [n, Hv, K, U] after every column of `given` (parts [n, T, heads, …], fp32) from `initial` on."""
        state = initial.float()
        heads = state.shape[1]
        keys = self._directions(given["key"], heads)
        for column in range(keys.shape[1]):
            key, value, beta = keys[:, column, ..., None], given["value"][:, column], given["beta"][:, column]
            decay = given["decay"][:, column]
            state = state * decay.exp().reshape(*decay.shape[:2], -1, 1)
            memory = (state * key).sum(-2) if self.delta else torch.zeros_like(value)
            state = state + key * ((value - memory) * beta[..., None])[..., None, :]
            yield state

    def read(self, given: Mapping[str, Tensor], states: Tensor, skip: Tensor | None = None) -> Tensor:
        """What heads read of `states` [n, T, Hv, K, U] with their queries: z [n, T, Hv, U]. `skip` [Hv]: of values."""
        queries = self._directions(given["query"], states.shape[2])
        found = (states * queries[..., None]).sum(-2)
        if self.unit:
            found = found * states.shape[-2] ** -0.5
        return found if skip is None else found + given["value"] * skip[:, None].float()

    def _directions(self, vectors: Tensor, heads: int) -> Tensor:
        """Keys or queries [n, T, Hk, K] for every value head, of length 1 where the recurrence brings them to that."""
        if self.unit:
            vectors = vectors * torch.rsqrt((vectors * vectors).sum(-1, keepdim=True) + 1e-6)
        return vectors.repeat_interleave(heads // vectors.shape[2], dim=2)


def _gated_delta(kernel: Kernel, led: Pass) -> Kernel:
    def run(query: Tensor, key: Tensor, value: Tensor, *, g: Tensor, beta: Tensor, **options: object) -> object:
        key, value, g, beta = led("key", key), led("value", value), led("decay", g), led("beta", beta)
        out, state = kernel(led("query", query), key, value, g=g, beta=beta, **options)
        return led("z", out), state

    return run


def _scan(kernel: Kernel, led: Pass) -> Kernel:
    """Mamba-2 over several columns: x [L, T, H, P], dt [L, T, H], A [H], B and C [L, T, G, N]."""

    def run(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, **options: Any) -> object:
        low, high = options.get("dt_limit", (0.0, float("inf")))
        beta = softplus(dt + options["dt_bias"]).clamp(low, high)
        b, x = led("key", b), led("value", x)
        led("decay", beta.float() * a)
        led("beta", beta)
        found = kernel(x, dt, a, b, led("query", c), **options)
        out, *rest = found if isinstance(found, tuple) else (found,)
        out = led("z", cast(Tensor, out))
        return (out, *rest) if isinstance(found, tuple) else out

    return run


def _scan_step(kernel: Kernel, led: Pass) -> Kernel:
    """Mamba-2 over one column: x and dt [L, H, P], A [H, P, N], B and C [L, G, N]."""

    def run(
        state: Tensor, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, *args: Any, **options: Any
    ) -> Tensor:
        beta = softplus(dt + options["dt_bias"])[..., 0]
        b, x = led("key", b[:, None])[:, 0], led("value", x[:, None])[:, 0]
        led("decay", (beta.float() * a[:, 0, 0])[:, None])
        led("beta", beta[:, None])
        out = kernel(state, x, dt, a, b, led("query", c[:, None])[:, 0], *args, **options)
        return led("z", out[:, None])[:, 0]

    return run


def _selective(kernel: Kernel, led: Pass) -> Kernel:
    """Mamba over several columns: x and dt [L, I, T], A [I, N], B and C [L, N, T]."""

    def run(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, **options: Any) -> object:
        beta = softplus(dt + options["delta_bias"][:, None]).float().transpose(1, 2)
        led("key", b.transpose(1, 2)[:, :, None])
        led("value", x.transpose(1, 2)[..., None])
        led("decay", beta[..., None] * a)
        led("beta", beta)
        return kernel(x, dt, a, b, c, **options)

    return run


def _selective_step(kernel: Kernel, led: Pass) -> Kernel:
    """Mamba over one column: x and dt [L, I], A [I, N], B and C [L, N]; the state is changed in place."""

    def run(state: Tensor, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, *args: Any, **options: Any) -> object:
        beta = softplus(dt + options["dt_bias"]).float()[:, None]
        led("key", b[:, None, None])
        led("value", x[:, None, :, None])
        led("decay", beta[..., None] * a)
        led("beta", beta)
        return kernel(state, x, dt, a, b, *args, **options)

    return run


RECURRENCES: dict[str, Recurrence] = {
    "Gated DeltaNet": Recurrence(
        {"torch_chunk_gated_delta_rule": _gated_delta, "torch_recurrent_gated_delta_rule": _gated_delta},
        delta=True,
        unit=True,
    ),
    "Mamba-2": Recurrence({"mamba2_chunk_scan": _scan, "mamba2_selective_state_update": _scan_step}, turned=True),
    "Mamba": Recurrence(
        {"mamba_selective_scan": _selective, "mamba_selective_state_update": _selective_step}, flat=True
    ),
}


def attach(model: nn.Module, family: Family) -> None:
    """Give every recurrent mixer its taps."""
    for layer, mixer in recurrent(model, family).items():
        for part in PARTS:
            mixer.add_module(tap_name(f"linear_{part}"), Tap(f"linear_{part}", layer).eval())


def recurrent(model: nn.Module, family: Family) -> dict[int, nn.Module]:
    """The recurrent mixers of a model, by the numbers of their blocks."""
    blocks = cast(nn.ModuleList, model.get_submodule(family.blocks))
    found = {layer: getattr(block, family.mixer, None) for layer, block in enumerate(blocks) if family.mixer}
    return {layer: mixer for layer, mixer in found.items() if mixer is not None}


@contextmanager
def looked_into(model: nn.Module, family: Family, inputs: Inputs, visits: Sequence[Visit]) -> Generator[None]:
    """For as long as the block lasts, the mixers that visits stop in or that `inputs` ask about lead through taps."""
    own = recurrent(model, family)
    taps = (model.get_submodule(visit.module) for visit in visits if visit.module)
    layers = {tap.layer for tap in taps if isinstance(tap, Tap) and tap.part.startswith("linear_")} | set(inputs.given)
    if not layers:
        yield
        return
    inside: list[int] = []
    kernels = RECURRENCES[family.recurrence].kernels

    def led(part: str, value: Tensor) -> Tensor:
        layer = inside[-1]
        tap = cast(Tap, own[layer].get_submodule(tap_name(f"linear_{part}")))
        passed = tap.side_by_side(value)
        if layer in inputs.given:
            inputs.given[layer].parts[part] = passed
        return passed

    def when(kernel: Kernel, wrapped: Kernel) -> Kernel:
        return lambda *args, **options: (wrapped if inside else kernel)(*args, **options)

    with ExitStack() as open_ones:
        for layer in sorted(layers):
            open_ones.enter_context(_noting(own[layer], layer, inside))
        for file in {type(mixer).__module__ for mixer in own.values()}:
            names = vars(sys.modules[file])
            for name, wrapper in kernels.items():
                kernel = names[name]
                open_ones.callback(names.__setitem__, name, kernel)
                names[name] = when(kernel, wrapper(kernel, led))
        yield


@contextmanager
def _noting(mixer: nn.Module, layer: int, inside: list[int]) -> Generator[None]:
    """`layer` is the last of `inside` while `mixer` runs."""

    def entering(module: nn.Module, args: object) -> None:
        inside.append(layer)

    def leaving(module: nn.Module, args: object, out: object) -> None:
        inside.pop()

    handles = mixer.register_forward_pre_hook(entering), mixer.register_forward_hook(leaving)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
