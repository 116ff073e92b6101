#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs every test and check.
# usage: test.sh [--full] [--no-onednn]    --full runs the long counts too
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
full=0 options=() build=build/release suite=(--preset release)
for argument in "$@"; do
  case $argument in
    --full) full=1 ;;
    --no-onednn) options=(--no-onednn) build=build/release-no-onednn suite=(--test-dir $build --output-on-failure) ;;
    *) sed -n '3,4s/^# //p' "$0"; exit 2 ;;
  esac
done
((full)) && export TC_TEST_FULL=1

scripts/setup.sh --dev "${options[@]}"
scripts/build.sh "${options[@]}"

failed=()
# wrong NAME LOG: a step has failed. The report ends with what did: a log is long, and its reader sees the end first.
wrong() {
  local lines
  lines=$(grep -E -A4 ': Failure$|^\[  FAILED  \] .* \(|^(FAILED|ERROR) |: (error|warning): ' "$2" | head -n 80 || true)
  failed+=("FAILED: $1" "${lines:-$(tail -n 20 "$2")}")
}
step() {  # every step runs, so one report shows all that is wrong
  local name=$1
  shift
  echo "== $name"
  "$@" 2>&1 | tee "$build/step.log" || wrong "$name" "$build/step.log"
}
# beside NAME COMMAND...: a step beside the next ones, which leave a core idle; such steps run one after another. report: waits for
# these, prints what they said.
names=() logs=() processes=()
trap '((${#processes[@]} == 0)) || kill "${processes[@]}" 2>/dev/null || true' EXIT
beside() {
  local before=
  if ((${#processes[@]})); then before=${processes[-1]}; fi
  names+=("$1") logs+=("$build/step-${#names[@]}.log")
  shift
  (
    [ -z "$before" ] || tail --pid="$before" -f /dev/null
    exec "$@"
  ) >"${logs[-1]}" 2>&1 &
  processes+=($!)
}
report() {
  local i
  for i in "${!names[@]}"; do
    wait "${processes[i]}" || wrong "${names[i]}" "${logs[i]}"
    echo "== ${names[i]}"
    cat "${logs[i]}"
  done
}
fuzz() {  # the parser under libFuzzer, with clang's sanitizers
  cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER=clang++-19 -DTENSORCRAFT_FUZZ=ON \
    -DTENSORCRAFT_WITH_ONEDNN=OFF >build/fuzz.log && cmake --build build/fuzz --target safetensors_fuzz >>build/fuzz.log &&
    ctest --test-dir build/fuzz --output-on-failure -R libfuzzer --no-tests=error
}
python=$PWD/.venv/bin/python
export PYTHONPYCACHEPREFIX=$PWD/build/pycache  # nothing new among the sources: build.sh would look again
unset PYTHONDONTWRITEBYTECODE  # each of the many processes would compile all that it imports, Python's own modules too
# The C++ tests find the NVRTC that setup.sh put into the virtual environment.
if [ -z "${TENSORCRAFT_NVRTC:-}" ]; then
  nvrtc=$(find .venv/lib -name 'libnvrtc.so.*' -print -quit)
  [ -z "$nvrtc" ] || export TENSORCRAFT_NVRTC=$PWD/$nvrtc
fi
unlabelled=(-LE gpu)
if [ -e /dev/nvidiactl ]; then unlabelled=(); fi
step "C++ tests" ctest "${suite[@]}" -j2 --no-tests=error "${unlabelled[@]}"
step "tests of the emulator, ASan and UBSan" scripts/simt.sh --build "$build" asan
step "tests of the emulator, race build" scripts/simt.sh --build "$build" race
step "ThreadSanitizer" scripts/simt.sh --build "$build" threads
pytest=(env PYTHONPATH="$PWD/$build/python" "$python" -m pytest -q)
beside "API reference" scripts/docs.sh "$build/python"
beside lint scripts/lint.sh --build "$build" tensorcraft/{core,cuda,jit,op}
beside "command tests" "${pytest[@]}" tests/cli --command "$build/install/bin/tensorcraft"
beside "tests of scripts" "${pytest[@]}" tests/scripts
step "Python tests" "${pytest[@]}" tests/python -n 2 --dist loadfile  # what waits for a compiler leaves a core idle
report
step format scripts/format.sh --check
step "Python lint" "$python" -m ruff check -q python bindings tests benchmarks examples scripts
if ((full)); then
  step libFuzzer fuzz
fi
if ((${#failed[@]})); then
  printf '%s\n' "${failed[@]}"
  exit 1
fi
echo "all tests passed"
