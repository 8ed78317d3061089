"""How much memory a device has free."""

from __future__ import annotations

import os

import torch


def free_bytes(device: torch.device) -> int:
    """Bytes that can be taken on `device` now; of a device that does not say, those of the machine."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
