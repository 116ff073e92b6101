#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is on a photograph: installs what is missing, builds, prints the likeliest classes and their probabilities.
# usage: classify.sh [--no-onednn] photo.jpg... [--device cuda|cpu] [--dtype float32|float16|bfloat16] [--top N]
#        [--names FILE] [--weights FILE.pth]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for word; do case $word in -h|--help) sed -n '3,5s/^# //p' "$0"; exit 0 ;; esac; done
options=()
if [ "${1:-}" = --no-onednn ]; then options=(--no-onednn); shift; fi

"$root/scripts/setup.sh" --image "${options[@]}"
"$root/scripts/build.sh" --no-tests "${options[@]}"
exec "$root/.venv/bin/python" "$root/examples/image_classification/classify.py" "$@"
