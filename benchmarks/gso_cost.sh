#!/usr/bin/env bash
# What a megabyte of TCP costs the host in the exact engine, by rate: every packet by itself, super-packets of 64 KiB,
# and super-packets as the plan chooses them; with what becomes of the goodput. In turns, medians of ROUNDS.
#
#   ninja -C build/release traffic_guest && benchmarks/gso_cost.sh [ROUNDS]
set -euo pipefail
rounds=${1:-3}
bin=$(cd "$(dirname "$0")/../build/release" && pwd)
export ORRERY_KERNEL=${ORRERY_KERNEL:-$("$(dirname "$0")/../scripts/build-kernel.sh" --print-path)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# cost NAME RATE SEGMENTS MEGABYTES: host CPU seconds to NAME, what the guest says to NAME.says
cost() {
  local before after
  before=$(awk '{print $16 + $17}' /proc/$$/stat)
  "$bin/bin/orrery-guest" --mem 1GiB -- "$bin/benchmarks/traffic_guest" "$2" "$3" "$4" > "$work/$1.says" 2> /dev/null
  after=$(awk '{print $16 + $17}' /proc/$$/stat)
  awk -v a="$before" -v b="$after" -v hz="$(getconf CLK_TCK)" 'BEGIN {print (b - a) / hz}' >> "$work/$1"
}
median() { sort -n "$work/$1" | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

echo '| rate | super-packets | segments | host ms a MB | of the single packets'"'"' | goodput over the wire'"'"'s |'
echo '|---|---|---|---|---|---|'
for rate in 10 100 1000 10000; do
  size=$((rate < 100 ? 30 : rate < 1000 ? 60 : rate < 10000 ? 100 : 200))
  rm -f "$work"/*
  for ((i = 0; i < rounds; ++i)); do
    cost none "$rate" 1 1         # the start, and a megabyte
    cost single "$rate" 1 "$size"
    cost whole "$rate" 44 "$size"
    cost chosen "$rate" 0 "$size"
  done
  base=$(median none)
  single=$(median single)
  for kind in single whole chosen; do
    read -r segments goodput _ < "$work/$kind.says"
    awk -v k="$kind" -v r="$rate" -v s="$segments" -v g="$goodput" -v c="$(median $kind)" -v one="$single" -v b="$base" -v n="$size" \
      'BEGIN {printf "| %d Mbit/s | %s | %d | %.2f | %.2f | %.5f |\n", r, k, s, (c - b) * 1000 / (n - 1), (c - b) / (one - b), g}'
  done
done
