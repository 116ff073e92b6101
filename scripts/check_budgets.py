#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a file outgrows its budget or breaks a rule that text alone can show.

usage: check_budgets.py [ROOT]
"""

import collections
import re
import statistics
import sys
from pathlib import Path
from typing import NamedTuple

import check_layers
import control_path
from sources import CPP, code_of, files

VARIABLES = {
    "TENSORCRAFT_" + name
    for name in ("ALLOW_TF32", "CACHE_DIR", "CONFIG", "DEVICE", "LOG", "NVRTC", "STATUS", "TRACE")
}
HEADERS = (".hpp", ".h", ".cuh")
PRIVATE_HEADERS = "tensorcraft/op/host/onednn"  # CMakeLists.txt leaves these out of the installed set
MEDIAN_LINES = 150
ROOM = 0.03  # of its limit that a file keeps free: what is added to a full one goes where there is room, not where it belongs
GENERATED = re.compile(
    r"<!-- (results|index|layers)\b.*?<!-- /\1 -->", re.DOTALL
)  # as long as what was measured, or as there are operators
# A speed that a person typed, of which nothing can say whether it still holds: generated regions, code and what stands in
# backticks (a setting, an exact number) are not read. In READMEs of the library and the changelog a ratio counts too.
TYPED_FIGURE = re.compile(
    r"(?<![\w.`/^-])\d[\d,]*(?:\.\d+)? ?(?:%|[mnu]s\b|[GT]B/s|[GT]FLOPS?\b|times (?:as (?:fast|slow|long)|faster|slower))"
)
TYPED_RATIO = re.compile(TYPED_FIGURE.pattern + r"|(?<![\w.`/^-])\d+\.\d+(?![\w.])")
NOT_TYPED = re.compile(r"<!-- (\w+)\b.*?<!-- /\1 -->|^```.*?^```|`[^`\n]+`|\d+\.\d+\.\d+", re.DOTALL | re.MULTILINE)
WITH_RATIOS = re.compile(r"(README|CHANGELOG)\.md|tensorcraft/.*README\.md|examples/.*README\.md")
# Sources whose test has another name, and which test that is.
TESTED_ELSEWHERE = {
    "tensorcraft/op/checks/check.cpp": "every operator's refused arguments, tests/ops/",
    "tensorcraft/op/expression/": "the language and every variant of elementwise(), tests/ops/expression_test.cpp",
    "tensorcraft/op/checks/rows.cpp": "every row operator's conformance, tests/ops/conformance_test.cpp",
    "tensorcraft/op/host/elements.cpp": "every reference row, tests/ops/conformance_test.cpp",
    "tensorcraft/ops/all.cpp": "tests/ops/conformance_test.cpp runs what it lists",
}
# An operator costs lines in ops/all.hpp and ops/registry.hpp, and may serve one more file; its folder, its launcher and what a
# script writes do not count, nor do tests, examples and documents.
MAX_FILES_OF_AN_OPERATOR = 3
# A rung: its device code, its row and choice in plan headers, and <op>.cpp or a launcher.
MAX_FILES_OF_A_RUNG = 3
# What the smallest operators may cost, folder and launcher without README.
LINES_OF_OPERATORS = {"l2_normalize": 500, "masked_mean": 350}
# Lines of source that each layer may have: what it has, rounded up to the next hundred. A limit for each file alone lets the
# weight go sideways. Raising one is a line here and its reason in the body of the commit that needs it.
LINES_OF_LAYERS = {
    "tensorcraft": 200, "tensorcraft/core": 3750, "tensorcraft/cuda": 3800, "tensorcraft/runtime": 8900, "tensorcraft/jit": 5700,
    "tensorcraft/op": 12450, "tensorcraft/ops": 51250, "tensorcraft/sparse": 600, "tensorcraft/packed": 600,
    "tensorcraft/diagnose": 2650, "tensorcraft/kernels": 3500, "tensorcraft/device": 10800, "tensorcraft/simt": 5000,
    "bindings": 7200, "python": 6200, "cli": 3300, "bench": 3000, "benchmarks": 7800, "cmake": 600, "examples": 4400,
    "scripts": 3600, "tests": 85350,
}  # fmt: skip
SOURCE = re.compile(r".*\.(cpp|hpp|h|cuh|cu|py|pyi|sh|cmake)|(.*/)?CMakeLists\.txt")
# scripts/control_path.py counts this of a call: files from Python to the kernel, returns of the choice's parameter.
CONTROL_PATHS = {"softmax": (10, 0), "gemm persistent": (20, 7)}
NAMING_PLACES = re.compile(r"(tensorcraft|bindings|python|cli|bench|cmake|scripts)/|(.*/)?CMakeLists\.txt$")
GENERIC_PLACES = re.compile(r"(tensorcraft|bindings|cli|scripts)/")  # bench/ has peers, python/ the methods of Tensor
WRITTEN = re.compile(r"scripts/\w+\.py writes this")
# The words this script and its tests look for stand in them.
EXEMPT = {"scripts/check_budgets.py", "tests/scripts/test_check_budgets.py"}


class Rule(NamedTuple):
    """A pattern that no file of `where` may hold; C++ is read without its comments."""

    pattern: str
    where: str
    reason: str
    unless: str = r"(?!)"
    flags: re.RegexFlag = re.NOFLAG


RULES = [
    Rule(r"\bstatic\s+(?!const(expr|init)\b)"
         r"([^();={}]*=\s*(\*?\s*new\b|\[|[^;={}]*[\w>]\()|(const\s+)?std::(vector|string|map)\b[^();={}]*;)",
         r"(tensorcraft/(core|cuda|jit|op|ops|runtime|simt)|bindings)/",
         "a child forked while another thread makes it waits for ever: core/first_made.hpp", r"tensorcraft/core/fork\.cpp"),
    Rule(r"\b(secure_)?getenv\b|os\.environ", r"(tensorcraft|bindings|python|cli|bench)/",
         "only core/config.cpp reads the environment", r"tensorcraft/core/config\.cpp"),
    Rule(r"\basm\b(?!\")|\b__asm", r"tensorcraft/", "asm stands in device/ptx/ only", r"tensorcraft/device/ptx/"),
    Rule(r"\b__shared__\b", r"tensorcraft/", "shared memory comes from device/shared.cuh", r"tensorcraft/device/shared\.cuh"),
    Rule(r"\b(fmt|spdlog|nlohmann|nanobind)::|\bdnnl|oneapi/", r"tensorcraft/.*\.(hpp|h|cuh)$",
         "no third-party type in an installed header", PRIVATE_HEADERS),
    Rule(r'#\s*include\s*"tensorcraft/op/host/onednn', r"(bindings|cli|examples)/|tensorcraft/.*\.(hpp|h|cuh)$",
         "a private header is included where users are", PRIVATE_HEADERS),
    Rule(r"#\s*define\s+(?!TC_)\w+", r"tensorcraft/.*\.(hpp|h|cuh)$", "macros of installed headers start with TC_",
         PRIVATE_HEADERS + r"|tensorcraft/core/source_location\.hpp"),
    Rule(r"\bcuda_runtime|\bcuda(Launch|Get|Func|Stream|Event)\w*\(", r"tensorcraft/", "the CUDA runtime appears in kernels/ only",
         r"tensorcraft/kernels/"),
    Rule(r"#\s*include\s*<[^>]*[./][^>]*>", r"tensorcraft/core/.*\.hpp$", "headers of core/ include std alone"),
    Rule(r"\bcuMem\w*(Alloc|Free)|\bcuMemCreate|\bcudaMalloc|\bmem_(host_)?(alloc|free)",
         r"(tensorcraft|bindings|bench|benchmarks|cli)/", "driver memory is allocated in cuda/ only", r"tensorcraft/cuda/"),
    Rule(r"\bcuda::(de)?allocate(_segment|_pinned|_for_graph)?\(", r"(tensorcraft|bindings|bench|benchmarks|cli|examples)/",
         "device memory comes from runtime/memory", r"tensorcraft/(cuda|runtime/memory)/"),
    Rule(r'"[^"\n]*(CUDA|[Tt]oolkit|NVRTC) (version )?\d', r"(tensorcraft|bindings|python)/",
         "an error names a capability, never a CUDA version"),
    Rule(r"cuda-python|numba\.cuda|\bcupy\b|pycuda", r"(tensorcraft|bindings|python|cli|examples|docs|scripts|pyproject|README)",
         "no external CUDA package is used or named", r"python/tensorcraft/_frameworks\.py", re.IGNORECASE),
    Rule("CUDA is missing because no Python bindings are found|GPU mode requires the", r"(tensorcraft|bindings|python|cli|examples)/",
         "a message that must not exist"),
    Rule(r"\b(ctypes|cffi|cudart)\b|libcuda|\bcu(da)?[A-Z]\w*\(", r"python/tensorcraft/", "Python calls no CUDA API itself"),
    Rule(r"D?TC_HAS_\w+", r"(.*/)?(CMakeLists\.txt|CMakePresets\.json|.*\.cmake)$", "feature macros are no build settings"),
]  # fmt: skip


def limit_of(name):
    if name in ("README.md", "ARCHITECTURE.md"):
        return 150
    if name.endswith(".md"):
        return 200
    if name.endswith(".cuh"):
        return 400
    return 500 if name.endswith((".cpp", ".hpp", ".h", ".cu", ".py")) else None


def size_problems(tree):
    lengths = []
    for name, text in tree.items():
        written = GENERATED.sub("", text) if name.endswith(".md") else text
        lines, limit = written.count("\n"), limit_of(name)
        if limit and lines > limit:
            yield f"{name}: {lines} lines, at most {limit}: split by idea"
        elif limit and lines > limit * (1 - ROOM):
            yield f"{name}: {lines} lines, within {ROOM:.0%} of its limit of {limit}: split by idea before it is full"
        if name.endswith(CPP):
            lengths.append(lines)
            if not text.startswith("// SPDX-License-Identifier: Apache-2.0\n"):
                yield f"{name}:1: the first line names the licence"
    if lengths and statistics.median(lengths) > MEDIAN_LINES:
        yield f"the median C++ file has {statistics.median(lengths):g} lines, at most {MEDIAN_LINES}"


def layer_of(name):
    """A folder of tensorcraft/, or another folder of the root."""
    folder, _, rest = name.partition("/")
    layer = check_layers.layer(name) if folder == "tensorcraft" else None
    return f"{folder}/{layer}" if layer else folder if rest else None


def lines_of_layers(tree):
    lines = collections.Counter()
    for name, text in tree.items():
        if SOURCE.fullmatch(name) and layer_of(name):
            lines[layer_of(name)] += text.count("\n")
    return lines


def layer_problems(tree):
    for layer, lines in lines_of_layers(tree).items():
        ceiling = LINES_OF_LAYERS.get(layer, 0)
        if lines > ceiling:
            yield f"{layer}: {lines} lines of source, at most {ceiling}: cut some, or raise the ceiling and say why in the commit"


def rule_problems(tree):
    for name, text in tree.items():
        code = None
        for rule in RULES:
            if name in EXEMPT or not re.match(rule.where, name) or re.match(rule.unless, name):
                continue
            code = code_of(name, text) if code is None else code
            for match in re.finditer(rule.pattern, code, rule.flags):
                yield f"{name}:{code.count(chr(10), 0, match.start()) + 1}: {match[0].strip()}: {rule.reason}"


def variable_problems(tree):
    """TENSORCRAFT_ names are build settings, which CMake names, or the eight variables."""
    name_of = re.compile(r"\bTENSORCRAFT_[A-Z][A-Z0-9_]*")
    settings = set()
    for name, text in tree.items():
        if re.search(r"(CMakeLists\.txt|\.cmake|CMakePresets\.json)$", name):
            lines = [line for line in text.splitlines() if "ENV" not in line]
            settings.update(
                n.removeprefix("D") for n in re.findall(r"\bD?TENSORCRAFT_[A-Z][A-Z0-9_]*", "\n".join(lines))
            )
    found = {}
    for name, text in tree.items():
        for variable in name_of.findall(text):
            found.setdefault(variable, name)
    for variable, name in sorted(found.items()):
        if variable not in VARIABLES and variable not in settings:
            yield f"{name}: {variable} is none of the eight environment variables, and no build setting"
    page = tree.get("docs/environment.md", "")
    for variable in sorted(VARIABLES):
        if variable not in found:
            yield f"{variable}: nothing reads it"
        if variable not in page:
            yield f"docs/environment.md: {variable} is missing"


def macro_problems(tree):
    places = {}
    for name, text in tree.items():
        if name.endswith(CPP):
            for macro in re.findall(r"#\s*define\s+(TC_HAS_\w+)", code_of(name, text)):
                places.setdefault(macro, set()).add(name)
    for macro, names in sorted(places.items()):
        if len(names) > 1:
            yield f"{macro} is defined in {len(names)} files, in one at most: {', '.join(sorted(names))}"


def test_problems(tree):
    for name in tree:
        if not (name.startswith("tensorcraft/") and name.endswith(".cpp")):
            continue
        path = Path(name).relative_to("tensorcraft")
        test = f"tests/{path.with_suffix('')}_test.cpp"
        if path.parts[0] == "ops" and len(path.parts) > 2:
            test = f"tests/ops/{path.parts[1]}_test.cpp"
        if test not in tree and not any(name.startswith(known) for known in TESTED_ELSEWHERE):
            yield f"{name}: there is no {test}"
    for known in TESTED_ELSEWHERE:
        if "scripts/check_budgets.py" in tree and not any(name.startswith(known) for name in tree):
            yield f"scripts/check_budgets.py: {known} is excused and does not exist"


def operators_of(tree):
    """The folders of ops/."""
    return sorted({name.split("/")[2] for name in tree if re.match(r"tensorcraft/ops/\w+/", name)})


def names_operator(op, name, code):
    """Does code name the operator: by a path, a namespace, its registration, or a comparison with its name?"""
    if (
        re.search(rf"\bops/{op}/|\bkernels/{op}\.", code)
        or GENERIC_PLACES.match(name)
        and re.search(rf'[!=]= *"{op}"', code)
    ):
        return True
    without_text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', code)
    return bool(re.search(rf"\b(ops|kernel|detail)::{op}\b|\bOperatorList {op}\(|\b[A-Z]\w*\({op}\)", without_text))


def operator_problems(tree):
    places = {name: code_of(name, text) for name, text in tree.items()
              if NAMING_PLACES.match(name) and name not in EXEMPT and not name.endswith(".md") and not WRITTEN.search(text)}  # fmt: skip
    for op in operators_of(tree):
        own = re.compile(rf"tensorcraft/(ops/{op}/|kernels/{op}(_\w+)?\.(cuh|hpp)$)")
        found = [name for name, code in places.items() if not own.match(name) and names_operator(op, name, code)]
        if len(found) > MAX_FILES_OF_AN_OPERATOR:
            yield f"{op}: {len(found)} files outside its folder name it, at most {MAX_FILES_OF_AN_OPERATOR}: {', '.join(found)}"


def figure_problems(tree):
    for name, text in tree.items():
        if not name.endswith(".md"):
            continue
        prose = NOT_TYPED.sub(lambda m: "\n" * m[0].count("\n"), text)
        pattern = TYPED_RATIO if WITH_RATIOS.fullmatch(name) else TYPED_FIGURE
        for number, line in enumerate(prose.splitlines(), 1):
            for match in pattern.finditer(line):
                yield f"{name}:{number}: {match[0]}: a figure comes from benchmarks/results, say the finding in words"


def place_of_rungs(op, file):
    """Files that count as one have one place."""
    return re.sub(rf"(/ops/{op})/(choice/)?\w+_plan\.h$", r"\1/plan.h", file)


def rung_problems(tree):
    """Host variants may ask plan.h about a rung, so _cpu.cpp does not count. All launchers of an operator are one file, and so
    are its plan headers, plan.h with the ladder and <what>_plan.h with how some rungs are chosen. Expressions are a second ladder of elementwise, whose variants have names of the first."""
    for rung in tree:
        match = re.fullmatch(r"tensorcraft/ops/(\w+)/\d\d_(\w+)\.cuh", rung)
        if not match:
            continue
        op, name = match.groups()
        pascal = name.title().replace("_", "")
        named = re.compile(rf'(?<!{{)"{name}"|\bk?{pascal}(Row)?\b|\b(plan|accepts|suits|choose)_{name}\b|\d\d_{name}\.cuh"|'
                           rf"\b{name}_(launch|problem|doubt|refusal|preference|start)\b")  # fmt: skip
        own = re.compile(rf"tensorcraft/(ops/{op}/(?!.*_cpu\.cpp|.*\.md|expression)|(kernels/{op})(_\w+)?\.(cuh|hpp)$)")
        found = {own.match(file)[2] or place_of_rungs(op, file) for file, text in tree.items()
                 if own.match(file) and (file == rung or named.search(code_of(file, text)))}  # fmt: skip
        if len(found) > MAX_FILES_OF_A_RUNG:
            names = ", ".join(sorted(file.removeprefix("tensorcraft/") for file in found))
            yield f"{rung}: {len(found)} files name the rung, at most {MAX_FILES_OF_A_RUNG}: {names}"


def operator_size_problems(tree):
    for op, limit in LINES_OF_OPERATORS.items():
        own = re.compile(rf"tensorcraft/(ops/{op}/(?!README\.md)|kernels/{op}\.cuh$)")
        lines = sum(text.count("\n") for name, text in tree.items() if own.match(name))
        if lines > limit:
            yield f"tensorcraft/ops/{op}: {lines} lines with its launcher, at most {limit}"


def control_problems(tree):
    for call, (most_files, most_returns) in CONTROL_PATHS.items() if control_path.START in tree else ():
        try:
            files_of, at = control_path.path(tree, *control_path.CALLS[call]), control_path.stays(tree, *control_path.CALLS[call])
        except LookupError as error:
            yield f"scripts/control_path.py: {call}: {error.args[0]}"
            continue
        if len(files_of) > most_files:
            yield f"{call}: {len(files_of)} files from Python to its kernel, at most {most_files}: {', '.join(files_of)}"
        if control_path.returns(at) > most_returns:
            yield f"{call}: the choice's parameter returns {control_path.returns(at)} times, at most {most_returns}: {', '.join(at)}"


def problems(root):
    tree = dict(files(Path(root)))
    for check in (
        size_problems,
        layer_problems,
        rule_problems,
        variable_problems,
        macro_problems,
        test_problems,
        operator_problems,
        rung_problems,
        operator_size_problems,
        control_problems,
        figure_problems,
    ):
        yield from check(tree)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = list(problems(root))
    print("\n".join(found) or "check_budgets: every file is within its budget")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
