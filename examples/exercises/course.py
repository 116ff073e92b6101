# SPDX-License-Identifier: Apache-2.0
"""What the exercises share: a kernel that runs on the emulator, its counts, and what to say of them."""

from __future__ import annotations

from typing import Any

import numpy as np

import tensorcraft as tc


def run(text: str, signature: str, grid: Any, block: Any, *arguments: Any) -> str:
    """Runs the kernel on the emulator, which computes in the arrays of NumPy; a fault's text, else nothing."""
    try:
        tc.kernel(text, signature, device="simt")[grid, block](*arguments)
    except tc.CompileError:
        raise  # the compiler's message, with the line
    except RuntimeError as fault:
        return str(fault)
    return ""


def sectors(elements: np.ndarray) -> int:
    """How many sectors of 32 bytes the worst warp touches, by the number of each thread's float."""
    return max(len(np.unique(warp // 8)) for warp in elements.reshape(-1, 32))


def passes(words: np.ndarray) -> int:
    """How often shared memory answers the worst warp; words that share one of 32 banks wait for each other."""
    return max(int(np.bincount(np.unique(warp) % 32).max()) for warp in words.reshape(-1, 32))


def wrong(values: np.ndarray, expected: np.ndarray) -> int:
    return int(np.count_nonzero(~(values == expected)))  # a NaN is wrong


def say(found: str, ok: bool) -> None:
    print(f"{'done' if ok else 'not yet'}: {found}")
