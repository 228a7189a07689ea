#!/bin/sh
# Holds every dependency against deny.toml: licences, bans, sources, and the advisories where their
# database can be had. cargo-deny is taken as it is installed, or built once into target/tools.
set -eu
cd "$(dirname "$0")/.."
PATH="$PWD/target/tools/bin:$PATH"
command -v cargo-deny >/dev/null ||
    cargo install --quiet --locked --debug --root target/tools cargo-deny || {
    echo "deny.sh: nothing was looked at: cargo-deny is not there and cannot be installed" >&2
    exit 2
}
if cargo deny fetch db 2>/dev/null; then
    advisories=advisories
else
    advisories=
    echo "deny.sh: advisories were not looked at: their database cannot be fetched" >&2
fi
cargo deny --locked check $advisories licenses bans sources
