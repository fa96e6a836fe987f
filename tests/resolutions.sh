#!/usr/bin/env bash
# Checks the version bounds in pyproject.toml: installs the lowest or the newest versions that they
# allow into a new environment, runs the main commands there, and the tests of what reads files, counts
# and asks judges: pandas, pyarrow, the OpenAI SDK and the standard library differ more between versions
# than what models call.
#
#   tests/resolutions.sh [lowest] [newest]       both, if none is named
#
# PYTHON names the interpreter (python3 if unset). Run it from a checkout.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! uv=$(command -v uv); then
  "$python" -m venv "$scratch/uv"
  "$scratch/uv/bin/python" -m pip install --quiet uv
  uv=$scratch/uv/bin/uv
fi

try() {
  local which=$1 home=$scratch/$1 resolution=highest
  [ "$which" = lowest ] && resolution=lowest-direct
  echo "--- $which versions on $("$python" --version)"
  mkdir "$home"
  "$python" -m venv "$home/venv"
  local bin=$home/venv/bin
  "$uv" pip install --quiet --python "$bin/python" --resolution "$resolution" ".[collect]"
  # The test tools are the newest that are compatible with these.
  "$uv" pip freeze --quiet --python "$bin/python" --exclude judgebayes >"$home/fixed.txt"
  "$uv" pip install --quiet --python "$bin/python" --constraint "$home/fixed.txt" --group dev
  cp "$home/fixed.txt" "${LOGS:-$home}/$which.txt"
  export JAX_COMPILATION_CACHE_DIR=$home/cache
  (
    cd "$home"
    export JAX_DISABLE_MOST_OPTIMIZATIONS=1
    run() { echo "judgebayes $*"; "$bin/judgebayes" "$@" >out.txt 2>&1 || { cat out.txt; exit 1; }; }
    run example example
    run calibrate example/votes.csv --labels example/labels.csv --out answers.csv --save fit.json
    run apply fit.json example/votes.csv --out again.csv
    run calibrate example/votes.csv --labels example/labels.csv --splits 20 --html page.html
    run posterior example/votes.csv --labels example/labels.csv --draws 50 --warmup 50 --out posterior.npz
  )
  # The installed package is tested, not the checkout. Old versions of other packages may warn.
  "$bin/python" -P -m pytest -q -n 2 -o filterwarnings=default \
    @tests/fast.txt
}

for which in "${@:-lowest newest}"; do
  for each in $which; do try "$each"; done
done
