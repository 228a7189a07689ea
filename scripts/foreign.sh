#!/bin/sh
# Installs the programs of others that tests try kavg against, as root with apt. A test whose program
# is not there says so and skips, so nothing else needs this. Ends with 2 where it cannot.
set -eu
packages="fio libnbd-bin qemu-utils valgrind"
cannot() {
    echo "foreign.sh: not installed:$missing: $1" >&2
    exit 2
}
missing=
for package in $packages; do
    dpkg-query --show --showformat='${db:Status-Status}\n' "$package" 2>/dev/null |
        grep -qx installed || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" -eq 0 ] || cannot "this is not root"
command -v apt-get >/dev/null || cannot "there is no apt"
export DEBIAN_FRONTEND=noninteractive
options="-qq -o Acquire::Retries=0 -o Acquire::http::Timeout=20 -o DPkg::Lock::Timeout=60"
apt-get $options update >&2 || cannot "apt has no lists"
apt-get $options --no-install-recommends --yes install $missing >&2 || cannot "apt failed"
