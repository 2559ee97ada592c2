#!/usr/bin/env bash
# Every test that docs/pitfalls.md names exists. Prints those that do not; exit status 1 if any.
set -euo pipefail
cd "$1"

missing=0
named=$(grep -o '`[A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9]*`' docs/pitfalls.md | tr -d '`' | sort -u)
[[ -n $named ]] || { echo 'docs/pitfalls.md names no tests'; exit 1; }
while IFS=. read -r suite name; do
  if ! grep -rqE "TEST(_F|_P)?\($suite, $name\)" tests --include='*.cc'; then
    echo "docs/pitfalls.md names $suite.$name, which is no test"
    missing=1
  fi
done <<< "$named"
exit $missing
