"""tokens: how texts tokenize."""

from __future__ import annotations

from typing import Annotated

import typer

from causalab_mini.cli.options import AsJson, Debug, Weights, voice_of

EXAMPLES = ('causalab-mini tokens causalab-mini/weekdays-llama "If today is Thursday, tomorrow is" " Friday"',)


def tokens(
    context: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="A model, as a document names it.", show_default=False)],
    texts: Annotated[list[str], typer.Argument(metavar="TEXT…", help="Texts to tokenize.", show_default=False)],
    revision: Annotated[str, typer.Option("--revision", help="The revision of a hub model.")] = "main",
    weights: Weights = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show the tokens of texts: index in the prompt frame, id, text. The automatic prefix has no index."""
    from causalab_mini.checkpoint.resolve import resolve

    checkpoint = resolve(key, revision, weights=weights)
    blocks: list[str] = []
    answer: list[dict[str, object]] = []
    for text in texts:
        encoded = checkpoint.encode(text)
        rows = [
            (None if column < encoded.prefix else column - encoded.prefix, token, checkpoint.token_text(token))
            for column, token in enumerate(encoded.ids)
        ]
        blocks.append(
            f"{text!r}: {encoded.length} tokens" + (f" after a prefix of {encoded.prefix}" if encoded.prefix else "")
        )
        blocks += [
            f"  {'prefix' if index is None else index!s:>6}  {token:>6}  {piece!r}" for index, token, piece in rows
        ]
        answer.append(
            {
                "text": text,
                "length": encoded.length,
                "prefix": encoded.prefix,
                "tokens": [{"index": index, "id": token, "text": piece} for index, token, piece in rows],
            }
        )
    voice_of(context).answer("\n".join(blocks), {"ok": True, "texts": answer})
