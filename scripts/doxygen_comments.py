#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Doxygen reads in place of a header: the same lines, with comments marked as documentation.

usage: doxygen_comments.py HEADER

A comment above a declaration, and one at its end, belong to it. A comment that opens a paragraph (lines without an empty one
between) also holds for the declarations of that paragraph that have none above them: types for types, the rest for the
rest. An overload that follows its namesake shares its comment. Deleted and defaulted members, destructors, moves,
specialisations and deduction guides are left out: they say themselves.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//.*|[{}();,]')
TYPE = re.compile(r"^(template\s*<.*>\s*)?(class|struct|union|enum)\b[^()=]*[{;]")
FUNCTION_NAME = re.compile(r"(operator\W+|\w+)\(")
SCOPE = re.compile(r"^(inline )?namespace\b|^extern \"C\"")
SPECIALIZATION = re.compile(r"^template\s*<.*>\s*(requires\b.*\s)?(class|struct)\s+[\w:]+<")
HIDDEN = re.compile(
    r"= (delete|default);|^(virtual )?~\w+\(|^friend (class|struct)\b"
    r"|^(\w+)\(\4&&|\boperator=\("  # moves
    r"|^(template\b.*>\s*)?(requires\b.*\s)?\w+\(.*\) -> "
)
ACCESS = re.compile(r"^\s*(public|private|protected):")
SPECIAL = re.compile(r"[\\@<>&#%]|(?<=\s)~(?=\w)")


class Declaration(NamedTuple):
    first: int  # line numbers
    last: int
    text: str

    def kind(self):
        if SCOPE.match(self.text):
            return "scope"
        return "type" if TYPE.match(self.text) else "other"


class Reader:
    """Splits a header into its declarations, those inside of types included, and its comments."""

    def __init__(self, lines):
        self.declarations = []
        self.comments = {}  # line number: column of a comment behind code
        self.ends = {}  # first line of a type: last line of its braces
        self.open = [("scope", 0)]  # kind and number of parentheses of each open brace
        self.parts, self.first = [], None
        for number, line in enumerate(lines):
            if line.lstrip().startswith("#") or ACCESS.match(line):
                if line.startswith("#define"):
                    self.declarations.append(Declaration(number, number, line))
                continue
            self.read(number, line)

    def read(self, number, line):
        at = 0
        for token in TOKEN.finditer(line):
            if token[0].startswith("//"):
                if line[: token.start()].strip():
                    self.comments[number] = token.start()
                line = line[: token.start()]
                break
            self.take(number, line[at : token.end()], token[0])
            at = token.end()
        self.take(number, line[at:] + " ", "")

    def take(self, number, text, token):
        if self.first is None and text.strip():
            self.first = number
        self.parts.append(text)
        kind, depth, *where = self.open[-1]
        if token in "()" and token:
            self.open[-1] = (kind, depth + (1 if token == "(" else -1), *where)
        elif token == "{":
            self.brace(number, kind, depth)
        elif token == "}":
            self.close(number)
        elif kind not in ("function", "braces") and depth == 0 and (token == ";" or (token == "," and kind == "enum")):
            self.end(number)

    def brace(self, number, kind, depth):
        declaration = Declaration(self.first, number, "".join(self.parts).strip())
        inner = declaration.kind() if kind in ("scope", "type") and depth == 0 else "other"
        if inner == "type" and re.match(r"enum\b", declaration.text):
            inner = "enum"
        if inner == "other":
            before = declaration.text[:-1].rstrip()
            ends = depth == 0 and ")" in before and not re.search(r"(=|[:,]\s*\w+)$", before)
            self.open.append(("function" if ends else "braces", 0))
        else:
            self.declarations.append(declaration)
            self.open.append((inner, 0, declaration.first))
            self.parts, self.first = [], None

    def close(self, number):
        kind, _, *where = self.open.pop()
        if kind == "function" and self.open[-1][0] in ("scope", "type"):
            self.end(number)
        elif kind not in ("function", "braces"):
            if kind == "enum" and "".join(self.parts).strip(" }"):
                self.end(number)
            for first in where:
                self.ends[first] = number
            self.parts, self.first = [], None

    def end(self, number):
        text = "".join(self.parts).strip()
        if text not in (";", "};", "}"):
            self.declarations.append(Declaration(self.first, number, text))
        self.parts, self.first = [], None


def is_comment(line):
    return line.lstrip().startswith("//")


def is_code(line):
    return line.lstrip().startswith("//   ")


