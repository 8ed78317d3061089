"""Tiny random models of every family, saved as folders that the product can load like any other.

Seeded; weights are large enough that greedy choices differ between rows and an edit moves them. No imports of torch or
transformers at the top: tests of the light verbs share this tree.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests import recurrent

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from causalab_mini.engine.modules import Network

FAMILIES = ("llama", "qwen3", "gpt2", "gpt_neox")
MORE = ("mistral", "qwen2", "gemma2", "gemma3_text", "olmo2", "mixtral", "qwen2_moe", "bloom", "opt")
WIDTHS = (16, 64, 512)
DEPTH = 3
BOS, EOS, PAD = "<bos>", "<eos>", "<pad>"
VOCABULARY = 320
VARIANTS = {"mistral_sliding": "mistral", "gpt_neox_sequential": "gpt_neox", "opt_post": "opt"}
"""Builds of a family that compute differently: a window of 6 columns, attention before the MLP, norms after sums."""
WITH_BOS = ("llama", "mistral", "mistral_sliding", "gemma2", "gemma3_text", "mixtral", "opt", "opt_post")
WITH_PAD = ("llama", "qwen3", "qwen2")

TEXT = (
    "If today is Monday, then tomorrow is Tuesday. If today is Friday, then tomorrow is Saturday.",
    "Mary gave a book to John and John gave it to Anna. The capital of France is Paris.",
    "one two three four five six seven eight nine ten; January February March April May June July",
)

PROMPTS = (
    "If today is Monday, then tomorrow is",
    "The capital of",
    "Mary gave a book to John and then",
)
"""Prompts of unequal length under every tokenizer here."""


@cache
def heads(width: int) -> int:
    return {16: 2, 64: 4, 512: 8}[width]


def build(model_type: str, width: int, vocabulary: int = VOCABULARY) -> PreTrainedModel:
    """A seeded random model in fp32, eval mode, of a family or one of its variants."""
    import torch
    from transformers import (
        BloomConfig,
        Gemma2Config,
        Gemma3TextConfig,
        GPT2Config,
        GPTNeoXConfig,
        LlamaConfig,
        MistralConfig,
        MixtralConfig,
        Olmo2Config,
        OPTConfig,
        Qwen2Config,
        Qwen2MoeConfig,
        Qwen3Config,
    )
    from transformers.models.bloom.modeling_bloom import BloomForCausalLM
    from transformers.models.gemma2.modeling_gemma2 import Gemma2ForCausalLM
    from transformers.models.gemma3.modeling_gemma3 import Gemma3ForCausalLM
    from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
    from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXForCausalLM
    from transformers.models.llama.modeling_llama import LlamaForCausalLM
    from transformers.models.mistral.modeling_mistral import MistralForCausalLM
    from transformers.models.mixtral.modeling_mixtral import MixtralForCausalLM
    from transformers.models.olmo2.modeling_olmo2 import Olmo2ForCausalLM
    from transformers.models.opt.modeling_opt import OPTForCausalLM
    from transformers.models.qwen2.modeling_qwen2 import Qwen2ForCausalLM
    from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeForCausalLM
    from transformers.models.qwen3.modeling_qwen3 import Qwen3ForCausalLM

    special = {
        "bos_token_id": 0 if model_type in WITH_BOS else None,
        "eos_token_id": 1,
        "pad_token_id": 2 if model_type in WITH_PAD else None,
        "vocab_size": vocabulary,
        "initializer_range": 1 / math.sqrt(width),
    }
    grouped = {
        **special,
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "num_hidden_layers": DEPTH,
        "num_attention_heads": heads(width),
        "num_key_value_heads": heads(width) // 2,
        "max_position_embeddings": 256,
    }
    alike = {name: value for name, value in grouped.items() if name != "num_key_value_heads"}
    learned = {
        **special,
        "hidden_size": width,
        "ffn_dim": 2 * width,
        "num_hidden_layers": DEPTH,
        "num_attention_heads": heads(width),
        "max_position_embeddings": 256,
    }
    makers: dict[str, Callable[[], PreTrainedModel]] = {
        "llama": lambda: LlamaForCausalLM(LlamaConfig(**grouped)),
        "mistral": lambda: MistralForCausalLM(MistralConfig(**grouped, sliding_window=None)),
        "mistral_sliding": lambda: MistralForCausalLM(MistralConfig(**grouped, sliding_window=6)),
        "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**grouped)),
        # Heads wider than the hidden size divided by their number, and a tied head.
        "qwen3": lambda: Qwen3ForCausalLM(
            Qwen3Config(**grouped, head_dim=2 * width // heads(width), tie_word_embeddings=True)
        ),
        # Norms after attention and MLP, capped scores and logits, every other layer sees a window of 6 columns; the
        # scores' scale is no function of the heads' width.
        "gemma2": lambda: Gemma2ForCausalLM(
            Gemma2Config(
                **grouped,
                head_dim=2 * width // heads(width),
                query_pre_attn_scalar=width,
                sliding_window=6,
                attn_logit_softcapping=5.0,
                final_logit_softcapping=3.0,
            )
        ),
        # The same with norms of queries and keys and without caps; the block in the middle sees everything.
        "gemma3_text": lambda: Gemma3ForCausalLM(
            Gemma3TextConfig(
                **grouped,
                head_dim=2 * width // heads(width),
                query_pre_attn_scalar=width,
                sliding_window=6,
                layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            )
        ),
        # Norms after attention and MLP, and none before them.
        "olmo2": lambda: Olmo2ForCausalLM(Olmo2Config(**grouped)),
        # Four experts, of which every token passes two.
        "mixtral": lambda: MixtralForCausalLM(MixtralConfig(**grouped, num_local_experts=4)),
        # Every second block dense; the others with an expert that all tokens pass.
        "qwen2_moe": lambda: Qwen2MoeForCausalLM(
            Qwen2MoeConfig(
                **grouped,
                num_experts=4,
                num_experts_per_tok=2,
                moe_intermediate_size=width,
                shared_expert_intermediate_size=width,
                decoder_sparse_step=2,
            )
        ),
        # Biases of scores instead of positions; what attention and MLP hand out has the residual stream in it.
        "bloom": lambda: BloomForCausalLM(
            BloomConfig(**special, hidden_size=width, n_layer=DEPTH, n_head=heads(width))
        ),
        "opt": lambda: OPTForCausalLM(OPTConfig(**learned, word_embed_proj_dim=width)),
        "opt_post": lambda: OPTForCausalLM(
            OPTConfig(**learned, word_embed_proj_dim=width // 2, do_layer_norm_before=False)
        ),
        "gpt2": lambda: GPT2LMHeadModel(
            GPT2Config(**special, n_embd=width, n_layer=DEPTH, n_head=heads(width), n_positions=256)
        ),
        # Attention and MLP side by side on one input.
        "gpt_neox": lambda: GPTNeoXForCausalLM(GPTNeoXConfig(**alike, use_parallel_residual=True)),
        "gpt_neox_sequential": lambda: GPTNeoXForCausalLM(GPTNeoXConfig(**alike, use_parallel_residual=False)),
    }
    makers.update(recurrent.makers(grouped, width))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(width)
        model = makers[model_type]()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim == 1:
                    parameter.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


def write_tokenizer(folder: Path, model_type: str, texts: Sequence[str] = TEXT, vocabulary: int = VOCABULARY) -> None:
    """A byte-level BPE with the merges that `texts` suggest; Llama's puts a BOS in front."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[BOS, EOS, PAD],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    named = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": EOS}
    if model_type in WITH_BOS:
        named["bos_token"] = BOS
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{BOS} $A", special_tokens=[(BOS, tokenizer.token_to_id(BOS))]
        )
    if model_type in WITH_PAD:
        named["pad_token"] = PAD
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(named))


