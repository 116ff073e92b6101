#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Configures, builds and installs the library into build/PRESET/install and the Python package into build/PRESET/python,
# where .venv finds it: .venv/bin/python imports it from any folder, .venv/bin/tensorcraft is the command.
# usage: build.sh [--package | --no-tests] [--no-onednn] [PRESET]    PRESET: debug, release (default), profile, asan, tsan
# --package makes the library and the Python package alone, --no-tests the command too. Else benchmarks and tests are built as well.
# --no-onednn builds into build/PRESET-no-onednn. asan and tsan leave the Python package out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=release level=3 onednn=ON  # 1: library and package, 2: and the command, 3: everything
for argument in "$@"; do
  case $argument in
    --package) level=1 ;;
    --no-tests) level=2 ;;
    --no-onednn) onednn=OFF ;;
    debug | release | profile | asan | tsan) preset=$argument ;;
    *) sed -n '3,7s/^# //p' scripts/build.sh; exit 2 ;;
  esac
done
build=build/$preset
[ $onednn = ON ] || build+=-no-onednn
log=$build/build.log
mkdir -p "$build"

run() {  # quiet unless it fails
  "$@" >"$log" 2>&1 || { cat "$log" >&2; echo "build: failed: $*" >&2; exit 1; }
}

# Reads the steps of ninja, "[212/640] ...", and says how far it is: on a terminal at once, else every half minute.
progress() {
  local line counts finished total left shown=$SECONDS begin=$SECONDS
  while IFS= read -r line; do
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    counts=${BASH_REMATCH[0]} finished=${BASH_REMATCH[1]} total=${BASH_REMATCH[2]} left=
    if ((finished >= 20)); then left=", about $(((SECONDS - begin) * (total - finished) / finished / 60 + 1)) min left"; fi
    if [ -t 1 ]; then
      printf '\r\033[Kbuild: %s%s' "$counts" "$left"
    elif ((SECONDS - shown >= 30)); then
      echo "build: $counts$left"
      shown=$SECONDS
    fi
  done
  if [ -t 1 ]; then printf '\r\033[K'; fi
}
build_with_progress() {
  NINJA_STATUS='[%f/%t] ' cmake --build "$1" 2>&1 | tee "$log" | progress ||
    { cat "$log" >&2; echo "build: failed: cmake --build $1" >&2; exit 1; }
}

python=$PWD/.venv/bin/python
link_into_environment() {  # .venv has the Python package and the command of this build
  [ -x "$python" ] || return 0
  local site
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  echo "$PWD/$build/python" >"$site/tensorcraft-build.pth"
  [ ! -e "$build/install/bin/tensorcraft" ] || ln -sfn "$PWD/$build/install/bin/tensorcraft" .venv/bin/tensorcraft
}

# A build folder that was moved with its tree cannot be reused.
if [ -e "$build/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$build/CMakeCache.txt"; then
  rm -rf "$build" && mkdir -p "$build"
fi
# Nothing changed since the last complete build, with what is asked for or more: done. Folders count too, so a deleted file is seen.
sources=(CMakeLists.txt CMakePresets.json bindings cmake python tensorcraft tests)
[ ! -d cli ] || sources+=(bench benchmarks cli)
stamp=$build/complete-$level
for more in 2 3; do [ -e "$stamp" ] || ((more < level)) || stamp=$build/complete-$more; done
if [ -e "$stamp" ] && [ -z "$(find "${sources[@]}" .venv/installed -name __pycache__ -prune -o -newer "$stamp" -print -quit)" ]; then
  case $preset in asan | tsan) ;; *) link_into_environment ;; esac
  exit 0
fi
started=$(mktemp "$build/started.XXXXXX")
trap 'rm -f "$started"' EXIT

from() { if ((level >= $1)); then echo ON; else echo OFF; fi; }
parts="-DTENSORCRAFT_BUILD_COMMAND=$(from 2) -DTENSORCRAFT_BUILD_BENCHMARKS=$(from 3) -DTENSORCRAFT_BUILD_TESTS=$(from 3)"
if [ ! -e "$build/build.ninja" ] || [ "$(cat "$build/parts" 2>/dev/null)" != "$parts" ]; then
  echo "build: configuring $build"
  run cmake --preset $preset -B "$build" $parts -DTENSORCRAFT_WITH_ONEDNN=$onednn
  echo "$parts" >"$build/parts"
fi
echo "build: building $build"
build_with_progress "$build"
run cmake --install "$build" --prefix "$build/install"

finish() {
  rm -f "$build"/complete-*
  mv "$started" "$build/complete-$level"  # as old as the start, so an edit made meanwhile is built next time
}
case $preset in
  asan | tsan)  # a sanitizer's library must be the first of a process, which Python does not give it
    finish
    echo "build: done: $build/install"
    exit 0 ;;
esac

if [ ! -e "$build/bindings/build.ninja" ]; then
  run cmake -S bindings/python -B "$build/bindings" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    "-DCMAKE_PREFIX_PATH=$PWD/$build/install;$PWD/.venv" "-DPython_EXECUTABLE=$python" \
    "-Dnanobind_DIR=$("$python" -m nanobind --cmake_dir)"
fi
build_with_progress "$build/bindings"
run cmake --install "$build/bindings" --prefix "$build/python"
finish
link_into_environment
echo "build: done: $build/install and $build/python"
