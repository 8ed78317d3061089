"""Chats become the text and ids that transformers makes of them, and their turns are found in it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests import chats
from tests.unit.checkpoint import small

from causalab_mini.checkpoint.facts import Checkpoint
from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.checkpoint.template import Template
from causalab_mini.checkpoint.text import Text
from causalab_mini.checkpoint.turns import turns
from causalab_mini.errors import PlanRefusal
from causalab_mini.vocabulary.message import Chat, Message

TALKS: tuple[Chat, ...] = (
    (Message("user", "If today is Friday"),),
    (Message("user", " is is "), Message("assistant", "is"), Message("user", "is")),
    (Message("user", "naïve 你好\n\n ok"), Message("assistant", ""), Message("user", "<|im_end|> a</s>b")),
)
SYSTEM: Chat = (Message("system", "Be brief."), Message("user", "Hi"))
TEMPLATES: Mapping[str, str] = {
    "chatml": chats.CHATML,
    "a marker first": chats.WITH_MARKER,
    "trimmed": chats.TRIMMED,
    "folded": chats.FOLDED,
    "json": "{{ messages | tojson(indent=2) }}\n  {%- if unknown_token %}x{% endif %}{{ unk_token }}",
    "a namespace and a break": (
        "{% set n = namespace(i=0) %}{% for m in messages %}{% if n.i > 4 %}{% break %}{% endif %}"
        "{% set n.i = n.i + 1 %}{{ n.i }}{{ m['content'] }}\n{% endfor %}"
    ),
}


def checkpoint(folder: Path, template: object, **named: object) -> Checkpoint:
    """A folder whose tokenizer puts `<s>` before a text."""
    config = {**small.NAMED, "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": template, **named}
    return resolve(str(small.folder(folder, named=config)))


def said(text: Text) -> list[tuple[str, str]]:
    return [(segment.name, text.text[segment.start : segment.end]) for segment in text.segments]


def assert_equal(found: Checkpoint, talks: tuple[Chat, ...]) -> None:
    from transformers import AutoTokenizer

    theirs = AutoTokenizer.from_pretrained(found.folder)
    for talk in talks:
        messages = [vars(message) for message in talk]
        wanted = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        ids = theirs.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
        assert found.template is not None
        assert found.template.render(talk) == wanted
        encoding = found.tokenizer.own(wanted)
        assert encoding.ids == ids


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_same_text_and_ids_as_transformers(tmp_path: Path, name: str) -> None:
    talks = (*TALKS, SYSTEM) if name not in ("trimmed",) else TALKS
    assert_equal(checkpoint(tmp_path, TEMPLATES[name]), talks)


@pytest.mark.parametrize("form", ["file", "text", "list", "file before config"])
def test_where_a_template_stands(tmp_path: Path, form: str) -> None:
    others = [{"name": "tool_use", "template": "x"}, {"name": "default", "template": chats.CHATML}]
    given = {"file": None, "text": chats.CHATML, "list": others, "file before config": "x"}[form]
    found = checkpoint(tmp_path, given)
    if form.startswith("file"):
        (tmp_path / "chat_template.jinja").write_text(chats.CHATML)
    assert_equal(found, TALKS)
    assert said(found.encode(SYSTEM)) == [("system", "Be brief."), ("user", "Hi")]


@pytest.mark.smollm2
@pytest.mark.skipif("CAUSALAB_SMOLLM2" not in os.environ, reason="CAUSALAB_SMOLLM2 names no folder")
def test_a_real_template() -> None:
    found = resolve("HuggingFaceTB/SmolLM2-135M-Instruct", weights=Path(os.environ["CAUSALAB_SMOLLM2"]))
    assert_equal(found, (*TALKS, SYSTEM))
    text = found.encode(TALKS[1])
    assert said(text) == [("user", " is is "), ("assistant", "is"), ("user", "is")]
    assert text.prefix == 0
    assert text.ids.count(found.pad_id) == 4


def test_a_marker_the_template_writes_is_the_prefix(tmp_path: Path) -> None:
    text = checkpoint(tmp_path, chats.WITH_MARKER).encode(TALKS[0])
    assert (text.ids[0], text.prefix, text.spans[0]) == (0, 1, (0, 0))
    assert text.ids[1] != 0
    assert text.text[slice(*text.spans[1])] == "<"


def test_a_marker_the_template_does_not_write_is_not_added(tmp_path: Path) -> None:
    text = checkpoint(tmp_path, chats.CHATML).encode(TALKS[0])
    assert text.ids[0] != 0
    assert text.prefix == 0


@pytest.mark.parametrize(
    ("template", "talk", "hint"),
    [
        (chats.WITH_MARKER, "<s>", None),
        ("{{ bos_token }}{{ bos_token }}" + chats.CHATML, "x", "out of the template"),
        (
            "{{ bos_token }}{{ messages[0].content }}",
            "<s>x",
            "leave '<s>' out of message 0: the chat template writes it",
        ),
    ],
)
def test_a_marker_twice_in_a_row_is_refused(tmp_path: Path, template: str, talk: str, hint: str | None) -> None:
    found = checkpoint(tmp_path, template)
    if hint is None:
        assert found.encode((Message("user", talk),)).ids.count(0) == 2
        return
    with pytest.raises(PlanRefusal, match="begins with '<s>' twice in a row") as caught:
        found.encode((Message("user", talk),))
    assert caught.value.problems[0].hint is not None
    assert hint in caught.value.problems[0].hint


def test_turns_are_contents_without_markers(tmp_path: Path) -> None:
    found = checkpoint(tmp_path, chats.WITH_MARKER)
    text = found.encode(TALKS[1])
    assert said(text) == [("user", " is is "), ("assistant", "is"), ("user", "is")]
    assert [segment.start for segment in text.segments] == sorted({segment.start for segment in text.segments})
    assert text.text[: text.segments[0].start] == "<s><|im_start|>user\n"
    assert text.text[text.segments[2].end :] == "<|im_end|>\n<|im_start|>assistant\n"


def test_a_trimmed_turn_is_what_is_left(tmp_path: Path) -> None:
    assert said(checkpoint(tmp_path, chats.TRIMMED).encode(TALKS[1])) == [
        ("user", "is is"),
        ("assistant", "is"),
        ("user", "is"),
    ]


def test_a_part_left_out_and_a_turn_inside_another(tmp_path: Path) -> None:
    talk = (*SYSTEM, Message("assistant", "<think>hm</think>Hello"), Message("user", "Bye"))
    text = checkpoint(tmp_path, chats.FOLDED).encode(talk)
    assert said(text) == [("system", "Be brief."), ("user", "Hi"), ("assistant", "Hello"), ("user", "Bye")]
    assert "<|im_start|>[Be brief.]\nHi<|im_end|>" in text.text


def test_turns_that_are_empty_or_left_out_keep_their_number(tmp_path: Path) -> None:
    talk = (Message("user", ""), Message("note", "unseen"), Message("user", "seen"))
    template = "{% for m in messages if m.role == 'user' %}{% if m.content %}[{{ m.content }}]{% endif %}{% endfor %}"
    assert said(checkpoint(tmp_path, template).encode(talk)) == [("user", ""), ("note", ""), ("user", "seen")]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ messages[0].content | upper }}", r"rewrites message 0 \('user'\): its content becomes 'HI THERE'"),
        ("{{ messages[0].content }}|{{ messages[0].content }}", "its content stands 2 times in it"),
        ("{{ messages[0].content | length }}{{ messages[0].content }}", "its content changes what stands around it"),
        ("{{ strftime_now('%d') }}{{ messages[0].content }}", "reads the clock"),
        ("{{ ['a', 'b'] | random }}{{ messages[0].content }}", "draws at random"),
        ("{{ raise_exception('no such order') }}", "refuses the messages: no such order"),
        ("{{ now() }}", "refuses the messages: 'now' is undefined"),
        ("{{ messages[0].content + 1 }}", "fails: TypeError"),
        ("{{ messages.append(1) }}", "refuses the messages: access to attribute 'append'"),
        ("{{ messages[0].__class__.__mro__ }}", "refuses the messages: access to attribute '__class__'"),
        ("{% for m in messages %}", "cannot be read: line 1"),
        ("{{ '' }}", "a text without tokens"),
        ([{"name": "tool_use", "template": "x"}], "none is called 'default': 'tool_use'"),
        (None, "has no chat template"),
    ],
)
def test_refusals(tmp_path: Path, template: object, message: str) -> None:
    with pytest.raises(PlanRefusal, match=message):
        checkpoint(tmp_path, template).encode((Message("user", "Hi there"),))


def test_a_template_may_know_of_a_clock_it_does_not_read(tmp_path: Path) -> None:
    template = "{% if tools %}{{ strftime_now('%Y') }}{% endif %}" + chats.CHATML
    assert said(checkpoint(tmp_path, template).encode(SYSTEM)) == [("system", "Be brief."), ("user", "Hi")]


def test_no_mark_is_taken_that_the_chat_holds() -> None:
    template = Template(chats.CHATML, {})
    talk = (Message("user", "\ue000\ue001"), Message("assistant", "\ue002"))
    text = template.render(talk)
    assert [text[turn.start : turn.end] for turn in turns(talk, text, template.render)] == ["\ue000\ue001", "\ue002"]


def test_a_template_counts_among_the_files_that_decide(tmp_path: Path) -> None:
    found = checkpoint(tmp_path, None)
    before = found.digest()
    (tmp_path / "chat_template.jinja").write_text(chats.CHATML)
    assert resolve(str(tmp_path)).digest() != before
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["chat_template"] is None
