#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# WordNet as a graph: installs what is missing, builds, ranks its synsets, and lets neighbours tell each other their kind.
# usage: graph.sh [--no-onednn] [--device cuda|cpu] [--top N] [--folder WORDNET]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/example.sh"
run_example graph/graph.py --graph -- "$@"
