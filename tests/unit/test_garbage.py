"""Garbage is looked for while a model runs, and everything is put back after."""

from __future__ import annotations

import gc

from causalab_mini.garbage import collected, uncollected


def test_collecting_is_put_off_and_put_back() -> None:
    assert gc.isenabled()
    with uncollected():
        assert not gc.isenabled()
        with collected():
            assert gc.isenabled()
            assert gc.get_freeze_count() > 0
        assert not gc.isenabled()
        assert gc.get_freeze_count() == 0
    assert gc.isenabled()


def test_who_collects_nothing_goes_on_so() -> None:
    gc.disable()
    try:
        with uncollected():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
