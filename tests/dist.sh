#!/usr/bin/env bash
# Builds the source archive, the wheel from it, and a wheel from the checkout; both wheels must hold the same
# files, every tracked module among them. `twine check` reads the metadata and the page for PyPI.
#
#   tests/dist.sh [FOLDER]       keeps the archive and its wheel in FOLDER
#
# PYTHON names the interpreter (python3 if unset). Run it from a checkout.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" -m venv "$scratch/venv"
bin=$scratch/venv/bin
"$bin/python" -m pip install --quiet --constraint constraints.txt build twine
"$bin/python" -m build --outdir "$scratch/dist" . >"$scratch/build.log" 2>&1 || { cat "$scratch/build.log"; exit 1; }
"$bin/python" -m build --wheel --outdir "$scratch/checkout" . >"$scratch/build.log" 2>&1 || { cat "$scratch/build.log"; exit 1; }
"$bin/twine" check --strict "$scratch"/dist/*

listed() { "$bin/python" -m zipfile --list "$1" | awk 'NR > 1 { print $1 }' | sort; }
listed "$scratch"/dist/*.whl >"$scratch/from-archive.txt"
listed "$scratch"/checkout/*.whl >"$scratch/from-checkout.txt"
diff "$scratch/from-archive.txt" "$scratch/from-checkout.txt" || {
  echo "The wheel made from the source archive (<) and the one made from the checkout (>) differ."
  exit 1
}
git ls-files judgebayes models experiments | grep '\.pyi\?$\|/py\.typed$' |
  sed -e 's,^\(models\|experiments\)/,judgebayes/\1/,' | sort >"$scratch/tracked.txt"
missing=$(comm -23 "$scratch/tracked.txt" "$scratch/from-archive.txt")
[ -z "$missing" ] || { echo "Not in the wheel: $missing"; exit 1; }
echo "$(wc -l <"$scratch/from-archive.txt") files in both wheels, all $(wc -l <"$scratch/tracked.txt") tracked modules among them"
if [ -n "${1:-}" ]; then
  mkdir -p "$1"
  rm -f "$1"/judgebayes-*
  cp "$scratch"/dist/* "$1"/
fi
