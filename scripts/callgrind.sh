#!/bin/sh
# Instructions and mispredicted branches of one simulated I/O of models (a) and (b), by callgrind.
# Each model runs for two lengths of virtual time: the difference leaves the set-up out.
set -eu
cd "$(dirname "$0")/.."

bench=$(cargo bench -p sim --bench sim --no-run 2>&1 | sed -n 's/^ *Executable .*(\(.*\))$/\1/p')
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# run MODEL MILLISECONDS: I/Os, instructions, mispredicted branches.
run() {
    valgrind --tool=callgrind --branch-sim=yes --callgrind-out-file="$work/out" \
        "$bench" "$1" "$2" >"$work/ios" 2>"$work/log"
    ios=$(cat "$work/ios")
    sed -n 's/.*Collected : //p' "$work/log" | awk -v ios="$ios" '{ print ios, $1, $3 }'
}

# measure MODEL SHORT LONG
measure() {
    { run "$1" "$2"; run "$1" "$3"; } | awk -v model="$1" '
        NR == 1 { ios = $1; instructions = $2; missed = $3 }
        NR == 2 {
            ios = $1 - ios
            printf "(%s) %.0f instructions and %.2f mispredicted branches an I/O, over %d I/Os\n",
                model, ($2 - instructions) / ios, ($3 - missed) / ios, ios
        }'
}

measure a 500 3000
measure b 20 150
