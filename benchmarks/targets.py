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

# Of the first and the warm call: a launch of the driver, what a call that memory knows adds to it, a kernel from disk, and
# cold compiles, by column of jit_latency.json. A design that this one follows has 50 us a launch and 100 ms a compile.
LAUNCH_US, ADDED_US, DISK_MS, COMPILE_MS, COMPILE_GEMM_MS = 50.0, 0.5, 5.0, 100.0, 700.0

# Shares of the peaks that kernels which bytes limit aim at: of bandwidth, and of the warps that fit.
BANDWIDTH_SHARE, OCCUPANCY_SHARE = 0.85, 0.75


def target_tflops(compute_capability: int, dtype: str) -> float | None:
    """The goal of a product in one dtype on the newest known architecture at or below the GPU's, if there is one."""
    known = [a for a in Architecture if a <= compute_capability]
    return TARGET_TFLOPS.get((max(known), dtype)) if known else None
