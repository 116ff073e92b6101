#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when an include goes up a layer, crosses operators, brings foreign text into device code, lets bindings compute, or imports in a circle.

usage: check_layers.py [ROOT]
"""

import ast
import graphlib
import re
import sys
from pathlib import Path

LAYERS = ["core", "cuda", "runtime", "jit", "op", "ops", "sparse", "packed", "diagnose", "kernels"]
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)
RUNS_SIMT = ("jit", "op", "ops", "diagnose")  # the layers that may include simt/
# The host branches of these two say what device words mean to a plain C++ compiler.
HOST_BRANCH = {"tensorcraft/device/base.h", "tensorcraft/device/host.h"}
# What of the library the launchers of kernels/ may include: these need no libtensorcraft.so.
HEADER_ONLY = {"tensorcraft/core/" + name for name in ("check.hpp", "dlpack.hpp", "error.hpp", "layout.hpp")}
HEADER_ONLY |= {"tensorcraft/cuda/kernel_config.hpp"}
# Plain C++ that the library and the launchers choose by.
PLAN = re.compile(r"tensorcraft/(op/choice/(rung|\w+_plan)\.h|ops/\w+/(plan\.h|(choice/)?\w+_plan\.h))$")
# What the Python module converts to and from: types that Python sees, the registry, streams. No kernel, launch, plan, rung or
# operator of its own, so what is decided or computed is the library's.
CONVERTED = re.compile(
    r"tensorcraft/(core/\w+|cuda/(device|graph|launch_watcher|memory|stream|stream_priority|wait_value)"
    r"|runtime/(dispatch/dispatch|memory/(pool|pinned|tensor|host_memory_device|cuda_memory_device)|safetensors/\w+|scheduler/scheduler"
    r"|transfer/engine)|jit/(kernel_cache|module|user_kernel|warmup)|op/(definition|operator|launch/trace|value|host/elements)|ops/all"
    r"|sparse/matrix|packed/\w+|diagnose/tune)\.hpp$"
)
COMPUTING = {"<cmath>", "<complex>", "<execution>", "<numeric>", "<random>", "<valarray>"}
# The package imports these of Python, and NumPy where arrays of it are asked for.
PYTHON_MODULES = {"ast", "asyncio", "atexit", "collections", "concurrent", "functools", "importlib", "inspect", "itertools", "math",
                  "numpy", "operator", "os", "sys", "tensorcraft", "threading", "types", "typing", "weakref", "__future__"}  # fmt: skip
IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+(\w+)(?:[\w.]*)(?=[ \t]+import\b|[ \t]+as\b|[ \t]*,|[ \t]*$)", re.MULTILINE)
FLOAT_TYPES = re.compile(r"tensorcraft/device/(base\.h|float\w*\.cuh|\w*types?\.(h|cuh))$")


def layer(path):
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else None  # the umbrella header is in no layer


def operator(path):
    parts = path.split("/")
    return parts[2] if parts[1] == "ops" and len(parts) > 3 else None


def home(path):
    """The folder of the file's operator, or its own."""
    return "/".join(path.split("/")[:3]) + "/" if operator(path) else path.rsplit("/", 1)[0] + "/"


def is_device_text(path):
    return path.endswith((".cuh", "/params.h")) or layer(path) == "device"


def launcher_problem(bracket, target):
    if bracket == "<":
        return None
    if layer(target) in ("device", "kernels") or target in HEADER_ONLY or PLAN.match(target):
        return None
    if layer(target) == "ops" and is_device_text(target):
        return None
    return "launchers include only device text, plan headers and what needs no library"


def plan_problem(path, bracket, target):
    if bracket == "<" or layer(target) == "device":
        return None
    if target.startswith(home(path)) and (is_device_text(target) or PLAN.match(target)):
        return None
    if PLAN.match(target) and layer(target) == "op":
        return None
    return "a plan header includes only device/, its own folder's device text, and plan headers"


def device_problem(path, bracket, target):
    if bracket == "<":
        return None if path in HOST_BRANCH else "device text includes nothing in angle brackets"
    if target.startswith("tensorcraft/device/"):
        return None
    if layer(path) != "device" and target.startswith(home(path)):
        return None
    return "device text includes only tensorcraft/device/ and its own operator's files"


