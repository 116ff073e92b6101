#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats every C++ file in place with clang-format 19; with --check only reports, and fails on a difference.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mode=(-i)
[ "${1:-}" != --check ] || mode=(--dry-run -Werror)
git ls-files -z --cached --others --exclude-standard '*.cpp' '*.hpp' '*.h' '*.cuh' '*.cu' |
  xargs -0 -n 40 -P 2 clang-format-19 "${mode[@]}"
