#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds what the tests of the emulator need and runs them, with one library or with each in turn. threads: the runtime's
# tests under ThreadSanitizer, with a library of their own.
# usage: simt.sh [--build DIR] [release|asan|race|threads|all] [ctest options]    DIR: build/release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/release
if [ "${1:-}" = --build ]; then
  build=$2
  shift 2
fi
which=${1:-all}
shift $(($# > 0))

suite() {  # LABEL [ctest options]
  local label=$1 log=$build/simt.log
  shift
  mkdir -p "$build"
  echo "simt: building ${label}_suite in $build"
  { [ -e "$build/build.ninja" ] || cmake --preset release -B "$build" >"$log" 2>&1; } &&
    cmake --build "$build" --target "${label}_suite" >>"$log" 2>&1 || { cat "$log" >&2; return 1; }
  ctest --test-dir "$build" --output-on-failure -j2 --no-tests=error -C "$label" -L "^$label\$" "$@"
}

case $which in
  release) suite simt "$@" ;;
  asan | race | threads) suite "$which" "$@" ;;
  all) for label in simt asan race; do suite $label "$@"; done ;;
  *) sed -n '5s/^# //p' "$0"; exit 2 ;;
esac
