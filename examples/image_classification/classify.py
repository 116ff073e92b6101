# SPDX-License-Identifier: Apache-2.0
"""Says what is on photographs: the likeliest of ImageNet's thousand classes."""

import argparse
import sys
from pathlib import Path

import efficientnet
import numpy as np
import photo

import tensorcraft as tc

DTYPES = {"float32": tc.float32, "float16": tc.float16, "bfloat16": tc.bfloat16}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="classify.sh", description=__doc__)
    parser.add_argument("photo", nargs="+", type=Path, help="files of any format that Pillow reads")
    parser.add_argument("--device", help="cuda, cuda:N or cpu; default: a GPU when there is one")
    parser.add_argument("--dtype", choices=DTYPES, default="float32", help="of weights; default: %(default)s")
    parser.add_argument("--top", type=int, default=5, help="how many classes; default: %(default)s")
    parser.add_argument("--names", type=Path, help="a file with a name of a class in each line")
    parser.add_argument("--weights", type=Path, help="a file of torch.save(); default: the package's")
    return parser.parse_args()


def probabilities(model: efficientnet.EfficientNet, images: np.ndarray) -> np.ndarray:
    """A row for each image."""
    logits = tc.astype(model(images), tc.float32)
    return np.asarray(tc.softmax(logits).to("cpu"))


def read_names(path: Path | None) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path else []


def lines(row: np.ndarray, top: int, names: list[str]) -> list[str]:
    """The likeliest classes, with their names as far as there are any."""
    best = np.argsort(-row, kind="stable")[:top]
    return [f"{i:4} {row[i]:.3f}" + (f" {names[i]}" if i < len(names) else "") for i in best]


def main() -> None:
    args = arguments()
    if args.top < 1:
        raise ValueError(f"--top is {args.top}, expected at least 1")
    names = read_names(args.names)
    images = np.stack([photo.read(path) for path in args.photo])
    model = efficientnet.load(args.weights, args.device, DTYPES[args.dtype])
    for path, row in zip(args.photo, probabilities(model, images), strict=True):
        if len(args.photo) > 1:
            print(f"{path}:")
        print("\n".join(lines(row, args.top, names)))


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, ImportError, RuntimeError, MemoryError) as error:
        sys.exit(f"classify: {error}")
