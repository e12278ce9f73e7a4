#!/bin/bash
# steps.sh: time and disk from a clone to the demo's figure, by step, in a fresh system. As root.
#
#   tests/fresh/steps.sh 12|13             of HEAD
#   tests/fresh/steps.sh 12|13 COMMIT      of another commit
#
# The root file system is that of fresh.sh. The last lines are a table: step, seconds, MB that it added to the disk. The machine
# should be idle; its load before and after is printed.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

fail() {
    echo "steps.sh: $*" >&2
    exit 1
}

row() { printf '%-44s %6s s %6s MB\n' "$@"; }

size_mb() { du -smxc "$@" 2>/dev/null | tail -n 1 | cut -f 1; }

# Seconds of the steps of setup.sh whose line begins with one of these words: seconds_of WORDS...
seconds_of() {
    local IFS='|'
    sed -nE "s/^setup: ($*).*: done in ([0-9]+) s\$/\2/p" /tmp/setup.log | awk '{ all += $1 } END { print all + 0 }'
}

inside() {
    local system_mb began cloned demo status=0 load
    load=$(cut -d ' ' -f 1-3 /proc/loadavg)
    system_mb=$(du -smx --exclude=/root / | cut -f 1)
    began=$SECONDS
    git clone -q file:///root/manet /root/clone
    cloned=$((SECONDS - began))
    cd /root/clone
    git checkout -q "$(git -C /root/manet rev-parse HEAD)"
    local checkout_mb
    checkout_mb=$(size_mb .)
    began=$SECONDS
    ./setup.sh | tee /tmp/setup.log
    local all=$((SECONDS - began))
    began=$SECONDS
    ./manet demo || status=$?
    demo=$((SECONDS - began))
    echo "load before: $load, after: $(cut -d ' ' -f 1-3 /proc/loadavg); the demo's exit status: $status"
    find results/demo -name '*.png' | grep . || fail "no figure"
    echo "table of $(git log -1 --format=%h):"
    row 'git clone' "$cloned" "$checkout_mb"
    row packages "$(seconds_of installing\ [0-9] reading)" "$(($(du -smx --exclude=/root / | cut -f 1) - system_mb))"
    row 'Rust: fetching crates' "$(seconds_of fetching)" "$(size_mb /root/.cargo)"
    row 'Rust: building' "$(seconds_of building\ the\ Rust)" "$(size_mb target)"
    row 'eBPF programs' "$(seconds_of building\ the\ eBPF)" "$(size_mb .build)"
    row 'Python environment' "$(seconds_of making installing\ Python)" "$(size_mb .venv)"
    row './setup.sh, all of it' "$all" ''
    row './manet demo, to the figure' "$demo" "$(size_mb results)"
    row 'from nothing to the figure' $((cloned + all + demo)) "$(($(du -smx / | cut -f 1) - system_mb - $(size_mb /root/manet)))"
}

case ${1-} in
--inside)
    inside
    exit
    ;;
12 | 13) ;;
*) fail "usage: tests/fresh/steps.sh 12|13 [COMMIT]" ;;
esac
FRESH_COPY=$here/tests/fresh/steps.sh FRESH_COMMIT=${2-} exec "$here/tests/fresh/fresh.sh" "$1" bash /root/steps.sh --inside
