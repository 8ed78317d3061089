"""An operand that the run finds to have no value: its rows are left unwritten, and said to be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.building import ROLES, SITES, TABLE, generated, intervention, read, rows, write, write_table
from tests.desk import Desk, Seen

from causalab_mini.schedule.optimize import Mode

MODES: list[Mode] = ["naive", "exact", "fast"]


def document(word: dict) -> dict:
    """A first step averages what stands at a word of the continuation; a second swaps it in, and passes it on."""
    look = intervention({"at_word": read("out1", generated(index=-1, scope=word))}, decode=3)
    use = intervention(
        {
            "passed": read("out2", -1, "m"),
            "l_original": read("head", -1),
            "l_m": read("head", -1, "m"),
            "l_n": read("head", -1, "n"),
        },
        {"w": write("out1", -1, "swap", {"ref": "usual"}), "x": write("out2", -1, "swap", "passed")},
        {"m": {"input": "base", "writes": ["w"]}, "n": {"input": "base", "writes": ["x"]}},
        {f"e_{name}": {"kind": "entropy", "of": f"l_{name}"} for name in ("original", "m", "n")},
        decode=2,
    )
    saves = [{"value": f"{name}.generated", "file_path": f"{name}.safetensors"} for name in ("original", "m", "n")]
    saves.append({"value": "passed", "file_path": "passed.safetensors"})
    return {
        "model": {"key": "any", "dtype": "fp32"},
        "roles": ROLES,
        "sites": SITES,
        "interventions": {"look": look, "use": use},
        "steps": {
            "first": {
                "kind": "observe",
                "rows": {"base": TABLE},
                "interventions": "look",
                "outputs": {"usual": {"read": "at_word", "reduce": "mean"}},
            },
            "second": {
                "kind": "observe",
                "rows": {"base": TABLE},
                "interventions": "use",
                "outputs": {"passed": "passed"},
                "saves": saves,
            },
        },
    }


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_left_unwritten(mode: Mode, tmp_path: Path, random_world: Callable[[str, int], Desk]) -> None:
    root = write_table(tmp_path, rows(word=["unheard of", "never said", "not this"]))
    (steps,) = random_world("llama", 16).over(root).run(document({"variable": "word"}), mode=mode).values()
    seen = Seen(steps["second",])
    assert seen.reasons("e_original") == [None] * 3
    assert seen.reasons("e_m") == seen.reasons("e_n") == ["write_skipped"] * 3
    assert seen.ids("m") == seen.ids("n") == seen.ids("original")
    assert seen.tensor("passed").isnan().all()
    assert set(seen.metadata("passed")["missing"].values()) == {"write_skipped"}
    assert all(report.firings == (0, 0, 0) for report in seen.observed.writes)
    assert seen.observed.warnings == (
        "'m' is unwritten on 3 of 3 rows: an operand had no value there",
        "'n' is unwritten on 3 of 3 rows: an operand had no value there",
    )


@pytest.mark.parametrize("mode", MODES)
def test_states_are_left_unwritten(mode: Mode, tmp_path: Path, random_world: Callable[[str, int], Desk]) -> None:
    root = write_table(tmp_path, rows(word=["unheard of", "never said", "not this"]))
    made = document({"variable": "word"})
    states = {"out1": {"component": "linear_attention_state", "layers": 0}}
    states["out2"] = {"component": "linear_attention_state", "layers": 2}
    made["sites"] = {**made["sites"], **states}
    (steps,) = random_world("qwen3_5_text", 16).over(root).run(made, mode=mode).values()
    seen = Seen(steps["second",])
    assert seen.reasons("e_m") == seen.reasons("e_n") == ["write_skipped"] * 3
    assert seen.ids("m") == seen.ids("n") == seen.ids("original")
    assert all(report.firings == (0, 0, 0) for report in seen.observed.writes)


@pytest.mark.parametrize("mode", MODES)
def test_rows_with_a_value_make_one_for_all(
    mode: Mode, tmp_path: Path, random_world: Callable[[str, int], Desk]
) -> None:
    desk = random_world("llama", 16)
    first = desk.over(write_table(tmp_path / "first", rows())).one(
        {
            **document({"segment": "eos"}),
            "interventions": {"look": intervention({"h": read("out1", -1)}, decode=3)},
            "steps": {
                "s": {
                    "kind": "observe",
                    "rows": {"base": TABLE},
                    "saves": [{"value": "original.generated", "file_path": "g.safetensors"}],
                }
            },
        }
    )
    said = desk.checkpoint.decode(tuple(first.ids("original")[1]))
    root = write_table(tmp_path / "second", rows(word=["unheard of", said.strip(), "not this"]))
    (steps,) = desk.over(root).run(document({"variable": "word"}), mode=mode).values()
    seen = Seen(steps["second",])
    assert seen.reasons("e_m") == seen.reasons("e_n") == [None] * 3
    assert not torch.isnan(seen.tensor("passed")).any()
    assert not [warning for warning in seen.observed.warnings if "unwritten" in warning]
