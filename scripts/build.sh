#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures, builds and installs the library into build/PRESET/install and the Python package into build/PRESET/python.
# usage: build.sh [--no-tests] [--no-onednn] [PRESET]    PRESET: debug, release (default), profile, asan, tsan
# --no-onednn builds into build/PRESET-no-onednn. asan and tsan leave the Python package out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=release tests=ON onednn=ON
for argument in "$@"; do
  case $argument in
    --no-tests) tests=OFF ;;
    --no-onednn) onednn=OFF ;;
    debug | release | profile | asan | tsan) preset=$argument ;;
    *) sed -n '3,5s/^# //p' scripts/build.sh; exit 2 ;;
  esac
done
build=build/$preset
[ $onednn = ON ] || build+=-no-onednn
log=$build/build.log
mkdir -p "$build"

run() {  # quiet unless it fails
  "$@" >"$log" 2>&1 || { cat "$log" >&2; echo "build: failed: $*" >&2; exit 1; }
}

# A build folder that was moved with its tree cannot be reused.
if [ -e "$build/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$build/CMakeCache.txt"; then
  rm -rf "$build" && mkdir -p "$build"
fi
# Nothing changed since the last complete build, with what is asked for or more: done. Folders count too, so a deleted file is seen.
sources=(CMakeLists.txt CMakePresets.json bindings cmake python tensorcraft tests)
[ ! -d cli ] || sources+=(bench benchmarks cli)
stamp=$build/complete-tests-$tests
[ -e "$stamp" ] || [ $tests = ON ] || stamp=$build/complete-tests-ON
if [ -e "$stamp" ] && [ -z "$(find "${sources[@]}" .venv/installed -name __pycache__ -prune -o -newer "$stamp" -print -quit)" ]; then
  exit 0
fi
started=$(mktemp "$build/started.XXXXXX")
trap 'rm -f "$started"' EXIT

if [ ! -e "$build/build.ninja" ] || ! grep -q "TENSORCRAFT_BUILD_TESTS:BOOL=$tests" "$build/CMakeCache.txt"; then
  echo "build: configuring $build"
  run cmake --preset $preset -B "$build" -DTENSORCRAFT_BUILD_TESTS=$tests -DTENSORCRAFT_WITH_ONEDNN=$onednn
fi
echo "build: building $build"
run cmake --build "$build"
run cmake --install "$build" --prefix "$build/install"

finish() {
  rm -f "$build"/complete-tests-*
  mv "$started" "$build/complete-tests-$tests"  # as old as the start, so an edit made meanwhile is built next time
}
case $preset in
  asan | tsan)  # a sanitizer's library must be the first of a process, which Python does not give it
    finish
    echo "build: done: $build/install"
    exit 0 ;;
esac

python=$PWD/.venv/bin/python
if [ ! -e "$build/bindings/build.ninja" ]; then
  run cmake -S bindings/python -B "$build/bindings" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_PREFIX_PATH=$PWD/$build/install;$PWD/.venv" "-DPython_EXECUTABLE=$python" \
    "-Dnanobind_DIR=$("$python" -m nanobind --cmake_dir)"
fi
run cmake --build "$build/bindings"
run cmake --install "$build/bindings" --prefix "$build/python"
finish
echo "build: done: $build/install and $build/python"
