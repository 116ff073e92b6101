#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A language model answers: installs what is missing, builds, prints token by token. Without a prompt, a chat in the terminal.
# usage: chat.sh [--no-onednn] ["a prompt"...] [--device cuda|cpu] [--dtype float32|float16|bfloat16|fp8|int8|int4]
#        [--temperature T] [--top-p P] [--max-tokens N] [--seed N] [--profile] [--perplexity FILE] [--model FILE.gguf]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
for word; do case $word in -h|--help) sed -n '3,5s/^# //p' "$0"; exit 0 ;; esac; done
options=()
if [ "${1:-}" = --no-onednn ]; then options=(--no-onednn); shift; fi

"$root/scripts/setup.sh" "${options[@]}"
"$root/scripts/build.sh" --no-tests "${options[@]}"
exec "$root/.venv/bin/python" "$root/examples/chat/chat.py" "$@"
