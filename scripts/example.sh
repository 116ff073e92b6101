# SPDX-License-Identifier: Apache-2.0
# Sourced by demo.sh, chat.sh, graph.sh and classify.sh, which run an example and have its usage in their first lines.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

usage() { sed -n '3,/^[^#]/s/^# //p' "$0"; }

# run_example FILE [SETUP_OPTION...] -- [--no-onednn] [WORD...]: installs what is missing, builds, and hands the words to
# examples/FILE.
run_example() {
  local file=$1 setup=() onednn=() word
  shift
  while [ "$1" != -- ]; do setup+=("$1") && shift; done
  shift
  for word; do case $word in -h | --help) usage; exit 0 ;; esac; done
  if [ "${1:-}" = --no-onednn ]; then onednn=(--no-onednn) && shift; fi
  "$root/scripts/setup.sh" "${setup[@]}" "${onednn[@]}"
  "$root/scripts/build.sh" --package "${onednn[@]}"
  exec "$root/.venv/bin/python" "$root/examples/$file" "$@"
}
