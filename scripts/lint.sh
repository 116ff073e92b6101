#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs clang-tidy 19 over library sources: those that differ from main, those in the folders given, or all.
# usage: lint.sh [--build FOLDER] [--all | PATH...]    needs a configured build (scripts/build.sh); FOLDER is build/release if not given
# Sources that FOLDER compiles together are read together: headers are nearly all of the work.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/release
if [ "${1:-}" = --build ]; then build=$2; shift 2; fi
[ -e "$build/compile_commands.json" ] || { echo "lint: $build is not configured; run scripts/build.sh first" >&2; exit 1; }

case "${1:-}" in
  --all) sources=$(git ls-files --cached --others --exclude-standard 'tensorcraft/*.cpp' 'cli/*.cpp' 'benchmarks/*.cpp') ;;
  -*) sed -n '3,4s/^# //p' "$0"; exit 2 ;;
  '')
    base=$(git merge-base main HEAD 2>/dev/null || git rev-parse HEAD)
    # A changed header is read through the source beside it.
    changed=$({ git diff --name-only --diff-filter=d "$base"; git ls-files --others --exclude-standard; } | sed 's/\.hpp$/.cpp/' | sort -u)
    sources=$(grep -E '^(tensorcraft|cli|benchmarks)/.*\.cpp$' <<<"$changed" | while read -r file; do [ ! -e "$file" ] || echo "$file"; done || true) ;;
  *) sources=$(find "$@" -name '*.cpp' | sort) ;;
esac
[ -n "$sources" ] || { echo "lint: nothing changed"; exit 0; }
mapfile -t together < <(find "$build" -path '*/together/*.cpp' ! -name '*_asan_*' ! -name '*_race_*' ! -name '*_threads_*' ! -path '*/tests/*')
unit_of() { grep -lF "#include \"$1\"" "${together[@]}" /dev/null || echo "$1"; }
units=$(while read -r file; do unit_of "$file"; done <<<"$sources" | sort -u)
# One process a unit keeps all cores busy to the end; what is not a finding stays out of the report.
xargs -d '\n' -P "$(nproc)" -n 1 clang-tidy-19 -p "$build" --quiet <<<"$units" 2> >(grep -vE 'warnings? (and .*)?generated|^\[[0-9]+/|^Error while processing' >&2)
echo "lint: $(wc -l <<<"$sources") files are clean"
