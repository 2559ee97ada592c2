#!/usr/bin/env bash
# Feeds the readers of users' files with mutations of the files that there are, under sanitizers:
#
#   scripts/fuzz.sh [SECONDS] [SEED]       default: ten minutes, a seed of chance
#
# Ends badly and prints the input where one is neither read nor refused with a reason.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
seed=${2:-$RANDOM$RANDOM}
cmake --preset release > /dev/null
ninja -C build/release fuzz_readers
echo "fuzz: $seconds s with seed $seed"
exec build/release/tests/fuzz_readers "$seconds" "$seed" configs tests/emulator/config/bad
