#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Half the size of MiniLM's weights for the way to another machine: the upper 16 bits of each float.

    carry_model.py pack MODEL FOLDER      MODEL/model.safetensors as bfloat16, with the tokenizer
    carry_model.py unpack FOLDER MODEL    a float32 file again, its values rounded to bfloat16
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file


def to_upper_half(x: np.ndarray) -> np.ndarray:
    """The nearest bfloat16 of each float32, ties to even, as 16-bit integers."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def pack(model: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {k: v for k, v in load_file(str(model / "model.safetensors")).items() if v.dtype == np.float32}
    save_file({k: to_upper_half(v) for k, v in tensors.items()}, str(folder / "upper_half.safetensors"))
    shutil.copy(model / "tokenizer.json", folder)


def unpack(folder: Path, model: Path) -> None:
    model.mkdir(parents=True, exist_ok=True)
    tensors = load_file(str(folder / "upper_half.safetensors"))
    wide = {k: (v.astype(np.uint32) << 16).view(np.float32) for k, v in tensors.items()}
    save_file(wide, str(model / "model.safetensors"))
    shutil.copy(folder / "tokenizer.json", model)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("pack", "unpack"):
        sys.exit(__doc__)
    {"pack": pack, "unpack": unpack}[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
