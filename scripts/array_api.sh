#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the public test suite of the Python array API standard, from a checkout with its submodule, against the package that
# build.sh built. What it does not run and why stands in tests/array_api/skips.txt.
# usage: array_api.sh CHECKOUT [PYTEST ARGUMENT...]    such as --max-examples 200, or -k test_matmul
# TENSORCRAFT_DEVICE picks the device, as everywhere.
set -euo pipefail
if [ $# -lt 1 ] || [ ! -d "$1/array_api_tests" ]; then
  sed -n '3,6s/^# //p' "$0" >&2
  [ $# -lt 1 ] || echo "array_api: $1 has no folder array_api_tests" >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
checkout=$(cd "$1" && pwd)
shift
[ -d "$here/build/release/python/tensorcraft" ] || { echo "array_api: run scripts/build.sh first" >&2; exit 2; }

export PYTHONPATH=$here/build/release/python:$here/tests/array_api${PYTHONPATH:+:$PYTHONPATH}
export ARRAY_API_TESTS_MODULE=with_stand_ins
export ARRAY_API_TESTS_VERSION=${ARRAY_API_TESTS_VERSION:-2024.12}
# The dtypes that the library lacks; the default float is float32.
export ARRAY_API_TESTS_SKIP_DTYPES=float64,complex64,complex128,uint16,uint32,uint64
cd "$checkout"
exec "$here/.venv/bin/python" -m pytest array_api_tests -q -p no:cacheprovider --disable-deadline --derandomize \
  --max-examples 50 --disable-extension fft linalg --skips-file "$here/tests/array_api/skips.txt" "$@"
