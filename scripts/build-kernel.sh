#!/usr/bin/env bash
# Builds the time-travel user-mode Linux kernel from the distribution's linux-source package, or
# finds the one that an earlier call built. docs/kernel.md says what is in it and why.
set -euo pipefail

usage() {
  cat <<'EOF'
usage: build-kernel.sh [--out FILE] [--print-path]

Prints the path of the kernel as the last line of its output. A kernel that was built before from
the same sources, options, patches and compiler is found in the cache at once.

  --out FILE     also copy the kernel to FILE
  --print-path   only print where the kernel is, or would be, in the cache

Environment: ORRERY_CACHE          cache folder (default: $XDG_CACHE_HOME/orrery, ~/.cache/orrery)
             ORRERY_KERNEL_SOURCE  a linux-source-VERSION.tar.xz in place of the one in /usr/src
Exit code: 0 built or found, 1 the build failed, 2 wrong usage, 3 tools or sources are missing.
EOF
}

say() { printf '%s\n' "build-kernel: $*" >&2; }
die() {
  local code=$1
  shift
  say "$@"
  exit "$code"
}

out=
print_path=no
while (($#)); do
  case $1 in
    --out)
      (($# >= 2)) || die 2 "--out needs a file"
      out=$2
      shift
      ;;
    --print-path) print_path=yes ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      exit 2
      ;;
  esac
  shift
done

# The build must not depend on the caller's language or on make variables meant for another build.
export LC_ALL=C
unset MAKEFLAGS MAKELEVEL MFLAGS ARCH CROSS_COMPILE KCONFIG_CONFIG KBUILD_OUTPUT

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
recipe=$here/kernel
options=$recipe/options.txt

[[ $(uname -m) == x86_64 ]] || die 3 "the kernel runs on x86-64 only, this is $(uname -m)"

# --- what the build needs -------------------------------------------------------------------------

missing=()
need() { # need COMMAND PACKAGE
  command -v "$1" >/dev/null || missing+=("$2")
}
need gcc gcc
need make make
need ld binutils
need flex flex
need bison bison
need bc bc
need xz xz-utils
need patch patch
need flock util-linux

series_of() {
  local name=${1##*/linux-source-}
  printf '%s' "${name%.tar.xz}"
}

# The newest source for which there are patches: a kernel without them works, but does not repeat.
tarball=
if [[ -n ${ORRERY_KERNEL_SOURCE:-} ]]; then
  tarball=$ORRERY_KERNEL_SOURCE
  [[ -r $tarball ]] || die 3 "ORRERY_KERNEL_SOURCE=$tarball cannot be read"
  [[ -d $recipe/patches/$(series_of "$tarball") ]] ||
    die 3 "there are no patches for Linux $(series_of "$tarball"), only for" \
      "$(cd "$recipe/patches" && echo [0-9]*)"
else
  while IFS= read -r candidate; do
    [[ -r $candidate && -d $recipe/patches/$(series_of "$candidate") ]] && tarball=$candidate
  done < <(printf '%s\n' /usr/src/linux-source-*.tar.xz | sort -V)
  [[ -n $tarball ]] || missing+=(linux-source)
fi
if ((${#missing[@]})); then
  die 3 "missing packages: ${missing[*]} (apt-get install ${missing[*]})"
fi
series=$(series_of "$tarball")

patches=()
for file in "$recipe"/patches/common/*.patch "$recipe/patches/$series"/*.patch; do
  [[ -e $file ]] && patches+=("$file")
done

# --- the cache ------------------------------------------------------------------------------------

# Name, size and time stand for the tarball: hashing 130 MB would take longer than a cached call may.
# The C library counts because the kernel is linked against it.
hash=$({
  stat -L -c '%n %s %Y' "$tarball"
  gcc --version | head -n 1
  getconf GNU_LIBC_VERSION
  cat "${BASH_SOURCE[0]}" "$options" "${patches[@]}"
} | sha256sum | cut -c 1-16)

cache=${ORRERY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/orrery}/kernel
kernel=$cache/$hash/linux
log=$cache/$hash.log

finish() {
  if [[ -n $out ]]; then
    # A rename, so that nobody boots half a file; a kernel that runs keeps its old one.
    local part
    part=$(mktemp "$out.XXXXXX")
    cp "$kernel" "$part"
    chmod 755 "$part"
    mv -f "$part" "$out"
  fi
  printf '%s\n' "$kernel"
  exit 0
}

if [[ $print_path == yes ]]; then
  printf '%s\n' "$kernel"
  exit 0
fi
[[ -x $kernel ]] && finish

mkdir -p "$cache/$hash"
exec 9>"$cache/$hash.lock"
flock --nonblock 9 || {
  say "another call builds this kernel, waiting for it"
  flock 9
}
[[ -x $kernel ]] && finish

# --- the build ------------------------------------------------------------------------------------

# Left over from a call that was killed: the lock is ours, so nobody works there.
rm -rf "$cache/$hash".build.*
work=$(mktemp -d "$cache/$hash.build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP
: >"$log"

failed() {
  tail -n 20 "$log" >&2
  die 1 "$1; the whole log: $log"
}

say "building Linux $series for user mode, this takes some minutes"

# Most of a kernel tree is for hardware that user mode does not have. Kconfig reads every Kconfig
# file all the same, and make some Makefiles, so only sources are left out, not whole folders.
exclude=()
for folder in 'arch/[!ux]*' Documentation samples rust sound tools/perf tools/testing \
  drivers/{clk,gpu,hwmon,iio,infiniband,media,mfd,pinctrl,regulator,scsi,soc,staging} \
  drivers/net/{ethernet,wireless}; do
  exclude+=("--exclude=*/$folder/*."{c,h,S,dts,dtsi,rst,txt,yaml,json})
done
tar -C "$work" --strip-components=1 --wildcards-match-slash "${exclude[@]}" -xf "$tarball" \
  >>"$log" 2>&1 9>&- || failed "$tarball could not be unpacked"
cd "$work"

for file in "${patches[@]}"; do
  patch --strip=1 --forward --fuzz=0 --input="$file" >>"$log" 2>&1 ||
    failed "the patch ${file#"$recipe"/} does not apply to Linux $series"
done

# Fixed, so that the same sources give the same kernel whoever builds them.
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970' KBUILD_BUILD_USER=orrery \
  KBUILD_BUILD_HOST=orrery KBUILD_BUILD_VERSION=1
cc=gcc
command -v ccache >/dev/null && cc='ccache gcc'
kmake() { make ARCH=um CC="$cc" HOSTCC="$cc" "$@" >>"$log" 2>&1 9>&-; }

known_option() { grep -rqE --include='Kconfig*' "^[[:space:]]*(menu)?config $1\$" .; }

# One option a line, its reason after a '#'. NAME? only where the kernel knows it; -NAME is off.
wanted=()
while read -r name; do
  case $name in
    -*) wanted+=("# CONFIG_${name#-} is not set") ;;
    *\?) ! known_option "${name%\?}" || wanted+=("CONFIG_${name%\?}=y") ;;
    *) wanted+=("CONFIG_$name=y") ;;
  esac
done < <(sed -e 's/#.*//' -e 's/[[:space:]]*$//' -e '/^$/d' "$options")

kmake allnoconfig || failed "the empty configuration could not be made"
printf '%s\n' "${wanted[@]}" >orrery.config
scripts/kconfig/merge_config.sh -m .config orrery.config >>"$log" 2>&1 ||
  failed "the options could not be merged"
# Options that only now became visible are asked for; an empty line takes the default.
kmake olddefconfig < <(yes '') || failed "the configuration could not be completed"

for line in "${wanted[@]}"; do
  grep -qxF "$line" .config && continue
  name=${line#\# }
  name=${name#CONFIG_}
  name=${name%%[= ]*}
  # An option that does not exist here is not in the file at all, and off.
  [[ $line == '#'* ]] && ! grep -q "^CONFIG_$name=" .config && continue
  failed "options.txt asks for '$line', but Linux $series has '$(
    grep -E "CONFIG_${name}[= ]" .config || printf 'no such option, or something that it needs is off'
  )'"
done

kmake -j"$(nproc)" linux || failed "the kernel could not be built"
strip linux -o linux.stripped >>"$log" 2>&1 || failed "the kernel could not be stripped"
cp .config "$cache/$hash/config"
mv linux.stripped "$kernel"
rm -f "$log"
finish
