#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fills the operator table of the README from the registry of the Python package that is on the path.

docs/operators.md, from the same registry, has every operator in a row of its own.
"""

import sys

import regions


def unique(words):
    return ", ".join(dict.fromkeys(words))


def variants_of(members, device):
    """Those of the longest list first, best first."""
    lists = [[v.name for v in operator.variants if v.device == device] for operator in members]
    return unique(name for names in sorted(lists, key=len, reverse=True) for name in names)


def rows(operators):
    """One row a group: its operators and every variant that one of them has."""
    groups = {}
    for operator in operators.values():
        groups.setdefault(operator.group, []).append(operator)
    yield "| group | operators | variants on the GPU | on the CPU |"
    yield "| --- | --- | --- | --- |"
    for group, members in groups.items():
        names = unique(f"`{operator.name}`" for operator in members)
        yield f"| {group} | {names} | {variants_of(members, 'cuda')} | {variants_of(members, 'cpu')} |"


def table(_argument):
    import tensorcraft as tc

    return "\n".join(rows(tc.ops())) + "\n"


if __name__ == "__main__":
    sys.exit(regions.main("operators", table, __doc__))
