#!/usr/bin/env bash
# The main job: installs the packages, builds, trains four ways on one emulated cluster, and says
# where the report is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/bootstrap.sh
scripts/build.sh release -DBUILD_TESTING=OFF
exec build/release/bin/orrery run configs/quickstart.yaml "$@"