def write_folder(
    folder: Path, model_type: str, width: int, texts: Sequence[str] = TEXT, vocabulary: int = VOCABULARY
) -> Path:
    """Save model and tokenizer under `folder`, the way checkpoints are laid out."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    folder.mkdir(parents=True, exist_ok=True)
    build(model_type, width, vocabulary).save_pretrained(folder)
    write_tokenizer(folder, model_type, texts, vocabulary)
    return folder


def encode(folder: Path, text: str) -> list[int]:
    """The ids of `text` by the folder's tokenizer."""
    from tokenizers import Tokenizer

    return Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids


@pytest.fixture(scope="session")
def family_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int], Path]:
    """`family_folder(model_type, width)`: the folder of that model, written once a session."""

    @cache
    def folder(model_type: str, width: int) -> Path:
        return write_folder(tmp_path_factory.mktemp("families") / f"{model_type}-{width}", model_type, width)

    return folder


@pytest.fixture(scope="session")
def family_network(family_folder: Callable[[str, int], Path]) -> Callable[..., Network]:
    """`family_network(model_type, width, dtype="fp32")`: the same, loaded by the product on the CPU."""
    from causalab_mini.engine.modules import load

    @cache
    def network(model_type: str, width: int, dtype: str = "fp32") -> Network:
        return load(family_folder(model_type, width), dtype, None, "cpu")

    return network
