#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the tests of the SIMT device need and runs them, in one build or in each in turn.
# usage: simt.sh [release|asan|race|all] [ctest options]    release: build/release, the others build/simt-asan and build/race
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

which=${1:-all}
shift $(($# > 0))

suite() {  # PRESET [ctest options]
  local preset=$1 build=build/$1
  shift
  local log=$build/simt.log
  mkdir -p "$build"
  echo "simt: building $build"
  { [ -e "$build/build.ninja" ] || cmake --preset "$preset" >"$log" 2>&1; } &&
    cmake --build "$build" --target simt_suite >>"$log" 2>&1 || { cat "$log" >&2; return 1; }
  ctest --test-dir "$build" --output-on-failure -j2 --no-tests=error -L simt "$@"
}

case $which in
  release | race) suite "$which" "$@" ;;
  asan) suite simt-asan "$@" ;;
  all) for preset in release simt-asan race; do suite $preset "$@"; done ;;
  *) sed -n '4s/^# //p' "$0"; exit 2 ;;
esac
