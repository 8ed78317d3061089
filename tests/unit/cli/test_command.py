"""What holds for every verb: flags anywhere, exit codes, errors as text or JSON, never a traceback."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from causalab_mini import __version__
from causalab_mini.cli.app import VERBS
from causalab_mini.cli.voice import Voice
from causalab_mini.errors import Problem, ReferenceRefusal, RunFailure


def problems(said) -> list[dict[str, object]]:
    assert said.json["ok"] is False
    for problem in said.json["problems"]:
        assert list(problem) == ["path", "line", "message", "hint"]
    return said.json["problems"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rn"], "no such command 'rn'"),
        (["run", "--fast"], "no such option: --fast"),
        (["--fast"], "no such option: --fast"),
        (["validate"], "missing argument 'DOC'"),
        (["run", "swap.json"], "run needs a directory for its results"),
        (["run", "swap.json", "--out", "o", "--engine", "steam"], "'steam' is not one of 'traced', 'hooks'"),
        (["run", "swap.json", "--out", "o", "--batch-size", "0"], "greater than or equal to 1"),
        (["validate", "swop.json"], "there is no document swop.json"),
        (["validate", "datasets"], "datasets is a directory"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("project")
def test_a_wrong_command_line_is_refused(say: Callable, arguments: list[str], message: str) -> None:
    told = say(*arguments)
    assert told.code == 2
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert message in told.err
    for flagged in ([*arguments, "--json"], ["--json", *arguments]):
        as_json = say(*flagged)
        assert as_json.code == 2
        assert as_json.err == ""
        assert message in str(problems(as_json)[0]["message"])


@pytest.mark.usefixtures("project")
def test_the_nearest_document_is_named(say: Callable) -> None:
    assert "did you mean 'swap.json'?" in say("validate", "swop.json").err


def test_nothing_said_is_help(say: Callable) -> None:
    told = say()
    assert told.code == 0
    for verb, _ in VERBS:
        assert verb.__name__ in told.out


@pytest.mark.parametrize("verb", [verb.__name__ for verb, _ in VERBS])
def test_every_verb_has_help_with_examples(say: Callable, verb: str) -> None:
    told = say(verb, "--help")
    assert told.code == 0
    assert f"causalab-mini {verb}" in told.out.partition("Examples:")[2]
    assert told.out == say(verb, "-h").out
    assert told.out == say(verb, "--help", "--json").json["help"]


def test_version(say: Callable) -> None:
    assert say("--version").out == f"causalab-mini {__version__}\n"
    assert say("--version", "--json").json["version"] == __version__


def test_an_option_after_two_dashes_is_text(say: Callable, model: Path) -> None:
    told = say("tokens", "--weights", model, "some/model", "--", "--json")
    assert told.code == 0
    assert told.out.startswith("'--json'")


def test_an_error_block() -> None:
    voice = Voice(document=Path("documents/v2/generate_steer.json"))
    problem = Problem("interventions.steer.writes.push.pos", "a write is at …", "do that", 41)
    assert voice.block(problem) == (
        "error: a write is at …\n  at  interventions.steer.writes.push.pos   (generate_steer.json:41)\n  hint: do that"
    )
    assert voice.block(Problem("a.b", "m")) == "error: m\n  at  a.b   (generate_steer.json)"
    assert voice.block(Problem("", "m", line=3)) == "error: m\n  at  generate_steer.json:3"
    assert Voice().block(Problem("a.b", "m")) == "error: m\n  at  a.b"
    assert Voice().block(Problem("", "m")) == "error: m"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ReferenceRefusal([Problem("a", "one"), Problem("b", "two")]), 2, "one"),
        (RunFailure("no such folder: 'x'"), 1, "no such folder: 'x'"),
        (ValueError("a bug"), 1, "ValueError: a bug"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_stops_a_verb(capsys: pytest.CaptureFixture[str], error: BaseException, code: int, message: str) -> None:
    assert Voice().failed(error) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error: {message}\n")
    assert "Traceback" not in said.err
    assert Voice(as_json=True).failed(error) == code
    assert json.loads(capsys.readouterr().out)["problems"][0]["message"] == message


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunFailure) as caught:
        raise RunFailure("it broke")
    assert Voice(debug=True).failed(caught.value) == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith("error: it broke\n")


def test_a_reader_that_has_gone_is_no_error() -> None:
    command = subprocess.Popen(
        [sys.executable, "-c", "from causalab_mini.cli import main; main()", "schema"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert command.stdout is not None
    assert command.stderr is not None
    command.stdout.close()
    assert command.stderr.read() == b""
    command.stderr.close()
    assert command.wait() == 0


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")


@pytest.mark.parametrize(
    ("streams", "code"),
    [
        (">&-", 0),
        ("2>&-", 0),
        (">&- 2>&-", 0),
        pytest.param("2>/dev/full", 0, marks=FULL),
        pytest.param(">/dev/full", 1, marks=FULL),
        pytest.param(">/dev/full 2>/dev/full", 1, marks=FULL),
    ],
)
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_streams_that_take_nothing_lose_nothing(tmp_path: Path, streams: str, code: int, as_json: list[str]) -> None:
    command = [sys.executable, "-c", "from causalab_mini.cli import main; main()", "vocab", *as_json]
    asked = f"{shlex.join(command)} {streams}"
    done = subprocess.run(["bash", "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert "fault of the program" not in done.stderr
    assert ("could not be written to standard output" in done.stderr) == (streams == ">/dev/full")
