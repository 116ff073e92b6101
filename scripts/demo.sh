#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sentence search with a real model: installs what is missing, builds, searches.
# usage: demo.sh [--no-onednn] "a question" [--file LINES.txt] [--device cuda|cpu] [--top N]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
usage() { sed -n '3,4s/^# //p' "$0"; }
for word; do case $word in -h|--help) usage; exit 0 ;; esac; done
options=()
if [ "${1:-}" = --no-onednn ]; then options=(--no-onednn); shift; fi
[ $# -ge 1 ] || { usage >&2; exit 2; }

"$root/scripts/setup.sh" "${options[@]}"
"$root/scripts/build.sh" --no-tests "${options[@]}"
exec "$root/.venv/bin/python" "$root/examples/sentence_search/search.py" "$@"
