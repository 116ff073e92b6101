#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sentence search with a real model: installs what is missing, builds, searches.
# usage: demo.sh [--no-onednn] "a question" [--file LINES.txt] [--device cuda|cpu] [--top N]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/example.sh"
[ $# -gt 0 ] && [ "$*" != --no-onednn ] || { usage >&2; exit 2; }
run_example sentence_search/search.py -- "$@"
