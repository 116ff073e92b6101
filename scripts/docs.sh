#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the API reference into build/docs: C++ from the comments of the public headers, Python from docstrings.
# usage: docs.sh [PYTHON]    PYTHON: folder of the built package, build/release/python unless given (scripts/build.sh)
# Fails for a public name without documentation and for a reference to nothing. Needs scripts/setup.sh --dev.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
package=${1:-build/release/python}
case $package in -*) sed -n '3,5s/^# //p' scripts/docs.sh; exit 2 ;; esac
[ -d "$package/tensorcraft" ] || { echo "docs: there is no package in $package; run scripts/build.sh first" >&2; exit 1; }
command -v doxygen >/dev/null || { echo "docs: doxygen is missing; run scripts/setup.sh --dev first" >&2; exit 1; }
python=.venv/bin/python
[ -x $python ] || python=python3

rm -rf build/docs
mkdir -p build/docs
version=$(sed -n 's/^project(tensorcraft VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
failed=0
DOCS_VERSION=$version doxygen docs/Doxyfile >build/docs/cpp.log 2>&1 || failed=1
sed "s|^$PWD/||" build/docs/cpp.log
PYTHONPATH=$package "$python" scripts/python_reference.py build/docs/python || failed=1
((!failed)) || { echo "docs: failed" >&2; exit 1; }
echo "docs: build/docs/cpp/index.html and build/docs/python/index.html"
