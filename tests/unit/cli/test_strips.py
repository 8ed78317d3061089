"""`explain --rows`: strips of tokens, marks under what is touched, a legend, colour on a terminal."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import chats
from tests.building import generated, intervention, observing, read, rows, write, write_table

from causalab_mini.checkpoint.resolve import resolve
from causalab_mini.cli import strips
from causalab_mini.plan.compile import compile_experiment
from causalab_mini.plan.nodes import Experiment
from causalab_mini.spec.load import load

KEY = "causalab-mini/weekdays-llama"
PROMPTS = ("If today is Monday, tomorrow is", "Friday is")


class Terminal(io.StringIO):
    """Somewhere that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def compiled(document: dict, root: Path) -> Experiment:
    return compile_experiment(load(json.dumps(document).encode(), "d.json"), resolve(KEY), root)


def page(document: dict, root: Path, width: int = strips.WIDTH) -> list[str]:
    return strips.plain(strips.rows_page(compiled(document, root), resolve(KEY), width)).splitlines()


def patch(**more: object) -> dict:
    reads = {
        "v": read("out1", {"last": 2}, role="other"),
        "x": read("head", generated(index=0), model="patched"),
        "late": read("head", generated(index=-1), model="patched"),
    }
    writes = {
        "w": write("out1", {"last": 2}, "swap", "v"),
        "push": write("out2", generated(span=[1, 3]), "add_scaled", 1.0, scale=2.0),
    }
    models = {"patched": {"input": "base", "writes": ["w", "push"]}}
    return observing(intervention(reads, writes, models, **{"decode": 4, **more}))


PAGE = """\
only
  W1  write 'w' at block_output[1] {last:2} swap(v) in 'patched' on 'base'
  W2  write 'push' at block_output[2] {generated span:[1, 3]} add_scaled(1.0, scale=2.0) in 'patched' on 'base'
  R1  read  'v' at block_output[1] {last:2} in 'original' on 'other'
  R2  read  'x' at lm_head {generated index:0} in 'patched' on 'base'
  R3  read  'late' at lm_head {generated index:-1} in 'patched' on 'base'
  row 'row-0'
                prefix  0       1       2    3        4  5          6    +0      +1..2   +3
    base        <s>     If      ·today  ·is  ·Monday  ,  ·tomorrow  ·is
      patched                                            W1         W1   R2 R3~  W2 R3~  R3~
    other       <s>     Friday  ·is
      original          R1      R1
  row 'row-1'
                prefix  0       1       2    3        4  5          6    +0      +1..2   +3
    base        <s>     Friday  ·is
      patched           W1      W1                                       R2 R3~  W2 R3~  R3~
    other       <s>     If      ·today  ·is  ·Monday  ,  ·tomorrow  ·is
      original                                           R1         R1"""


def test_a_page_is_exactly_this(tmp_path: Path) -> None:
    assert page(patch(), write_table(tmp_path, rows(PROMPTS))) == [strips.KEY, *PAGE.splitlines()]


def test_a_row_without_tokens_says_why(tmp_path: Path) -> None:
    table = rows(PROMPTS, word=["Monday", "Sunday"])
    body = intervention({"x": read("head", {"index": 0, "scope": {"variable": "word"}})})
    lines = page(observing(body), write_table(tmp_path, table))
    assert lines[-1] == "    R1 nowhere: alignment_missing"
    assert not any("nowhere" in line for line in lines[: lines.index("  row 'row-1'")])


def test_long_rows_are_wrapped(tmp_path: Path) -> None:
    root = write_table(tmp_path, rows((" ".join(PROMPTS[0].split() * 12), "Friday is")))
    for width in (40, 80):
        lines = page(patch(), root, width)
        strip = lines[lines.index("  row 'row-0'") + 1 : lines.index("  row 'row-1'")]
        assert all(len(line) <= width for line in strip)
        assert " ".join(strip).count("W1") == 2


