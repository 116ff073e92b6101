#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the operator table of the documents from the registry of the Python package that is on the path."""

import sys

import regions


def rows(operators):
    yield "| operator | group | dtypes | on the GPU | on the CPU |"
    yield "| --- | --- | --- | --- | --- |"
    for operator in operators.values():
        gpu = dict.fromkeys(v.name for v in operator.variants if v.device == "cuda")
        cpu = dict.fromkeys(v.name for v in operator.variants if v.device == "cpu")
        cells = [f"`{operator.name}`", operator.group, ", ".join(operator.dtypes), ", ".join(gpu), ", ".join(cpu)]
        yield "| " + " | ".join(cells) + " |"


def table(_argument):
    import tensorcraft as tc

    return "\n".join(rows(tc.ops())) + "\n"


if __name__ == "__main__":
    sys.exit(regions.main("operators", table, __doc__))
