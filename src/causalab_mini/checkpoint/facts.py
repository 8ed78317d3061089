"""A checkpoint without its weights: where its files are, what its config says, how it tokenizes.

Torch-free. Refuses to know documents, rows and modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from causalab_mini.checkpoint import answers, blocks, files, naming, template
from causalab_mini.checkpoint.answers import AnswerProblem
from causalab_mini.checkpoint.config import Config
from causalab_mini.checkpoint.files import Json
from causalab_mini.checkpoint.template import Template
from causalab_mini.checkpoint.text import Text
from causalab_mini.checkpoint.tokenizer import Tokenizer
from causalab_mini.checkpoint.verdicts import VIEWS, Proof, Verdict
from causalab_mini.errors import ModelUnavailable, PlanRefusal, Problem
from causalab_mini.vocabulary.components import COMPONENTS, Component, Width
from causalab_mini.vocabulary.message import Chat
from causalab_mini.vocabulary.metric import TokenForm

Source = Literal["bundled", "folder", "hub", "weights"]


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint. `key` and `revision` are the document's; `source` says where the files came from.

    `resolved` is the commit of a hub checkpoint, None for a folder, which its digest names. `verdict`: what a self-test
    of the weights found, where one has been run.
    """

    key: str
    revision: str
    folder: Path
    source: Source
    resolved: str | None
    config: Config
    tokenizer: Tokenizer
    verdict: Verdict | None = None

    @property
    def model_type(self) -> str:
        """The family, as transformers calls it."""
        return self.config.model_type

    @property
    def supported(self) -> bool:
        """Whether this family's places can be read and written: it is known, or a self-test proved some of them."""
        return self.config.supported or (self.verdict is not None and not self.verdict.whole)

    @property
    def depth(self) -> int:
        """How many blocks."""
        return self.config.depth

    @property
    def hidden(self) -> int:
        """The width of the residual stream."""
        return self.config.hidden

    @property
    def vocab(self) -> int:
        """How many tokens the head scores."""
        return self.config.vocab

    @property
    def heads(self) -> int:
        """Query heads of a block."""
        return self.config.heads

    @property
    def kv_heads(self) -> int:
        """Key and value heads of a block."""
        return self.config.kv_heads

    @property
    def head_dim(self) -> int:
        """The width of one head."""
        return self.config.head_dim

    @property
    def context(self) -> int | None:
        """How many positions the model was made for, when the config says so."""
        return self.config.context

    @property
    def generation_config(self) -> Mapping[str, Json]:
        """The checkpoint's generation_config as it stands."""
        return self.config.generation_config

    @property
    def prefix(self) -> tuple[int, ...]:
        """The ids the tokenizer puts before any text."""
        return self.tokenizer.prefix

    @cached_property
    def eos_ids(self) -> frozenset[int]:
        """The ids that end a text: those of the generation_config, the config and the tokenizer together."""
        own = self.tokenizer.eos_id
        return self.config.eos_ids | ({own} if own is not None and own < self.vocab else frozenset())

    @cached_property
    def pad_id(self) -> int:
        """The id that fills padding: the tokenizer's, else the config's, else an end id, else 0."""
        own = self.tokenizer.pad_id
        if own is not None and own < self.vocab:
            return own
        return self.config.pad_id if self.config.pad_id is not None else min(self.eos_ids, default=0)

    def width(self, component: Component) -> int:
        """How many entries the last axis of `component` has; of a pattern, for each key."""
        sizes = {
            Width.TOKEN: 1,
            Width.HIDDEN: self.hidden,
            Width.HEADS: self.heads * self.head_dim,
            Width.KV_HEADS: self.kv_heads * self.head_dim,
            Width.NEURONS: self.config.neurons,
            **self._recurrent_widths,
            Width.EXPERTS: self.config.experts,
            Width.CHOSEN: self.config.chosen,
            Width.PATTERN: self.heads,
            Width.VOCABULARY: self.vocab,
        }
        return sizes[component.width]

    @property
    def _recurrent_widths(self) -> dict[Width, int]:
        own = self.config.recurrent
        if own is None:
            return dict.fromkeys((Width.STATE_KEYS, Width.STATE_VALUES, Width.STATE_HEADS, Width.STATE), 0)
        return {
            Width.STATE_KEYS: own.key_heads * own.key_width,
            Width.STATE_VALUES: own.value_heads * own.value_width,
            Width.STATE_HEADS: own.value_heads,
            Width.STATE: own.value_heads * own.key_width * own.value_width,
        }

    def heads_of(self, component: Component) -> int:
        """How many heads the last axis of `component` is made of: keys and values have heads of their own."""
        own = self.config.recurrent
        if component.recurrent and own is not None:
            return own.key_heads if component.width is Width.STATE_KEYS else own.value_heads
        return self.kv_heads if component.width is Width.KV_HEADS else self.heads

    def lacks(self, component: Component, layer: int | None = None) -> str | None:
        """Why this checkpoint (in block `layer`, where it matters) has no such value, or None when it has one."""
        own = self.config.recurrent
        mixer = self.config.mixer
        if own is None or mixer is None:
            if component.recurrent:
                return "its blocks mix tokens by attention alone"
        elif component.recurrent:
            part = component.name.removeprefix("linear_attention_")
            if part not in (*mixer.parts, "state", "state_in", "output"):
                return f"{mixer.kind} has nothing of its own that could be called so"
            if layer is not None and layer not in own.layers:
                return f"block {layer} mixes tokens by attention; those with {mixer.kind} are {_numbers(own.layers)}"
        elif len(own.layers) == self.depth and (component.attention or component.mlp):
            return f"its blocks have {mixer.kind} in them and nothing else"
        elif component.attention and layer in own.layers:
            others = tuple(number for number in range(self.depth) if number not in own.layers)
            return f"block {layer} mixes tokens by {mixer.kind}; those with attention are {_numbers(others)}"
        capability = self.config.capability
        if component.pattern and capability is not None and not capability.patterns:
            return "what its attention does with queries and keys cannot be looked at"
        if component.name == "block_mid" and self.config.parallel:
            return "its blocks run attention and the MLP side by side on one input, with nothing between them"
        return self.config.lacking.get(component.name) or self._lacks_in_mlp(component, layer) or self._found(component)

    def untested(self) -> Checkpoint:
        """The same without a verdict: what its config alone says."""
        return replace(self, verdict=None)

    def _found(self, component: Component) -> str | None:
        """Why a self-test of the weights speaks against a component; of an unknown family, lack of proof does."""
        if self.verdict is None:
            return None
        known = self.config.capability is not None
        if self.verdict.whole and not known:
            return self.verdict.whole
        finding = self.verdict.of(component.name)
        if finding.proof is Proof.REFUSED:
            return finding.reason
        if finding.proof is Proof.UNPROVEN and not known:
            return f"its family is not known, and the self-test could not prove it: {finding.reason}"
        return None

    def blind(self) -> str | None:
        """Why the residual stream cannot be looked at through the final norm and the head, or None where it can."""
        finding = None if self.verdict is None else self.verdict.of(VIEWS)
        if finding is None or finding.proof is Proof.PROVED:
            return None
        known = self.config.capability is not None
        return None if known and finding.proof is Proof.UNPROVEN else finding.reason

    def _lacks_in_mlp(self, component: Component, layer: int | None) -> str | None:
        mixtures = self.config.mixtures
        mixed = mixtures.issuperset(range(self.depth)) if layer is None else layer in mixtures
        if component.name in blocks.INSIDE_MLP and mixed:
            return blocks.EXPERTS
        if component.name in blocks.ROUTING and not mixtures:
            return blocks.DENSE if self.config.supported else blocks.UNKNOWN
        if component.name in blocks.ROUTING and layer is not None and layer not in mixtures:
            return f"the MLP of block {layer} is dense; mixtures of experts are {_numbers(tuple(sorted(mixtures)))}"
        return None

    @property
    def bare(self) -> bool:
        """Whether embeddings enter the first block as they are."""
        return self.config.capability is not None and self.config.capability.bare

    def fixed(self, component: Component) -> str | None:
        """Why a value of this checkpoint can only be read, where others of its name can be written."""
        mixer = self.config.mixer
        if component.recurrent and mixer and component.name.removeprefix("linear_attention_") in mixer.fixed:
            return f"{mixer.kind} makes it of other values on the way"
        return None

    def value_of(self, component: Component) -> str:
        """A name for the value a component is here: without a gate, a neuron's output is its activation."""
        capability = self.config.capability
        if component.name == "mlp_activation" and capability is not None and not capability.gated:
            return "mlp_neuron_output"
        return component.identity

    def components(self) -> tuple[str, ...]:
        """Names of the components that resolve on this checkpoint."""
        if not self.supported:
            return ()
        return tuple(component.name for component in COMPONENTS if self.lacks(component) is None)

    @cached_property
    def template(self) -> Template | None:
        """The chat template, if the checkpoint has one."""
        return template.load(self.folder)

    def encode(self, prompt: str | Chat) -> Text:
        """A text or a chat as the model sees it, prefix first.

        `PlanRefusal` where it has no tokens the model knows, and for a chat without a template to render it.
        """
        if isinstance(prompt, str):
            encoded = self.tokenizer.encode(prompt)
        elif self.template is None:
            message = f"{naming.shown(self)} has no chat template, so its row's messages cannot become a text"
            raise PlanRefusal(Problem("", message, "write the row as one text, or use a chat checkpoint"))
        else:
            encoded = self.tokenizer.encode_chat(prompt, self.template)
        strange = next((token for token in encoded.ids if token >= self.vocab), None)
        if strange is not None:
            found = self.tokenizer.token_text(strange)
            message = f"token {strange} ({found!r}) is past the model's vocabulary of {self.vocab}"
            raise PlanRefusal(Problem("", message, f"leave {found!r} out of the text"))
        return encoded

    def tokens(self, text: str) -> tuple[int, ...]:
        """The ids of `text` as it stands, no special tokens added."""
        return tuple(self.tokenizer.own(text).ids)

    def decode(self, ids: tuple[int, ...]) -> str:
        """The text of `ids`, special tokens included."""
        return self.tokenizer.decode(ids)

    def token_text(self, token: int) -> str:
        """The text of one token, its leading space kept."""
        return self.tokenizer.token_text(token)

    def answer(self, value: str | int, form: TokenForm, prompt: str) -> int | AnswerProblem:
        """The id of an answer cell's `value`, or why it is not one token."""
        return answers.answer(self.tokenizer, self.vocab, value, form, prompt)

    def weights(self) -> tuple[Path, ...]:
        """The safetensors files. `ModelUnavailable` when one is missing."""
        missing = files.missing_weights(self.folder)
        if missing:
            raise ModelUnavailable(f"{self.folder} lacks its weights: no {' and no '.join(missing[:3])}")
        return tuple(self.folder / name for name in files.weight_files(self.folder))

    @cached_property
    def file_digests(self) -> tuple[tuple[str, str], ...]:
        """(name, SHA-256) of every file that decides what the model computes, sorted. Reads the weights."""
        return tuple((name, files.file_digest(self.folder / name)) for name in files.relevant_files(self.folder))

    def digest(self) -> str:
        """One SHA-256 for all files that decide what the model computes. Reads the weights."""
        return files.folder_digest(self.file_digests)


def _numbers(layers: tuple[int, ...]) -> str:
    return ", ".join(map(str, layers))
