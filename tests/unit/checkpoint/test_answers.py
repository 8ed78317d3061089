from pathlib import Path

import pytest
from tests.unit.checkpoint import small

from causalab_mini.checkpoint import tokenizer
from causalab_mini.checkpoint.answers import AnswerProblem, answer
from causalab_mini.vocabulary.metric import TokenForm

VOCAB = small.with_bos().get_vocab_size()


@pytest.fixture
def plain(tmp_path: Path) -> tokenizer.Tokenizer:
    return tokenizer.load(small.folder(tmp_path))


def token(text: str) -> int:
    found = small.with_bos().encode(text, add_special_tokens=False).ids
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("value", "form", "prompt", "expected"),
    [
        ("Paris", "space_prefixed", "If", " Paris"),
        (" Paris", "space_prefixed", "If", " Paris"),
        ("  \tParis", "space_prefixed", "If", " Paris"),
        ("Paris", "bare", "If", "Paris"),
        (" Paris", "bare", "If", " Paris"),
        (" Paris", "in_context", "If today is", " Paris"),
        ("Paris", "in_context", "If today is", "Paris"),
        ("</s>", "bare", "If", "</s>"),
    ],
)
def test_one_token(plain: tokenizer.Tokenizer, value: str, form: TokenForm, prompt: str, expected: str) -> None:
    assert answer(plain, VOCAB, value, form, prompt) == token(expected)


@pytest.mark.parametrize("identifier", [0, VOCAB - 1])
def test_an_id_is_itself(plain: tokenizer.Tokenizer, identifier: int) -> None:
    assert answer(plain, VOCAB, identifier, "id", "If") == identifier


def test_several_tokens_are_shown(plain: tokenizer.Tokenizer) -> None:
    problem = answer(plain, VOCAB, "New York", "space_prefixed", "If")
    new, york = token(" New"), token(" York")
    assert problem == AnswerProblem(
        f"the answer ' New York' is 2 tokens: ' New' ({new}), ' York' ({york}); it must be one",
        "use answers of one token, or another token_form; a longer one is forced, and scored by continuation_logprob",
        (new, york),
    )


def test_an_answer_that_merges_with_the_prompt_is_refused(plain: tokenizer.Tokenizer) -> None:
    """`day` makes the prompt's ` Fri` into ` Friday`."""
    problem = answer(plain, VOCAB, "day", "in_context", "If Fri")
    assert isinstance(problem, AnswerProblem)
    assert problem.message.startswith("the answer 'day' changes the prompt's own tokens: 'If'")
    assert f"' Friday' ({token(' Friday')})" in problem.message


@pytest.mark.parametrize(
    ("value", "form", "message"),
    [
        (VOCAB, "id", f"the answer {VOCAB} is not a token id: ids are 0 to {VOCAB - 1}"),
        (-1, "id", f"the answer -1 is not a token id: ids are 0 to {VOCAB - 1}"),
        ("7", "id", "the answer '7' is not a token id"),
        (True, "id", "the answer True is not a token id"),
        (7, "bare", "the answer 7 is not text"),
        ("", "bare", "the answer '' is 0 tokens; it must be one"),
        ("", "in_context", "the answer '' is 0 tokens; it must be one"),
    ],
)
def test_what_is_no_answer(plain: tokenizer.Tokenizer, value: str | int, form: TokenForm, message: str) -> None:
    problem = answer(plain, VOCAB, value, form, "If")
    assert isinstance(problem, AnswerProblem)
    assert problem.message == message
