# SPDX-License-Identifier: Apache-2.0
"""The presets say what the build needs, in a schema that CMake 3.23 reads."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRESETS = json.loads((ROOT / "CMakePresets.json").read_text())
NVCC = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
CONFIGURE = {p["name"]: p for p in PRESETS["configurePresets"]}
OLDEST_CMAKE = ROOT / ".venv" / "bin" / "cmake"


def test_cmake_lists_them():
    listed = subprocess.run(["cmake", "--list-presets=all"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert PRESETS["version"] <= 3
    for name in ("debug", "release", "profile", "asan", "tsan"):
        assert listed.count(f'"{name}"') >= 2, name  # to configure and to build
    assert CONFIGURE["default"]["hidden"]


# What replaces the -O3 of a release build, by target; cmake/compiler.cmake and CMakeLists.txt say why.
RELEASE_LEVELS = {"tensorcraft_host": "-O3", "tensorcraft_device": "-O3", "tensorcraft_operators": "-Og",
                  "tensorcraft_instances": "-Os", "tensorcraft_case_instances": "-O1", "tensorcraft_bench": "-Og",
                  "tensorcraft_bench_runner": "-O3", "tensorcraft_command": "-Og"}  # fmt: skip
LAUNCHERS = {"aot_launchers", "aot_routes", "launchers_tests", "launchers_gpu_tests", "launcher_headers"}


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """The options of each compile command of a preset, as a fresh build folder has them, by target."""
    known = {}

    def of(preset, *more):
        if (preset, more) not in known:
            folder = tmp_path_factory.mktemp(preset)
            configure = ["cmake", "--preset", preset, "-B", folder, "-DTENSORCRAFT_BUILD_TESTS=ON", *more]
            done = subprocess.run(configure, cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            found = known[preset, more] = {}
            for entry in json.loads((folder / "compile_commands.json").read_text()):
                words = entry["command"].split()
                target = re.search(r"CMakeFiles/([\w-]+)\.dir/", words[words.index("-o") + 1])
                found.setdefault(target[1], []).append(words)
        return known[preset, more]

    return of


def levels(commands):
    return {[word for word in words if re.fullmatch(r"-O[0-3gs]", word)][-1] for words in commands}


def launchers_of(commands):
    """The commands of nvcc; none where there is no nvcc."""
    return [words for target in LAUNCHERS for words in commands.get(target, [])]


def test_release_is_optimised_as_each_target_says(options):
    commands = options("release")
    assert {target: levels(commands[target]) for target in RELEASE_LEVELS} == {
        target: {level} for target, level in RELEASE_LEVELS.items()
    }
    for target in ("aot_launchers", "aot_routes"):
        assert levels(commands.get(target, [["-O3"]])) == {"-O3"}
    assert all("-G" not in words and "-lineinfo" not in words for words in launchers_of(commands))


def test_debug_has_device_debug_on_both_routes(options):
    commands = options("debug")
    assert all("-DTENSORCRAFT_JIT_DEBUG" in words for words in commands["tensorcraft_host"])
    assert all("-G" in words for words in launchers_of(commands))
    assert all("-g" in words and not any(w.startswith("-O") for w in words) for words in commands["tensorcraft_operators"])


def test_profile_is_optimised_and_has_lines_on_both_routes(options):
    commands = options("profile")
    assert all("-DTENSORCRAFT_JIT_LINEINFO" in words for words in commands["tensorcraft_host"])
    assert all("-lineinfo" in words and "-G" not in words for words in launchers_of(commands))
    assert all(levels(commands[target]) == {"-O3"} for target in RELEASE_LEVELS)
    assert {w for words in commands["tensorcraft_host"] for w in words if w.startswith("-g")} == {"-g"}


def test_without_nvcc_all_is_built_but_what_it_compiles(options):
    hidden = options("release", "-DTENSORCRAFT_NVCC=")
    assert launchers_of(hidden) == [] and {*RELEASE_LEVELS} <= {*hidden}
    assert {*options("release")} - {*hidden} <= LAUNCHERS


@pytest.mark.parametrize("preset", ["debug", "release", "profile"])
def test_no_command_asks_for_fast_math(options, preset):
    commands = [words for target in options(preset).values() for words in target]
    assert len(commands) > 300
    assert not [w for words in commands for w in words if "fast-math" in w or "fast_math" in w or w == "-Ofast"]


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
def test_machine_code_of_a_profile_build_has_lines(options, tmp_path):
    """What a profiler reads: the table of lines in the machine code."""
    flags = [w for w in options("profile")["aot_launchers"][0] if re.fullmatch(r"-std=.*|-O3|-g|-lineinfo", w)]
    assert "-lineinfo" in flags
    (tmp_path / "a.cu").write_text("__global__ void k(float* p) { p[threadIdx.x] *= 2; }\n")
    for lines in (True, False):
        kept = [w for w in flags if lines or w not in ("-g", "-lineinfo")]
        subprocess.run([NVCC, *kept, "-cubin", "-arch=sm_90a", "-o", "a.cubin", "a.cu"], cwd=tmp_path, check=True, timeout=600)
        assert (b".debug_line" in (tmp_path / "a.cubin").read_bytes()) == lines


@pytest.mark.skipif(not OLDEST_CMAKE.exists(), reason="setup.sh --dev has not run in this tree")
def test_the_oldest_cmake_configures_all(tmp_path):
    required = re.match(r"cmake_minimum_required\(VERSION ([\d.]+)\)", (ROOT / "CMakeLists.txt").read_text())[1]
    version = subprocess.run([OLDEST_CMAKE, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.startswith(f"cmake version {required}."), version
    configure = [OLDEST_CMAKE, "--preset", "release", "-B", tmp_path, "-DTENSORCRAFT_BUILD_TESTS=ON"]
    done = subprocess.run(configure, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(json.loads((tmp_path / "compile_commands.json").read_text())) > 300


FAILING = """cmake_minimum_required(VERSION 3.23)
project(failing LANGUAGES NONE)
enable_testing()
add_test(NAME failing COMMAND ${CMAKE_COMMAND} -E cat ${CMAKE_SOURCE_DIR}/text absent)
"""


@pytest.mark.parametrize("preset", [p["name"] for p in PRESETS["testPresets"]])
def test_a_preset_configures_builds_and_shows_what_a_failing_test_prints(tmp_path, preset):
    """In a project of one test: a whole build of each preset takes too long to be made for this."""
    (tmp_path / "CMakePresets.json").write_text(json.dumps(PRESETS))
    (tmp_path / "CMakeLists.txt").write_text(FAILING)
    (tmp_path / "text").write_text("what it prints")
    folder = next(p["configurePreset"] for p in PRESETS["testPresets"] if p["name"] == preset)
    for command in (["cmake", "--preset", folder], ["cmake", "--build", "--preset", folder]):
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    done = subprocess.run(["ctest", "--preset", preset], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (tmp_path / "build" / folder / "build.ninja").exists()
    assert done.returncode != 0 and "what it prints" in done.stdout


@pytest.mark.parametrize("preset", [p["name"] for p in PRESETS["testPresets"]])
def test_the_test_presets_find_the_tests(preset):
    folder = next(p["configurePreset"] for p in PRESETS["testPresets"] if p["name"] == preset)
    if not (ROOT / "build" / folder / "CTestTestfile.cmake").exists():
        pytest.skip(f"there is no build/{folder}")
    listed = subprocess.run(["ctest", "--preset", preset, "-N"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert int(re.search(r"Total Tests: (\d+)", listed)[1]) > 30


def test_failing_tests_show_their_output():
    shown = {p["name"]: p["output"]["outputOnFailure"] for p in PRESETS["testPresets"]}
    assert shown["default"] and shown["release"]
    assert {p["configurePreset"] for p in PRESETS["testPresets"]} >= {"debug", "release"}
