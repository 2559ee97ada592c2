#!/usr/bin/env bash
# Shows that runs repeat: a short run of each strategy, N times, half of them beside two processes
# that keep the host's processors busy; every file of figures must be the same byte for byte.
#
#   scripts/repeat.sh [--runs N] [--out DIR] [RUN…]
#
# RUN: nd_cao_sync, nd_cao_async, sgd, parameter_server; all four if none is named. N: 20. What a
# run left is removed unless DIR is named. The programs are those of build/release, or of the build
# folder that ORRERY_BUILD names. Prints `NAME: k of N identical` a strategy; the exit status is 0
# if each k is N, 1 if not or if a run failed, 2 for wrong usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

orrery=${ORRERY_BUILD:-build/release}/bin/orrery
runs=20
out=
names=()

usage() {
  printf 'repeat.sh: %s\n' "$*" >&2
  sed -n '5,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
  exit 2
}

# Each is long enough to pass through every phase of its strategy, and as short as start-up.
declare -A length=(
  [nd_cao_sync]=evaluations=40
  [nd_cao_async]=evaluations=40
  [sgd]=epochs=0.1
  [parameter_server]=epochs=0.1
)

while (($#)); do
  case $1 in
    --runs) runs=${2-} && shift 2 || usage "--runs needs a number" ;;
    --out) out=${2-} && shift 2 || usage "--out needs a folder" ;;
    -*) usage "there is no option $1" ;;
    *)
      [[ -v length[$1] ]] || usage "there is no run '$1'"
      names+=("$1")
      shift
      ;;
  esac
done
[[ $runs =~ ^[0-9]+$ ]] && ((runs >= 2)) || usage "--runs takes a number from 2 on"
((${#names[@]})) || names=(nd_cao_sync nd_cao_async sgd parameter_server)
[[ -x $orrery ]] || usage "$orrery is not built"

# --- load on the host -----------------------------------------------------------------------------

spinners=()
busy() {
  local i
  for i in 1 2; do
    (while :; do :; done) &
    spinners+=($!)
  done
}
calm() {
  ((${#spinners[@]} == 0)) && return
  kill "${spinners[@]}" 2>/dev/null || true
  wait "${spinners[@]}" 2>/dev/null || true
  spinners=()
}

if [[ -n $out ]]; then
  mkdir -p "$out"
  trap calm EXIT
else
  out=$(mktemp -d)
  trap 'calm; rm -rf "$out"' EXIT
fi
trap 'exit 130' INT TERM

# --- the runs -------------------------------------------------------------------------------------

# Times, losses and counts of each step; test losses; bytes on each link; bytes to each peer.
figures=(steps.csv evaluations.csv links.csv traffic.csv)

# The first difference between two runs, or nothing.
difference() {
  local file
  for file in "${figures[@]}"; do
    if ! cmp -s "$1/$file" "$2/$file"; then
      # Not in a pipe: diff's status 1 would end the script.
      local lines
      lines=$(diff "$1/$file" "$2/$file" | head -n 4 || true)
      printf '%s differs:\n%s\n' "$file" "$lines"
      return
    fi
  done
}

status=0
for name in "${names[@]}"; do
  same=0
  for ((i = 1; i <= runs; ++i)); do
    ((i % 2 == 0)) && busy
    dir=$out/$name-$i
    if ! "$orrery" run configs/quickstart.yaml --only "$name" \
      --set "runs.$name.stop.${length[$name]}" --out "$dir" --quiet >"$out/$name-$i.log" 2>&1; then
      printf '%s: run %d failed\n' "$name" "$i" >&2
      cat "$out/$name-$i.log" >&2
    elif ((i > 1)) && what=$(difference "$out/$name-1" "$dir") && [[ -n $what ]]; then
      printf '%s: run %d is not run 1: %s\n' "$name" "$i" "$what" >&2
    else
      same=$((same + 1))
    fi
    calm
  done
  printf '%s: %d of %d identical (%d of them beside two busy processes)\n' \
    "$name" "$same" "$runs" "$((runs / 2))"
  ((same == runs)) || status=1
done
exit "$status"
