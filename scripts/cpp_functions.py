# SPDX-License-Identifier: Apache-2.0
"""The functions that a file of C++ defines, and what each calls, read as text: by names, without types."""

import re
from typing import NamedTuple

from sources import code_of

WORDS = {"if", "for", "while", "switch", "return", "catch", "sizeof", "decltype", "static_assert", "alignas"}
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
# This stands between a function's parameters and its body: qualifiers, a type, a constructor's members.
TAIL = re.compile(r"\)[a-z\s]*(?:->[\w\s:<>&*]+)?(?::(?!:)(?:[^;{]|\{[^;{}]*\}(?=\s*[,{]))*)?\s*\{")


class Function(NamedTuple):
    name: str
    file: str
    parameters: tuple[tuple[str, str], ...]  # type and name of each
    body: str


def closing(code, start):
    """The place of the bracket that closes the one at start."""
    depth = 0
    for match in re.compile(r"[({\[\]})]").finditer(code, start):
        depth += 1 if match[0] in "({[" else -1
        if depth == 0:
            return match.start()
    return len(code)


def parts(text):
    """The parts that commas outside brackets separate."""
    depth, found = 0, [""]
    for before, letter in zip(" " + text, text, strict=False):
        depth += (letter in "({[<") - (letter in ")}]" or (letter == ">" and before != "-"))
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found if part.strip()]


def parameter(text):
    """`const Params& p = {}` -> ("Params", "p")"""
    words = [word for word in re.findall(r"\w+", re.sub(r"<.*>", "", text.split("=")[0])) if word != "const"]
    return (words[-2], words[-1]) if len(words) > 1 else ("", "")


def functions(file, text):
    """The definitions of a file of C++, in its order."""
    code = TEXT.sub('""', code_of(file, text))
    for match in re.finditer(r"(?<![.\w>])([A-Za-z_]\w*)\(", code):
        before, end = code[: match.start()].rstrip()[-1:], closing(code, match.end() - 1)
        tail = TAIL.match(code, end)
        if tail and match[1] not in WORDS and before not in {*".,(=?!|+-/<"}:
            given = tuple(parameter(part) for part in parts(code[match.end() : end]))
            yield Function(match[1], file, given, code[end : closing(code, tail.end() - 1)])


def calls(body):
    """(name, arguments) of what looks like a call, or makes an object of a class."""
    for match in re.finditer(r"\b([A-Za-z_]\w*)(?:<[^;(){}]*>)?(?: +(\w+))?\(", body):
        given = parts(body[match.end() : closing(body, match.end() - 1)])
        yield from ((name, given) for name in match.groups() if name and name not in WORDS)
