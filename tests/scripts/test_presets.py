# SPDX-License-Identifier: Apache-2.0
"""The presets say what the build needs, in a schema that CMake 3.23 reads."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRESETS = json.loads((ROOT / "CMakePresets.json").read_text())
CONFIGURE = {p["name"]: p for p in PRESETS["configurePresets"]}


def test_cmake_lists_them():
    listed = subprocess.run(["cmake", "--list-presets=all"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert PRESETS["version"] <= 3
    for name in ("debug", "release", "profile", "asan", "tsan"):
        assert listed.count(f'"{name}"') >= 2, name  # to configure and to build
    assert CONFIGURE["default"]["hidden"]


@pytest.mark.parametrize("name, build_type, flags", [("debug", "Debug", "-DTENSORCRAFT_JIT_DEBUG"),
                                                     ("release", "Release", "-O3"),
                                                     ("profile", "RelWithDebInfo", "-O3 -g -DNDEBUG -DTENSORCRAFT_JIT_LINEINFO")])  # fmt: skip
def test_a_preset_sets_its_flags(name, build_type, flags):
    variables = CONFIGURE[name]["cacheVariables"]
    assert variables["CMAKE_BUILD_TYPE"] == build_type
    assert flags in variables["CMAKE_CXX_FLAGS_" + build_type.upper()]


def test_failing_tests_show_their_output():
    shown = {p["name"]: p["output"]["outputOnFailure"] for p in PRESETS["testPresets"]}
    assert shown["default"] and shown["release"]
    assert {p["configurePreset"] for p in PRESETS["testPresets"]} >= {"debug", "release"}


def test_no_build_setting_asks_for_fast_math():
    files = [ROOT / "CMakePresets.json", *ROOT.glob("**/CMakeLists.txt"), *(ROOT / "cmake").glob("*.cmake")]
    files = [f for f in files if "build" not in f.relative_to(ROOT).parts and ".venv" not in f.parts]
    named = [f.name for f in files if any(flag in f.read_text() for flag in ("fast-math", "fast_math", "-Ofast"))]
    assert not named
