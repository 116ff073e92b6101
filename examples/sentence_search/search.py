# SPDX-License-Identifier: Apache-2.0
"""Finds the lines of a text file that are nearest in meaning to a question."""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from minilm import MiniLM

import tensorcraft as tc


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo.sh", description=__doc__)
    parser.add_argument("question")
    parser.add_argument(
        "--file", type=Path, default=Path(__file__).with_name("lines.txt"), help="a text file, one entry per line"
    )
    parser.add_argument("--device", help="cuda, cuda:N or cpu; default: a GPU when there is one")
    parser.add_argument("--model", type=Path, help="folder with model.safetensors and tokenizer.json; default: the package")
    parser.add_argument("--top", type=int, default=5, help="how many matches to print")
    return parser.parse_args()


def read_lines(file: Path) -> list[str]:
    lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in lines if line]
    if not lines:
        raise ValueError(f"{file} has no lines to search")
    return lines


def choose_device(wanted: str | None) -> tuple[str, str]:
    """The device, and the reason for it in words."""
    if wanted:
        return wanted, "asked for with --device"
    device = str(tc.default_device())
    if device.startswith("cuda"):
        return device, "a GPU was found"
    return device, "no usable GPU was found, or TENSORCRAFT_DEVICE says so"


def print_trace(trace: tc.Trace) -> None:
    rows = trace.rows()
    total = sum(row.milliseconds for row in rows) or 1.0
    print(f"\n{'operator':<14}{'variant':<16}{'calls':>6}{'time':>13}{'share':>8}")
    for row in rows:
        share = row.milliseconds / total
        print(f"{row.op:<14}{row.variant:<16}{row.calls:>6}{row.milliseconds:>10.1f} ms{share:>8.1%}")


def main() -> None:
    args = arguments()
    lines = read_lines(args.file)
    device, reason = choose_device(args.device)
    print(f"device: {device} ({reason})")
    model = MiniLM(args.model, device=device)
    started = time.perf_counter()
    with tc.trace() as trace:
        vectors = model.encode([*lines, args.question])
    seconds = time.perf_counter() - started
    print(f"embedded {len(lines)} lines of {args.file.name} in {seconds:.2f} s\n")

    scores = vectors[:-1] @ vectors[-1]
    for i in np.argsort(-scores, kind="stable")[: args.top]:
        print(f"{scores[i]:6.3f}  {lines[i]}")
    print_trace(trace)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        sys.exit(f"demo: {error}")
