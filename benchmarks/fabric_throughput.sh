#!/usr/bin/env bash
# One TCP flow through the fabric, unshaped, against the same through a plain veth pair, in turns:
#
#   benchmarks/fabric_throughput.sh [ROUNDS] [SECONDS]
#
# Needs root, iperf3 and `ninja -C build/release netshape`. Prints each round, the medians and their ratio.
set -euo pipefail
rounds=${1:-7}
seconds=${2:-3}
netshape=$(dirname "$0")/../build/release/bin/netshape
work=$(mktemp -d)
export XDG_RUNTIME_DIR=$work
a=bench-$$-a b=bench-$$-b
clean() {
  "$netshape" down bench 2> /dev/null > /dev/null || true
  for space in "$a" "$b"; do ip netns del "$space" 2> /dev/null || true; done
  rm -rf "$work"
}
trap clean EXIT

cat > "$work/net.yaml" << 'YAML'
netshape: 1
nodes: [a, b]
network:
  wires: [{between: [a, b]}]
YAML
"$netshape" up "$work/net.yaml" --name bench --backend fabric > /dev/null

ip netns add "$a"
ip netns add "$b"
ip link add veth-a netns "$a" type veth peer name veth-b netns "$b"
ip -n "$a" addr add 10.9.0.1/24 dev veth-a
ip -n "$b" addr add 10.9.0.2/24 dev veth-b
for space in "$a" "$b"; do ip -n "$space" link set lo up; done
ip -n "$a" link set veth-a up
ip -n "$b" link set veth-b up

# flow SERVER-PREFIX CLIENT-PREFIX ADDRESS: received Gbit/s
flow() {
  local json
  $1 iperf3 -s -1 > /dev/null &
  sleep 0.5
  json=$($2 iperf3 -c "$3" -t "$seconds" -C cubic -J)
  wait
  awk -F: '/"sum_received"/ {in_sum = 1} in_sum && /bits_per_second/ {print $2 / 1e9; exit}' <<< "$json"
}
median() { sort -n | awk '{v[NR] = $1} END {print (NR % 2) ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

for ((i = 1; i <= rounds; ++i)); do
  fabric=$(flow "$netshape exec b --" "$netshape exec a --" 10.0.0.2)
  veth=$(flow "ip netns exec $b" "ip netns exec $a" 10.9.0.2)
  echo "$fabric" >> "$work/fabric"
  echo "$veth" >> "$work/veth"
  printf 'round %d: fabric %.2f Gbit/s, veth %.2f Gbit/s, ratio %.2f\n' "$i" "$fabric" "$veth" \
    "$(awk -v f="$fabric" -v v="$veth" 'BEGIN {print f / v}')"
done
f=$(median < "$work/fabric")
v=$(median < "$work/veth")
printf 'median: fabric %.2f Gbit/s, veth %.2f Gbit/s, ratio %.2f\n' "$f" "$v" \
  "$(awk -v f="$f" -v v="$v" 'BEGIN {print f / v}')"
