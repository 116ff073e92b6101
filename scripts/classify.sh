#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is on a photograph: installs what is missing, builds, prints the likeliest classes and their probabilities.
# usage: classify.sh [--no-onednn] photo.jpg... [--device cuda|cpu] [--dtype float32|float16|bfloat16] [--top N]
#        [--names FILE] [--weights FILE.pth]
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/example.sh"
run_example image_classification/classify.py --image -- "$@"
