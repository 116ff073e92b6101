"""What the designs this library follows aim at, in TFLOPS. Goals, not measurements."""

from __future__ import annotations

import enum


class Architecture(enum.IntEnum):
    AMPERE = 80
    AMPERE_WORKSTATION = 86
    ADA = 89
    HOPPER = 90


# Hopper's float16 rate is that of bfloat16; a published 390 forgets half of it.
TARGET_TFLOPS = {
    (Architecture.HOPPER, "float8_e4m3fn"): 1550.0,
    (Architecture.HOPPER, "bfloat16"): 780.0,
    (Architecture.HOPPER, "float16"): 780.0,
    (Architecture.HOPPER, "tfloat32"): 134.0,
    (Architecture.HOPPER, "float32"): 67.0,
}
DEFAULT_TFLOPS = 100.0  # if none is named


def target_tflops(compute_capability: int, dtype: str) -> float:
    """The goal of a product in one dtype on the newest known architecture at or below the GPU's."""
    known = [a for a in Architecture if a <= compute_capability]
    return TARGET_TFLOPS.get((max(known), dtype), DEFAULT_TFLOPS) if known else DEFAULT_TFLOPS
