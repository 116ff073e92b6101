#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes every part of the documents that comes from sources, results and the registry of operators.

`operators` needs the built package: run it with .venv/bin/python.
"""

import argparse
import functools
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import NamedTuple

import kernels_table
import ladder_picture
import launchers
import layers_picture
import operator_pages
import operators_table
import quote
import regions
import results_table
import waits_table


class Writer(NamedTuple):
    """A module whose docstring begins with what it writes."""

    module: ModuleType
    update: Callable[..., list[str]]  # (check=...): the documents that were not up to date
    problems: Callable[[], Iterable[str]] = tuple  # what a person has to mend


def region(name, content_of):
    return functools.partial(regions.update, name, content_of)


# A quote may show what launchers wrote; without the package, operators fails after the others have run.
WRITERS = {
    "launchers": Writer(launchers, launchers.update),
    "quote": Writer(quote, region("quote", quote.quote), quote.typed_by_hand),
    "tests": Writer(operator_pages, operator_pages.update, operator_pages.all_problems),
    "results": Writer(results_table, region("results", results_table.table)),
    "layers": Writer(layers_picture, layers_picture.update),
    "ladder": Writer(ladder_picture, ladder_picture.update),
    "kernels": Writer(kernels_table, region("kernels", kernels_table.table)),
    "waits": Writer(waits_table, region("waits", waits_table.table), waits_table.all_problems),
    "operators": Writer(operators_table, operators_table.update),
}


def main():
    words = "\n".join(f"  {word:10} {writer.module.__doc__.splitlines()[0]}" for word, writer in WRITERS.items())
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"words:\n{words}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing, fail if a document is not up to date")
    parser.add_argument("words", nargs="*", metavar="WORD", help="a writer to run; without one all run")
    given = parser.parse_args()
    if unknown := set(given.words) - WRITERS.keys():
        parser.error(f"no writer is named {', '.join(sorted(unknown))}; there are {', '.join(WRITERS)}")
    failed = False
    for word, writer in WRITERS.items():
        if given.words and word not in given.words:
            continue
        stale, found = writer.update(check=given.check), list(writer.problems())
        for path in stale:
            print(f"{path}: {f'is not up to date: run {regions.COMMAND}' if given.check else 'written'}")
        for problem in found:
            print(problem)
        failed |= bool(found) or (given.check and bool(stale))
    return failed


if __name__ == "__main__":
    sys.exit(main())
