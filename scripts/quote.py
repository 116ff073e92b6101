# SPDX-License-Identifier: Apache-2.0
"""Fills the quotes of the documents from the files they name.

A quote is `<!-- quote: PATH -->` to `<!-- /quote -->`, for the whole file, or `<!-- quote: PATH "first" "last" -->`
for the lines from the first that holds one text to the next that holds the other, or with "^last" starts with it.
The licence line is left out.
"""

import re

import regions

GENERATED = {"docs/operators.md"}  # its examples are run when it is written
LANGUAGES = {"py": "python", "cpp": "cpp", "hpp": "cpp", "cuh": "cpp", "cu": "cpp", "h": "cpp", "txt": "cmake", "json": "json", "sh": "bash"}


def lines_between(lines, first, last, place):
    def holds(line, text):
        return line.startswith(text[1:]) if text.startswith("^") else text in line

    begin = next((i for i, line in enumerate(lines) if holds(line, first)), None)
    if begin is None:
        raise SystemExit(f"quote: {place}: no line holds: {first}")
    end = next((i for i in range(begin, len(lines)) if holds(lines[i], last)), None)
    if end is None:
        raise SystemExit(f"quote: {place}: no line after that holds: {last}")
    return lines[begin : end + 1]


def quote(argument, root=regions.ROOT):
    path, *ends = re.findall(r'"[^"]*"|\S+', argument)
    try:
        lines = (root / path).read_text().splitlines()
    except OSError:
        raise SystemExit(f"quote: there is no file {path}") from None
    lines = [line for line in lines if "SPDX-License-Identifier" not in line and not line.startswith("#!")]
    if ends:
        lines = lines_between(lines, *(end.strip('"') for end in ends), path)
    return f"```{LANGUAGES[path.rsplit('.', 1)[1]]}\n" + "\n".join(lines).strip("\n") + "\n```\n"


def typed_by_hand(root=regions.ROOT):
    """Code in a document that no quote put there."""
    for path in regions.documents(root):
        if path.relative_to(root).as_posix() in GENERATED:
            continue
        text = regions.filled(path.read_text(), "quote", lambda _: "")
        for language in re.findall(r"^```(cpp|python|c\+\+|py)$", text, re.MULTILINE):
            yield f"{path.relative_to(root)}: {language} code stands outside a quote"
