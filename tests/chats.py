"""Small chat checkpoints: a random model whose tokenizer has turn markers, and templates of the kinds in use."""

from __future__ import annotations

import json
from pathlib import Path

from tests import families

OPEN, CLOSE = "<|im_start|>", "<|im_end|>"
CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
WITH_MARKER = "{{ bos_token }}" + CHATML
"""The same after a BOS."""
TRIMMED = """{{- bos_token }}
{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('turns must alternate user/assistant') }}
    {%- endif %}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}
{{ '<|im_start|>' ~ role ~ '\\n' ~ message['content'] | trim ~ '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
{{ '<|im_start|>model\\n' }}
{%- endif %}
"""
"""Trims contents, renames the assistant, insists on an order."""
FOLDED = """{% if messages[0]['role'] == 'system' %}
{% set system = '[' ~ messages[0]['content'] ~ ']\\n' %}
{% set rest = messages[1:] %}
{% else %}
{% set system = '' %}
{% set rest = messages %}
{% endif %}
{{ bos_token }}
{% for message in rest %}
{% if message.role == 'user' %}
<|im_start|>{{ system if loop.first }}{{ message.content }}<|im_end|>
{% else %}
{% generation %}{{ message.content.split('</think>')[-1] }}{% endgeneration %}{{ eos_token }}
{% endif %}
{% endfor %}"""
"""Puts the system turn into the first user's, and leaves out what an assistant thought."""


def write_folder(
    folder: Path,
    template: str | None = WITH_MARKER,
    pad: str = CLOSE,
    model_type: str = "llama",
    in_config: bool = False,
) -> Path:
    """A checkpoint with turn markers among its tokens, its pad token `pad`, and `template`, in its own file or not.

    The same weights whatever the template and the pad token.
    """
    from tokenizers import Tokenizer

    families.write_folder(folder, model_type, 64)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    text = tokenizer.to_str()
    for old, new in ((tokenizer.id_to_token(318), OPEN), (tokenizer.id_to_token(319), CLOSE)):
        assert old is not None, new
    tokens = json.loads(text)
    vocabulary, merges = tokens["model"]["vocab"], tokens["model"]["merges"]
    dropped = [token for token, number in vocabulary.items() if number >= 318]
    tokens["model"]["vocab"] = {token: number for token, number in vocabulary.items() if number < 318}
    tokens["model"]["merges"] = [pair for pair in merges if "".join(pair) not in dropped]
    tokenizer = Tokenizer.from_str(json.dumps(tokens))
    tokenizer.add_special_tokens([OPEN, CLOSE])
    tokenizer.save(str(folder / "tokenizer.json"))
    config["pad_token"] = pad
    if in_config:
        config["chat_template"] = template
    elif template is not None:
        (folder / "chat_template.jinja").write_text(template)
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
