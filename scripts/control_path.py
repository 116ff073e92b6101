#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the files that a reader opens from a Python call to its kernel, and how often a choice's parameter comes back.

The path of a call, counted in the bindings, op/ and the operator's folder, above device/, the JIT and the driver:
  python  _ops.py, which the build writes
  call    from call() of the bindings to the class that converts arguments, to the operator's check, to the rung's
          choice and to the launch: of all chains of calls the one with the fewest new files
  choice  the rung's row, and every function that is handed the choice's parameter whole
  kernel  the rung's file and the device code of its folder that it includes, however far

Returns: the parameter goes from function to function, once to each, and back to the caller. It has come back when it is
in a file that it had left.

Types are not read: a call is of the functions with that name and enough parameters in the files that its file includes.
"""

import argparse
import collections
import itertools
import re
from pathlib import Path

import check_layers
from cpp_functions import calls, functions
from sources import CPP, files

ROOT = Path(__file__).resolve().parent.parent
START = "bindings/python/call.cpp"
CALLS = {"softmax": ("softmax", "in_registers"), "gemm persistent": ("gemm", "persistent")}  # operator, rung


class Sources:
    """The functions that a call of an operator can go through."""

    def __init__(self, tree, op):
        self.folder = f"tensorcraft/ops/{op}/"
        folders = ("bindings/python/", "tensorcraft/op/", self.folder)
        self.text = {name: text for name, text in tree.items() if name.startswith(folders) and name.endswith(CPP)}
        self.by_name = collections.defaultdict(list)
        for file, text in self.text.items():
            for function in functions(file, text):
                self.by_name[function.name].append(function)
        self.near = {file: self.includes(file) for file in self.text}

    def of_folder(self, text):
        """The functions of the operator's folder that the text names."""
        named = [f for word in re.findall(r"\w+", text) for f in self.by_name.get(word, [])]
        return [f for f in named if f.file.startswith(self.folder)]

    def includes(self, file):
        """The files that one includes, however far, with the sources of the headers."""
        found, todo = {}, [file]
        while todo:
            if (one := todo.pop()) in self.text and one not in found:
                found[one] = None
                named = [match[2] for match in check_layers.INCLUDE.finditer(self.text[one])]
                todo += [name if "/" in name else one.rsplit("/", 1)[0] + "/" + name for name in named]
                todo.append(one.removesuffix(".hpp") + ".cpp")
        return found

    def called(self, caller, name, given):
        named = [f for f in self.by_name.get(name, []) if f.file in self.near[caller.file] and f != caller]
        return [f for f in named if len(f.parameters) >= len(given)]

    def row(self, rung):
        """(file, text) of the rung's row in a plan header."""
        for file, text in self.text.items():
            row = re.search(rf'\{{\.name = "{rung}",(?:[^{{}}]|\{{[^{{}}]*\}})*\}}', text)
            if row and file.endswith("plan.h"):
                return file, row[0]
        raise LookupError(f"no plan header of {self.folder} has a row of {rung}")

    def choices(self, rung):
        """The functions that the row names as its choice; the last is the rung's own."""
        return self.of_folder(re.search(r"\.choose = ([^,\n}]*)", self.row(rung)[1])[1])


def chain(sources, start, target, pointers, known):
    """The files from start to a function that target accepts; `pointers`: what a call by a field's name can be of."""
    open_, came = collections.deque([start]), {start: ()}
    while open_:
        function = open_.popleft()
        way = (*came[function], function.file)
        if target(function):
            return way
        for name, given in calls(function.body):
            for further in pointers.get(name) or sources.called(function, name, given):
                if further not in came:
                    came[further] = way
                    (open_.appendleft if further.file in {*known, *way} else open_.append)(further)
    raise LookupError(f"no chain of calls leads from {start.name}() in {start.file} to the next part")


def walk(sources, start):
    """The files that the first parameter of start is in, from call to call and back to the caller."""
    trail, seen = [], set()

    def visit(function, at):
        seen.add(function)
        trail.append(function.file)
        kind, name = function.parameters[at]
        names = {name, *re.findall(rf"\b{kind}(?:<[^;<>]*>)?[&\s]+(\w+)", function.body)}
        for called, given in calls(function.body):
            at = next((i for i, argument in enumerate(given) if argument in names), None)
            for further in sources.called(function, called, given)[:1] if at is not None else ():
                if further not in seen:
                    visit(further, at)
                    trail.append(function.file)

    visit(start, 0)
    return trail


def stays(tree, op, rung):
    """The files that the parameter of a rung's choice is in, one after the other."""
    sources = Sources(tree, op)
    return [file for file, _ in itertools.groupby(walk(sources, sources.choices(rung)[-1]))]


def returns(at):
    return len(at) - len(set(at))


def path(tree, op, rung):
    """{file: the part of the path that it is first opened for}"""
    sources = Sources(tree, op)
    (header, row), choices = sources.row(rung), sources.choices(rung)
    named = re.findall(r"\.check = (.*)", "\n".join(t for f, t in sources.text.items() if f.startswith(sources.folder)))
    checks = [function for line in named for function in sources.of_folder(line)]
    start = next(f for f in sources.by_name["call"] if f.file == START)
    is_launch = re.compile(r"\blaunch\(kernel\b").search
    found = {"python/tensorcraft/_ops.py": "python"}
    for target in (lambda f: f.name == "Call", checks.__contains__, choices.__contains__, lambda f: is_launch(f.body)):
        for file in chain(sources, start, target, {"check": checks, "choose": choices}, found):
            found.setdefault(file, "call")
    for file in [header, *(file for function in choices for file in walk(sources, function))]:
        found.setdefault(file, "choice")
    kernel = re.search(r'\.file = "(\S+)"', row)[1]
    for file in sources.near[sources.folder + kernel]:
        if file.endswith(".cuh"):
            found.setdefault(file, "kernel")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=Path, default=ROOT, help="the tree to look at, else this one")
    tree = dict(files(parser.parse_args().root))
    for name, of in CALLS.items():
        found, at = path(tree, *of), stays(tree, *of)
        print(f"{name}: {len(found)} files", *(f"  {part:7} {file}" for file, part in found.items()), sep="\n")
        print(f"{name}: {returns(at)} returns", *(f"  {file}" for file in at), sep="\n")


if __name__ == "__main__":
    main()
