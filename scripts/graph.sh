#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# WordNet as a graph: installs what is missing, builds, ranks its synsets, and lets neighbours tell each other their kind.
# usage: graph.sh [--no-onednn] [--device cuda|cpu] [--top N] [--folder WORDNET]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for word; do case $word in -h|--help) sed -n '3,4s/^# //p' "$0"; exit 0 ;; esac; done
options=()
if [ "${1:-}" = --no-onednn ]; then options=(--no-onednn); shift; fi

"$root/scripts/setup.sh" --graph "${options[@]}"
"$root/scripts/build.sh" --no-tests "${options[@]}"
exec "$root/.venv/bin/python" "$root/examples/graph/graph.py" "$@"
