#!/usr/bin/env bash
# Configures and builds one preset, and the time-travel kernel beside it.
#
#   scripts/build.sh [PRESET] [CMAKE ARGUMENT…]     (default: release)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-release}
(($# > 0)) && shift
cmake --preset "$preset" "$@"
cmake --build --preset "$preset"
scripts/build-kernel.sh
