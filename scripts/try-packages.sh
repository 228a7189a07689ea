#!/bin/sh
# Installs every package that `cargo xtask dist` made into a root of its own, in which there is no
# library and no file of this machine, and tries kavg there; last, what `cargo install --git` makes of
# this checkout. Needs root, or user namespaces (`unshare`).
#     scripts/try-packages.sh
# Ends with 1 at the first that does not hold. What cannot be tried here is skipped by name.
set -eu
checkout=$(cd "$(dirname "$0")/.." && pwd)
cd "$checkout/target/packages"
roots=$(mktemp -d)
trap 'rm -rf "$roots"' EXIT

fail() {
    echo "try-packages.sh: $1" >&2
    exit 1
}

# within ROOT PROGRAM [ARGUMENT]...: runs a program that sees its root and nothing else.
within() {
    case $(id -u) in
    0) chroot "$@" ;;
    *) unshare --map-root-user chroot "$@" ;;
    esac
}

# try_it PACKAGE ROOT PROGRAM: what is done first with kavg, where it was installed.
try_it() {
    package=$1 root=$2 program=$3 emulator=
    [ -x "$root$program" ] || fail "$package: there is no $program in it"
    case $package in *aarch64* | *arm64*)
        if [ "$(uname -m)" != aarch64 ]; then
            emulator=$(command -v qemu-aarch64-static) || {
                echo "skipped: $package is installed and not run: no qemu-aarch64-static"
                return
            }
            cp "$emulator" "$root/emulator"
            emulator=/emulator
        fi
        ;;
    esac
    for line in --version "run s0-flasharray --quiet --csv /s0.csv" "capture info /s0.csv" "help install"; do
        within "$root" $emulator "$program" $line >"$root/said" 2>&1 ||
            fail "$package: kavg $line: $(cat "$root/said")"
    done
    echo "$package: $(within "$root" $emulator "$program" --version)"
}

# has PACKAGE FILE...: what is installed beside the program.
has() {
    package=$1
    shift
    for file; do
        [ -s "$file" ] || fail "$package: there is no $file in it"
    done
}

sha256sum --check --quiet SHA256SUMS
for package in kavg-*.tar.gz; do
    root=$roots/$package
    mkdir "$root"
    tar -xzf "$package" -C "$root" --strip-components 1
    has "$package" "$root/README.md" "$root/LICENSE" "$root/man/kavg-run.1" \
        "$root/completions/kavg.bash" "$root/completions/_kavg" "$root/completions/kavg.fish" \
        "$root/completions/kavg.ps1"
    try_it "$package" "$root" /kavg
done
for package in kavg_*.deb; do
    command -v dpkg >/dev/null || { echo "skipped: $package: no dpkg"; continue; }
    root=$roots/$package
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
    touch "$root/var/lib/dpkg/status"
    dpkg --root="$root" --force-architecture,not-root --install "$package" >"$root/said" 2>&1 ||
        fail "$package: $(cat "$root/said")"
    has "$package" "$root/usr/share/man/man1/kavg-run.1.gz" \
        "$root/usr/share/bash-completion/completions/kavg" \
        "$root/usr/share/zsh/vendor-completions/_kavg" \
        "$root/usr/share/fish/vendor_completions.d/kavg.fish"
    try_it "$package" "$root" /usr/bin/kavg
done
for package in kavg-*.whl; do
    root=$roots/$package
    machine=${package##*_1_1_}
    "$checkout/target/tools/python/bin/pip" install --quiet --no-index --no-deps --target "$root" \
        --only-binary :all: --platform "manylinux2014_${machine%.whl}" "$package"
    try_it "$package" "$root" /bin/kavg
done
cargo install --quiet --locked --git "file://$checkout" --root "$roots/git" kavg
"$roots/git/bin/kavg" run s0-flasharray --quiet || fail "cargo install --git: run s0-flasharray"
echo "cargo install --git: $("$roots/git/bin/kavg" --version)"