def host_problem(path, target):
    if not target.startswith("tensorcraft/"):
        return "our headers are included by their path from the repository root, others in <>"
    here, there = layer(path), layer(target)
    if here is None or here == there == "simt":
        return None
    if there is None:
        return "the umbrella header is for users, not for the library"
    if here == "simt":
        return None if there in ("device", "core") else "simt/ includes only simt/, device/ and core/"
    if here == "core" and there == "device":
        return None if FLOAT_TYPES.match(target) else "core/ includes only the float types of device/"
    if there == "device":
        return None
    if there == "simt":
        return None if here in RUNS_SIMT else "simt/ is known to jit/, op/, ops/ and diagnose/ alone"
    if LAYERS.index(there) > LAYERS.index(here):
        return f"an include goes down only: {here} is below {there}"
    if operator(path) and operator(target) and operator(path) != operator(target):
        return "an operator never includes another operator"
    if operator(path) and target == "tensorcraft/ops/all.hpp":
        return "an operator includes ops/registry.hpp; ops/all.hpp has every operator"
    return None


def bench_problems(root):
    """bench/ is above the operators and below the command, and nothing of the library knows it."""
    for file in sorted((root / "bench").rglob("*")):
        if file.suffix not in (".hpp", ".cpp"):
            continue
        path, text = file.relative_to(root).as_posix(), file.read_text()
        for match in INCLUDE.finditer(text):
            bracket, target = match.groups()
            if bracket == '"' and not target.startswith(("bench/", "tensorcraft/")):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: includes {target}: bench/ includes only bench/ and the library"
            if bracket == "<" and target.startswith("benchmark/") and path != "bench/google_runner.cpp":
                yield f"{path}: includes {target}: only bench/google_runner.cpp knows Google Benchmark"


def bindings_problems(root):
    """Bindings and package convert: what they could compute or decide with is not there."""
    for file in sorted((root / "bindings" / "python").rglob("*")):
        if file.suffix not in (".hpp", ".cpp"):
            continue
        path, text = file.relative_to(root).as_posix(), file.read_text()
        for match in INCLUDE.finditer(text):
            bracket, target = match.groups()
            line = text.count("\n", 0, match.start()) + 1
            if target.startswith(("bench/", "cli/")) or (target.startswith("tensorcraft/") and not CONVERTED.match(target)):
                yield f"{path}:{line}: includes {target}: bindings convert, what decides or computes is the library's"
            if bracket == "<" and f"<{target}>" in COMPUTING:
                yield f"{path}:{line}: includes <{target}>: bindings convert, and compute nothing"
    for file in sorted((root / "python" / "tensorcraft").glob("*.py")):
        path, text = file.relative_to(root).as_posix(), file.read_text()
        for match in IMPORT.finditer(text):
            if match[1] not in PYTHON_MODULES and not (path.endswith(f"/{match[1]}.py")):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: imports {match[1]}: the package wraps, and computes nothing"


def imported(file):
    """The files of the package that one imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            for name in [node.module] if node.module else [alias.name for alias in node.names]:
                if file.with_name(f"{name}.py").exists():
                    yield name


def circle_problems(root):
    """The files of the package import each other in one order."""
    files = {file.stem: set(imported(file)) for file in sorted((root / "python" / "tensorcraft").glob("*.py"))}
    try:
        graphlib.TopologicalSorter(files).prepare()
    except graphlib.CycleError as error:
        yield f"python/tensorcraft: {' <- '.join(error.args[1])} is a circle of imports; move what the first needs down"


def problems(root):
    root = Path(root)
    yield from circle_problems(root)
    yield from bench_problems(root)
    yield from bindings_problems(root)
    for file in sorted((root / "tensorcraft").rglob("*")):
        if file.suffix not in (".hpp", ".cpp", ".h", ".cuh"):
            continue
        path = file.relative_to(root).as_posix()
        if layer(path) not in [None, "device", "simt", *LAYERS]:
            yield f"{path}: {layer(path)} is no layer of the design"
            continue
        text = file.read_text()
        for match in INCLUDE.finditer(text):
            bracket, target = match.groups()
            if layer(path) == "kernels":
                problem = launcher_problem(bracket, target)
            elif PLAN.match(path):
                problem = plan_problem(path, bracket, target)
            elif is_device_text(path):
                problem = device_problem(path, bracket, target)
            else:
                problem = host_problem(path, target) if bracket == '"' else None
            if problem:
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: includes {target}: {problem}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = list(problems(root))
    print("\n".join(found) or "check_layers: every include goes down")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
