#!/bin/sh
# Runs fuzz targets for SECONDS each (60), all of them or those that are named:
#     scripts/fuzz.sh [SECONDS [TARGET]...]
# cargo-fuzz is taken as it is installed, or built once into target/tools; a nightly compiler comes
# by rustup. Ends with 1 at the first finding, with 2 where the tools cannot be had.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/tools/bin:$PATH"
cannot() {
    echo "fuzz.sh: nothing was fuzzed: $1" >&2
    exit 2
}
seconds=${1:-60}
[ $# -eq 0 ] || shift
command -v cargo-fuzz >/dev/null ||
    cargo install --quiet --locked --debug --root target/tools cargo-fuzz ||
    cannot "cargo-fuzz is not there and cannot be installed"
cargo +nightly --version >/dev/null 2>&1 ||
    rustup toolchain install nightly --profile minimal ||
    cannot "there is no nightly compiler and rustup cannot get one"
WRITE_CORPUS=1 cargo test --quiet --package capture --test fuzz
[ $# -gt 0 ] || {
    # All at once: they share what takes long.
    cargo +nightly fuzz build --sanitizer none
    set -- $(cargo +nightly fuzz list)
}
for target; do
    echo "== $target"
    cargo +nightly fuzz run --sanitizer none "$target" -- -max_total_time="$seconds" \
        -rss_limit_mb=1500 -timeout=20 -max_len=65536 -verbosity=0 -print_final_stats=1 || exit 1
done
