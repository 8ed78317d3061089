"""Text to tokens and back, from `tokenizer.json` alone, equal to what transformers' AutoTokenizer gives.

Knows the automatic prefix and character spans. Refuses to know rows and frames; how a chat becomes text is its
template's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Encoding
from tokenizers import Tokenizer as Backend

from causalab_mini.checkpoint import files
from causalab_mini.checkpoint.files import Json
from causalab_mini.checkpoint.template import Template
from causalab_mini.checkpoint.text import Text
from causalab_mini.checkpoint.turns import turns
from causalab_mini.errors import ModelUnavailable, PlanRefusal, Problem
from causalab_mini.vocabulary.message import Chat

_NAMED = ("bos_token", "eos_token", "unk_token", "pad_token")
_PROBE = "a"


@dataclass(frozen=True)
class Tokenizer:
    """A backend without padding, truncation or post-processing; `prefix` is what it would put before any text.

    Without a post-processor a token's span keeps its leading space, whatever the file says about trimming.
    """

    backend: Backend
    prefix: tuple[int, ...]
    bos_id: int | None
    eos_id: int | None
    pad_id: int | None

    def own(self, text: str) -> Encoding:
        """The tokens of `text` itself, nothing added."""
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise PlanRefusal(Problem("", "the text holds half a surrogate pair, which is no character"))
        return self.backend.encode(text, add_special_tokens=False)

    def encode(self, text: str) -> Text:
        """`text` as the model sees it: the prefix, then its own tokens.

        Refused: a text without tokens, and one whose first own token repeats the marker the tokenizer adds.
        """
        encoding = self.own(text)
        ids = (*self.prefix, *encoding.ids)
        if len(ids) == len(self.prefix):
            raise PlanRefusal(Problem("", "the text has no tokens"))
        marker = self._doubled(ids)
        if marker is not None:
            hint = f"leave '{marker}' out of the text: the tokenizer adds it" if self.prefix else "keep one of them"
            raise PlanRefusal(Problem("", f"the text begins with '{marker}' twice in a row", hint))
        spans = (*((0, 0) for _ in self.prefix), *encoding.offsets)
        return Text(text, ids, spans, len(self.prefix))

    def encode_chat(self, chat: Chat, template: Template) -> Text:
        """`chat` as the model sees it: what the template writes, and nothing added.

        A prefix that the template writes is the prefix all the same. Refused: a chat whose leading marker is doubled.
        """
        text = template.render(chat)
        encoding = self.own(text)
        ids = tuple(encoding.ids)
        if not ids:
            raise PlanRefusal(Problem("", "the checkpoint's chat template writes a text without tokens"))
        marker = self._doubled(ids)
        if marker is not None:
            guilty = next((number for number, message in enumerate(chat) if message.content.startswith(marker)), None)
            where = "the template" if guilty is None else f"message {guilty}"
            hint = f"leave '{marker}' out of {where}: the chat template writes it already"
            raise PlanRefusal(Problem("", f"the rendered chat begins with '{marker}' twice in a row", hint))
        prefix = len(self.prefix) if ids[: len(self.prefix)] == self.prefix else 0
        spans = (*((0, 0) for _ in range(prefix)), *encoding.offsets[prefix:])
        return Text(text, ids, spans, prefix, turns(chat, text, template.render))

    def _doubled(self, ids: tuple[int, ...]) -> str | None:
        """The leading marker, if it stands twice in a row."""
        second = max(len(self.prefix), 1)
        if len(ids) > second and ids[0] in {*self.prefix, self.bos_id} and ids[second] == ids[0]:
            return self.token_text(ids[0])
        return None

    def decode(self, ids: tuple[int, ...]) -> str:
        """The text of `ids`, special tokens included."""
        return self.backend.decode(list(ids), skip_special_tokens=False)

    def token_text(self, token: int) -> str:
        """The text of one token, its leading space kept; "" for an id without a token."""
        piece = self.backend.id_to_token(token)
        if piece is None:
            return ""
        text = self.decode((token,))
        return f" {text}" if piece.startswith("\u2581") and not text.startswith(" ") else text


def load(folder: Path) -> Tokenizer:
    """The tokenizer of the checkpoint in `folder`."""
    path = folder / files.TOKENIZER
    if not path.is_file():
        raise ModelUnavailable(f"{folder} has no {files.TOKENIZER}; other tokenizer files are not read")
    try:
        backend = Backend.from_file(str(path))
    except Exception as error:
        # the Rust side raises bare Exception
        raise ModelUnavailable(f"{path} is not a tokenizer: {error}") from error
    backend.no_padding()
    backend.no_truncation()
    config = files.read_optional(folder / files.TOKENIZER_CONFIG)
    named = files.read_optional(folder / files.SPECIAL_TOKENS)
    tokens = {name: config.get(name, named.get(name)) for name in _NAMED}
    _declare(backend, [*_numbered(config), *tokens.values(), *_extra(config)])
    prefix = _prefix(backend)
    backend.post_processor = None  # pyright: ignore[reportAttributeAccessIssue]
    bos, eos, pad = (_id(backend, tokens[name]) for name in ("bos_token", "eos_token", "pad_token"))
    return Tokenizer(backend, prefix, bos, eos, pad)


def _id(backend: Backend, token: Json) -> int | None:
    content = files.token_content(token)
    return None if content is None else backend.token_to_id(content)


def _numbered(config: dict[str, Json]) -> list[Json]:
    """The tokens a tokenizer_config adds by number, in that order."""
    table = config.get("added_tokens_decoder")
    entries = table.items() if isinstance(table, dict) else ()
    return [token for _, token in sorted(entries, key=lambda entry: (len(entry[0]), entry[0]))]


def _extra(config: dict[str, Json]) -> list[Json]:
    """The special tokens a tokenizer_config adds without a name."""
    extra = config.get("extra_special_tokens", config.get("additional_special_tokens"))
    return extra if isinstance(extra, list) else []


def _declare(backend: Backend, tokens: list[Json]) -> None:
    """Add the tokens that tokenizer.json does not know as added ones, as transformers does: no text splits them."""
    known = {token.content for token in backend.get_added_tokens_decoder().values()}
    for token in tokens:
        content = files.token_content(token)
        if content and content not in known:
            known.add(content)
            flags = token if isinstance(token, dict) else {}
            added = AddedToken(
                content,
                single_word=flags.get("single_word") is True,
                lstrip=flags.get("lstrip") is True,
                rstrip=flags.get("rstrip") is True,
                normalized=flags.get("normalized") is True,
            )
            if flags.get("special", True) is True:
                backend.add_special_tokens([added])
            else:
                backend.add_tokens([added])


def _prefix(backend: Backend) -> tuple[int, ...]:
    """The ids put before any text.

    tokenizer.json alone decides: transformers too ignores `add_bos_token` where that file is. An ending after every
    text is refused and not cut off, since a model that expects one would then see something it was not made for.
    """
    own = backend.encode(_PROBE, add_special_tokens=False).ids
    full = backend.encode(_PROBE, add_special_tokens=True).ids
    start = next((i for i in range(len(full)) if full[i : i + len(own)] == own), 0)
    after = full[start + len(own) :]
    if after:
        ending = " ".join(repr(backend.id_to_token(token)) for token in after)
        message = f"the tokenizer puts {ending} after every text, and a prompt that has ended cannot be continued"
        raise PlanRefusal(Problem("", message, f"take the ending out of the post_processor in {files.TOKENIZER}"))
    return tuple(full[:start])
