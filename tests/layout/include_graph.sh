#!/usr/bin/env bash
# Dependencies point one way: base <- netshape; base <- proto <- agents; all of them <- emulator. And no
# header outside agents/torch sees libtorch. Prints each line that breaks this; exit status 1 if any.
set -euo pipefail
cd "$1"

bad=0
# forbid FOLDER PATTERN WHY
forbid() {
  local hits
  hits=$(grep -rnE "#include [<\"]($2)" "$1" --include='*.hh' --include='*.cc' || true)
  if [[ -n $hits ]]; then
    printf '%s\n%s\n' "$3:" "$hits"
    bad=1
  fi
}
forbid base '(netshape|proto|agents|emulator)/' 'base may include nothing of ours but base'
forbid netshape '(proto|agents|emulator)/' 'netshape may include base only'
forbid netshape '(torch|ATen|grpcpp|yaml-cpp)' 'netshape knows neither torch nor gRPC nor YAML'
forbid proto '(netshape|agents|emulator)/' 'proto may include base only'
forbid agents '(netshape|emulator)/' 'agents may include base and proto only'
forbid agents 'yaml-cpp' 'agents know no YAML'
forbid emulator '(torch|ATen|c10)/' 'the emulator knows no tensors'
if hits=$(grep -rlE '#include [<"](torch|ATen|c10)/' agents --include='*.hh' --include='*.cc' | grep -v '^agents/torch/'); then
  printf 'libtorch outside agents/torch:\n%s\n' "$hits"
  bad=1
fi
# A strategy makes no thread, takes no lock, sleeps never and reads no clock.
if hits=$(grep -rnE 'std::(thread|mutex|chrono|condition_variable)|clock_gettime|nanosleep|this_thread' agents/strategies agents/collectives); then
  printf 'strategies and collectives leave threads, locks and clocks to their node:\n%s\n' "$hits"
  bad=1
fi
exit $bad