def escaped(text):
    """The text as Doxygen has to read it to print it; what stands between backticks it prints as it is."""
    parts = text.split("`")
    parts[::2] = [SPECIAL.sub(lambda m: "\\" + m[0], part) for part in parts[::2]]
    text = "`".join(parts)
    return re.sub(r"^(\s*)\[", r"\1&#91;", text)  # "[m, k]: ..." would define a link


def mark(lines, first, last):
    """Turns a block of comment lines into documentation; what is indented in it is code."""
    for i in range(first, last):
        indent, text = lines[i].split("//", 1)
        if is_code(lines[i]):
            begins = i == first or not lines[i - 1].lstrip().startswith("///  ")
            text = ("  @code{.cpp} " if begins else "  ") + text.strip()
            if i + 1 == last or not is_code(lines[i + 1]):
                text += " @endcode"
        else:
            text = escaped(text)
        lines[i] = f"{indent}///{text}"


def copy(lines, number, text):
    """Puts documentation in front of a declaration, on its line."""
    line = lines[number]
    indent = len(line) - len(line.lstrip())
    lines[number] = f"{line[:indent]}/** {escaped(text)} */ {line[indent:]}"


def opens_paragraph(lines, first):
    before = lines[first - 1].rstrip() if first else ""
    return not before or before.endswith("{") or bool(ACCESS.match(before))


def declarators(text):
    """`int a = 1, b = 2;` as `int a = 1;` and `int b = 2;`."""
    parts, depth, at = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "<({[") - (c in ">)}]")
        if c == "," and depth == 0:
            parts.append(text[at:i].strip())
            at = i + 1
    parts.append(text[at:].rstrip("; ").strip())
    head = re.match(r"(.*[\w>*&]\s+|.*[*&])(?=\w+\s*($|[={]))", parts[0])
    return [part + ";" for part in [parts[0], *(head[1] + part for part in parts[1:])]] if head else [text]


class Filter:
    """The lines of a header, as Doxygen is to read them."""

    def __init__(self, text):
        self.original = text.splitlines()
        self.lines = list(self.original)
        self.reader = Reader(self.original)
        self.held = None  # kind and text of the comment that opened the paragraph
        self.named = None  # name and text of the function that came last

    def run(self):
        before = begun = None
        hidden = -1
        for declaration in sorted(self.reader.declarations):
            if before is not None and any(not line.strip() for line in self.original[before : declaration.first + 1]):
                self.held = self.named = None
            before = declaration.last
            kind = declaration.kind()
            if kind == "scope" or declaration.first in (begun, hidden) or declaration.last <= hidden:
                continue  # one comment a line
            begun = declaration.first
            first, block = self.block_above(declaration.first, kind)
            if SPECIALIZATION.match(declaration.text) and begun in self.reader.ends:
                hidden = self.reader.ends[begun]
                self.blank(begun, hidden)
            elif HIDDEN.search(declaration.text):
                self.blank(begun, declaration.last)
            else:
                self.document(declaration, kind, first, block)
        return "\n".join(self.lines) + "\n"

    def block_above(self, number, kind):
        first = number
        while first and is_comment(self.original[first - 1]):
            first -= 1
        comments = [line for line in self.original[first:number] if not is_code(line)]
        block = " ".join(line.split("//", 1)[1].strip() for line in comments)
        if block and opens_paragraph(self.original, first):
            self.held = kind, block
        return first, block

    def blank(self, first, last):
        self.lines[first : last + 1] = [""] * (last + 1 - first)

    def document(self, declaration, kind, first, block):
        above = self.held[1] if self.held and self.held[0] == kind else None
        name = FUNCTION_NAME.search(declaration.text)
        if block:
            self.named = (name[1], block) if name else None
        elif name and self.named and self.named[0] == name[1]:
            above = self.named[1]
        behind = self.comment_behind(declaration.last)
        several = declarators(declaration.text) if kind == "other" and not name else []
        if len(several) > 1 and declaration.first == declaration.last:
            text = escaped(". ".join(filter(None, [block or above, behind])))
            self.lines[declaration.last] = " ".join(f"/** {text} */ {one}" for one in several) if text else " ".join(several)
            return
        if block:
            mark(self.lines, first, declaration.first)
        elif above:
            copy(self.lines, declaration.first, above)
        if behind:
            code = self.lines[declaration.last].rsplit("//", 1)[0]
            self.lines[declaration.last] = f"{code}{'///' if kind == 'type' else '///<'} {escaped(behind)}"

    def comment_behind(self, number):
        place = self.reader.comments.get(number)
        text = "" if place is None else self.original[number][place + 2 :].strip()
        return "" if text.startswith("NOLINT") else text


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    sys.stdout.write(Filter(Path(sys.argv[1]).read_text()).run())
    return 0


if __name__ == "__main__":
    sys.exit(main())
