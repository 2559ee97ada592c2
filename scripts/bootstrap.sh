#!/usr/bin/env bash
# Installs what Orrery needs from the distribution's packages (Debian 12 or 13). Root is needed for
# this step only, and only if something is missing.
set -euo pipefail

packages=(
  # compilers and tools
  g++ gcc make cmake ninja-build ccache pkg-config
  # libraries
  libtorch-dev
  libopenblas0-pthread # without it libtorch falls back to the reference BLAS, 20 times slower
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libnl-3-dev libnl-route-3-dev prometheus-cpp-dev
  libyaml-cpp-dev libcli11-dev nlohmann-json3-dev libspdlog-dev zlib1g-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  # data
  dataset-fashion-mnist
  # the time-travel kernel
  linux-source flex bison bc xz-utils patch libelf-dev libssl-dev python3 util-linux
  # what tests compare with
  iproute2 iputils-ping
  # programs that tests run unchanged on emulated networks
  iperf3 curl nginx-light tcpdump openmpi-bin libopenmpi-dev
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $status == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

root=()
if [[ $(id -u) != 0 ]]; then
  if command -v sudo >/dev/null; then
    root=(sudo)
  else
    echo "bootstrap: run as root, or install these packages: ${missing[*]}" >&2
    exit 3
  fi
fi
echo "bootstrap: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${root[@]}" apt-get update -q
"${root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"
