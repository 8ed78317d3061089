from pathlib import Path

import pytest
from tests.unit.checkpoint import small
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from causalab_mini.checkpoint import tokenizer
from causalab_mini.errors import ModelUnavailable, PlanRefusal


def loaded(path: Path, backend: Tokenizer | None = None, named: dict[str, object] | None = None) -> tokenizer.Tokenizer:
    return tokenizer.load(small.folder(path, backend, named=small.NAMED if named is None else named))


def test_the_prefix_stands_before_the_texts_own_tokens(tmp_path: Path) -> None:
    text = loaded(tmp_path).encode("If today is Friday")
    assert text.text == "If today is Friday"
    assert text.prefix == 1
    assert text.ids[0] == 0
    assert text.length == 4
    assert text.spans == ((0, 0), (0, 2), (2, 8), (8, 11), (11, 18))


def test_without_a_post_processor_there_is_no_prefix(tmp_path: Path) -> None:
    small_one = loaded(tmp_path, small.byte_level())
    assert small_one.prefix == ()
    assert small_one.encode("If today").spans == ((0, 2), (2, 8))


def test_naming_a_bos_does_not_add_one(tmp_path: Path) -> None:
    named = {**small.NAMED, "add_bos_token": True}
    assert loaded(tmp_path, small.byte_level(), named).prefix == ()


def test_tokens_of_one_character_cover_it_and_a_token_keeps_its_space(tmp_path: Path) -> None:
    text = loaded(tmp_path).encode("naïve 你好 ok")
    pieces = [text.text[start:end] for start, end in text.spans[1:]]
    assert pieces == ["na", "ï", "ï", "v", "e", " ", "你", "你", "好", "好", "好", " ok"]


def test_spans_do_not_depend_on_trimming(tmp_path: Path) -> None:
    backend = small.byte_level()
    trimmed = processors.Sequence([processors.ByteLevel(trim_offsets=True), small.template(backend, "<s> $A")])
    backend.post_processor = trimmed  # pyright: ignore[reportAttributeAccessIssue]
    assert loaded(tmp_path, backend).encode("If today is").spans == ((0, 0), (0, 2), (2, 8), (8, 11))


def test_padding_and_truncation_are_off(tmp_path: Path) -> None:
    backend = small.with_bos()
    backend.enable_truncation(3)
    backend.enable_padding(length=50)
    assert loaded(tmp_path, backend).encode("If today is Friday").length == 4


def test_a_special_token_in_a_text_is_one_token(tmp_path: Path) -> None:
    assert loaded(tmp_path).encode("If</s> ok").ids[2] == 1


def test_two_leading_markers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanRefusal) as caught:
        loaded(tmp_path).encode("<s>If today")
    (problem,) = caught.value.problems
    assert problem.message == "the text begins with '<s>' twice in a row"
    assert problem.hint == "leave '<s>' out of the text: the tokenizer adds it"


def test_one_marker_of_the_authors_own_is_fine_and_two_are_not(tmp_path: Path) -> None:
    plain = loaded(tmp_path, small.byte_level())
    assert plain.encode("<s>If").ids[0] == 0
    with pytest.raises(PlanRefusal, match="twice in a row"):
        plain.encode("<s><s>If")


def test_a_text_without_tokens_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanRefusal, match="the text has no tokens"):
        loaded(tmp_path).encode("")


def test_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanRefusal, match="half a surrogate pair"):
        loaded(tmp_path).encode("a\ud800")


def test_an_ending_after_every_text_is_refused(tmp_path: Path) -> None:
    backend = small.byte_level()
    backend.post_processor = small.template(backend, "<s> $A </s>")
    with pytest.raises(PlanRefusal) as caught:
        loaded(tmp_path, backend)
    assert caught.value.problems[0].message.startswith("the tokenizer puts '</s>' after every text")


def test_decode_keeps_special_tokens_and_shows_half_characters(tmp_path: Path) -> None:
    small_one = loaded(tmp_path)
    ids = small_one.encode("naïve 你好 ok</s>").ids
    assert small_one.decode(ids) == "<s>naïve 你好 ok</s>"
    assert [small_one.token_text(token) for token in (*ids[-2:], ids[7])] == [" ok", "</s>", "\ufffd"]
    assert small_one.token_text(10_000) == ""


def test_named_tokens_become_ids(tmp_path: Path) -> None:
    small_one = loaded(tmp_path)
    assert (small_one.bos_id, small_one.eos_id, small_one.pad_id) == (0, 1, 2)


def test_named_tokens_may_be_objects_or_stand_in_their_own_file(tmp_path: Path) -> None:
    path = small.folder(tmp_path, named={"eos_token": {"content": "</s>", "lstrip": False}})
    (path / "special_tokens_map.json").write_text('{"eos_token": "<pad>", "pad_token": {"content": "<pad>"}}')
    small_one = tokenizer.load(path)
    assert (small_one.bos_id, small_one.eos_id, small_one.pad_id) == (None, 1, 2)


def test_a_token_only_the_config_adds_is_never_split(tmp_path: Path) -> None:
    extra = {"added_tokens_decoder": {"999": {"content": "<|x|>", "special": True}}, "extra_special_tokens": ["<|y|>"]}
    small_one = loaded(tmp_path, None, {**small.NAMED, **extra})
    size = small.with_bos().get_vocab_size()
    assert small_one.encode("<|x|><|y|>").ids == (0, size, size + 1)


def metaspace() -> Tokenizer:
    """What sentencepiece models convert to: a space is ▁, and one stands before a text."""
    pieces = ["<unk>", "<s>", "</s>", "▁", "▁if", "▁ok", *"ifok"]
    vocab = {piece: i for i, piece in enumerate(pieces)}
    merges = [("▁i", "f"), ("▁", "i"), ("▁o", "k"), ("▁", "o")]
    vocab |= {"▁i": len(vocab), "▁o": len(vocab) + 1}
    backend = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    backend.add_special_tokens([AddedToken(token, normalized=False) for token in ("<s>", "</s>")])
    backend.post_processor = small.template(backend, "<s> $A")
    return backend


def test_a_sentencepiece_token_keeps_its_leading_space(tmp_path: Path) -> None:
    small_one = loaded(tmp_path, metaspace())
    text = small_one.encode("if ok")
    assert [small_one.token_text(token) for token in text.ids] == ["<s>", " if", " ok"]
    assert text.spans[1:] == ((0, 2), (2, 5))


@pytest.mark.parametrize("content", ["", "{", "[]", '{"model": {"type": "Nothing"}}'])
def test_a_broken_tokenizer_is_named(tmp_path: Path, content: str) -> None:
    path = small.folder(tmp_path)
    (path / "tokenizer.json").write_text(content)
    with pytest.raises(ModelUnavailable, match=r"tokenizer\.json is not a tokenizer"):
        tokenizer.load(path)


def test_other_tokenizer_files_are_not_read(tmp_path: Path) -> None:
    path = small.folder(tmp_path)
    (path / "tokenizer.json").rename(path / "tokenizer.model")
    with pytest.raises(ModelUnavailable, match=r"has no tokenizer\.json"):
        tokenizer.load(path)