def test_points_that_touch_the_same_tokens_share_strips(tmp_path: Path) -> None:
    document = patch()
    document["sites"] = {**document["sites"], "out1": {"component": "block_output", "layers": {"sweep": [0, 1, 2, 3]}}}
    lines = page(document, write_table(tmp_path, rows(PROMPTS)))
    assert lines[1] == "only of layers=0, layers=1, layers=2, layers=3"
    assert lines[2].startswith(
        "  W1  write 'w' at block_output[0], block_output[1], block_output[2], block_output[3] {last:2} swap(v)"
    )
    assert lines.count("  row 'row-0'") == 1
    document["interventions"]["one"]["reads"]["x"]["pos"] = generated(index={"sweep": [0, 1]})
    lines = page(document, write_table(tmp_path, rows(PROMPTS)))
    assert lines.count("  row 'row-0'") == 2


def test_tokens_that_are_forced_stand_at_their_steps(tmp_path: Path) -> None:
    table = rows(PROMPTS, ending=[" Sunday.", " Monday"])
    body = intervention({"x": read("head", generated(index=0))}, decode={"force": "ending"})
    lines = page(observing(body), write_table(tmp_path, table))
    assert [line.split()[-2:] for line in lines if line.startswith("    base")] == [
        ["·Sunday", "."],
        ["·is", "·Monday"],
    ]
    heads = [line.split()[-2:] for line in lines if line.lstrip().startswith("prefix")]
    assert heads == [["+0", "+1"], ["1", "+0"]]


def test_a_stacked_site_is_one_mark(tmp_path: Path) -> None:
    document = patch()
    del document["interventions"]["one"]["writes"]["w"]
    document["interventions"]["one"]["models"]["patched"]["writes"] = ["push"]
    for name, layers in (("out1", "all"), ("out2", [3, 0])):
        document["sites"] = {**document["sites"], name: {"component": "block_output", "layers": layers}}
    lines = page(document, write_table(tmp_path, rows(PROMPTS)))
    assert lines[2].startswith("  W1  write 'push' at block_output[3, 0] {generated span:[1, 3]}")
    assert lines[3].startswith("  R1  read  'v' at block_output[all] {last:2}")


def test_colour_on_a_terminal_and_nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    lines = strips.rows_page(compiled(patch(), write_table(tmp_path, rows(PROMPTS))), resolve(KEY))
    assert strips.painted(lines, io.StringIO()) == strips.plain(lines)
    coloured = strips.painted(lines, Terminal())
    assert "\x1b[1;31mW1" in coloured
    assert "\x1b[32mR1" in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in strips.painted(lines, Terminal())


def test_invisible_and_wide_characters_keep_their_columns(tmp_path: Path) -> None:
    lines = page(observing(intervention({"x": read("head")})), write_table(tmp_path, rows(("a\n\tb\x07", "x"))))
    base = next(line for line in lines if line.startswith("    base"))
    assert {"↵", "⇥"} <= set(base)
    assert "\\x07" in base


def test_a_chat_is_shown_as_it_is_rendered(say: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = chats.write_folder(tmp_path / "model")
    talk = [{"role": "user", "content": "If today is Friday"}]
    write_table(tmp_path / "datasets", rows([talk, "Friday"]))
    body = intervention({"x": read("head", {"index": -1, "scope": {"segment": "user"}})})
    (tmp_path / "d.json").write_text(json.dumps(observing(body)))
    lines = say("explain", "d.json", "--rows", "--weights", folder).out.splitlines()
    at = lines.index("  row 'row-0'")
    assert lines[at + 1 : at + 5] == [
        "    base, rendered",
        "      | <bos><|im_start|>user",
        "      | If today is Friday<|im_end|>",
        "      | <|im_start|>assistant",
    ]
    assert lines[at + 5].startswith("      ids 0 318 ")
    assert lines[-1] == "    R1 nowhere: alignment_missing"
    answer = say("explain", "d.json", "--rows", "--weights", folder, "--json").json
    assert answer["text"].splitlines() == lines
    first, second = (row["roles"]["base"] for row in answer["rows"])
    assert first["turns"] == [{"name": "user", "text": "If today is Friday"}]
    assert (first["ids"][:2], first["prefix"], len(first["tokens"])) == ([0, 318], 1, len(first["ids"]))
    assert (second["text"], second["turns"]) == ("Friday", [])
    assert "rows" not in say("explain", "d.json", "--weights", folder, "--json").json
