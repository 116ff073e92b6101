# SPDX-License-Identifier: Apache-2.0
"""The devices of this machine."""

from __future__ import annotations

from typing import Any

from . import _tensorcraft as native


def devices() -> list[str]:
    """Every usable device: "cpu", the GPUs, and "simt", the emulator, last."""
    return native.devices()


def default_device() -> str:
    """Where host arrays are computed.

    What set_default_device() or TENSORCRAFT_DEVICE says, else the first usable GPU, else "cpu".
    """
    return native.default_device()


def set_default_device(device: str) -> None:
    """Makes another device the default of this process: "cpu", "cuda:1", "simt".

    Raises ValueError for a text that is none, Unsupported for a device that cannot be used.
    """
    native.set_default_device(device)


def device_info(device: str) -> dict[str, Any]:
    """What a device is and can do."""
    return native.device_info(device)


def synchronize(device: str | None = None) -> None:
    """Waits for all work on a device; None is the default device."""
    native.synchronize(native.default_device() if device is None else device)
