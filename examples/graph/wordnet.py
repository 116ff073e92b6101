# SPDX-License-Identifier: Apache-2.0
"""WordNet 3.0 as a graph: its synsets are nodes, the pointers between them edges. The format is that of wndb(5)."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FOLDER = "/usr/share/wordnet"  # of Debian's package wordnet-base
FEWEST = 5  # a word of the glosses is a feature if it is seen as often


class Edges(NamedTuple):
    """Compressed rows: row r has the columns indices[indptr[r] : indptr[r + 1]], in order, once each."""

    data: NDArray[np.float32]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int32]


class WordNet(NamedTuple):
    """What the files say."""

    words: list[str]  # the first of each synset
    files: NDArray[np.int64]  # the lexicographer file of each synset, 0 to 44: what kind of thing it is
    pointers: int  # in the files, of every kind
    directed: Edges  # from a synset to those that it points to
    symmetric: Edges  # the same with every edge both ways
    glosses: Edges  # how often each synset's gloss has each word


def compressed(rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int], counted: bool) -> Edges:
    """The edges of pairs; what is there more often is one edge, of weight 1 or of the number."""
    keys, counts = np.unique(rows * shape[1] + columns, return_counts=True)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(keys // shape[1], minlength=shape[0]))])
    data = counts if counted else np.ones(keys.size)
    return Edges(data.astype(np.float32), (keys % shape[1]).astype(np.int32), indptr.astype(np.int32))


def read(folder: str | Path = FOLDER) -> WordNet:
    """The graph in the files data.noun, data.verb, data.adj and data.adv of a folder."""
    if not (Path(folder) / "data.noun").exists():
        raise FileNotFoundError(
            f"{folder} has no WordNet; install Debian's wordnet-base, or name its folder by --folder"
        )
    words: list[str] = []
    files: list[int] = []
    glosses: list[list[str]] = []
    pointers: list[tuple[int, str, str]] = []  # from a synset to a part of speech and a place in its file
    place: dict[tuple[str, str], int] = {}
    for part, name in (("n", "noun"), ("v", "verb"), ("a", "adj"), ("r", "adv")):
        for line in (Path(folder) / f"data.{name}").read_text(encoding="latin-1").splitlines():
            if line.startswith("  "):  # the licence
                continue
            fields, _, gloss = line.partition(" | ")
            word = fields.split(" ")
            count = int(word[3], 16)
            at = 4 + 2 * count  # behind the words, of which each has a number
            place[part, word[0]] = len(words)
            for i in range(int(word[at])):
                target, kind = word[at + 2 + 4 * i], word[at + 3 + 4 * i]
                pointers.append((len(words), "a" if kind == "s" else kind, target))
            words.append(word[4].replace("_", " "))
            files.append(int(word[1]))
            glosses.append(re.findall(r"[a-z]+", gloss.lower()))
    size = len(words)
    source = np.array([p[0] for p in pointers])
    target_of = np.array([place[p[1], p[2]] for p in pointers])
    both = np.concatenate([source, target_of]), np.concatenate([target_of, source])
    seen = Counter(word for gloss in glosses for word in gloss)
    feature = {word: i for i, word in enumerate(sorted(word for word, count in seen.items() if count >= FEWEST))}
    pairs = [(row, feature[word]) for row, gloss in enumerate(glosses) for word in gloss if word in feature]
    in_rows, in_columns = np.array(pairs).T
    return WordNet(
        words,
        np.array(files),
        len(pointers),
        compressed(source, target_of, (size, size), counted=False),
        compressed(*both, (size, size), counted=False),
        compressed(in_rows, in_columns, (size, len(feature)), counted=True),
    )
