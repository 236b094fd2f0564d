# What ./start and ./test need from the system. Sourced, not run.

# Where things that are built or fetched once are kept.
RD_CACHE="${XDG_CACHE_HOME:-$HOME/.cache}/riverdelta"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$RD_CACHE/target}"

say() { printf '== %s\n' "$*"; }
die() { printf '%s\n' "$*" >&2; exit 1; }

# ensure_packages PACKAGE...: installs the Debian packages that are missing.
ensure_packages() {
  local missing=() p
  for p in "$@"; do
    dpkg-query -W -f='${Status}\n' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "please install: ${missing[*]} (or what your system calls them)"
  local as=()
  [ "$(id -u)" = 0 ] || { command -v sudo >/dev/null || die "please install as root: apt-get install ${missing[*]}"; as=(sudo); }
  say "installing ${missing[*]}"
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q </dev/null >/dev/null
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
}

# ensure_command COMMAND PACKAGE...: as ensure_packages, if the command is not there.
ensure_command() {
  local c=$1
  shift
  command -v "$c" >/dev/null || ensure_packages "$@"
}

# ensure_build: a Rust toolchain, and what the C parts of the Kafka and TLS libraries are built with.
ensure_build() {
  export PATH="$PATH:$HOME/.cargo/bin"
  command -v cargo >/dev/null || die "Rust 1.90 or newer is needed: https://rustup.rs"
  ensure_command gcc gcc libc6-dev
  ensure_command g++ g++
  ensure_command make make
  ensure_command cmake cmake
  ensure_command pkg-config pkg-config
  [ -e /usr/include/zlib.h ] || ensure_packages zlib1g-dev
  [ -e /usr/include/openssl/ssl.h ] || ensure_packages libssl-dev
}
