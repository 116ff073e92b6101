#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A language model answers: installs what is missing, builds, prints token by token. Without a prompt, a chat in the terminal.
# usage: chat.sh [--no-onednn] ["a prompt"...] [--device cuda|cpu] [--dtype float32|float16|bfloat16|fp8|int8|int4]
#        [--temperature T] [--top-p P] [--max-tokens N] [--seed N] [--profile] [--perplexity FILE] [--model FILE.gguf]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/example.sh"
run_example chat/chat.py -- "$@"
