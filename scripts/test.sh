#!/usr/bin/env bash
# Installs the packages, builds, and runs every test that this machine can run. A test that it cannot
# run is skipped with the reason printed.
#
#   scripts/test.sh [CTEST ARGUMENT…]      e.g. scripts/test.sh -L unit
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/bootstrap.sh
kernel=$(scripts/build-kernel.sh | tail -n 1)
export ORRERY_KERNEL=$kernel
cmake --preset release -DBUILD_TESTING=ON
cmake --build --preset release
exec ctest --preset release --parallel "$(nproc)" "$@"
