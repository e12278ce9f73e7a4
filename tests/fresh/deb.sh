#!/bin/bash
# deb.sh: tests the Debian package on fresh systems. Nightly, as root: `make nightly-deb-12`, `make nightly-deb-13`.
#
#   tests/fresh/deb.sh 12|13          builds the package, and tests it
#   tests/fresh/deb.sh 12|13 FILE     tests this package
#
# Two fresh root file systems (fresh.sh). In the first, ./setup.sh, `make deb` and lintian, whose errors fail. In the second, which
# has none of the compilers, the package is installed; the doctor must find nothing missing, and `manet demo`, in a folder of its
# own, must end with 0, or 1 for void runs alone; after purge no file of the package may be left. New files of other folders are
# listed: results, apt's records, the user's cache. The packages stay in $FRESH_DIR/deb-RELEASE.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
store=${FRESH_DIR:-/var/tmp/manet-fresh}

fail() {
    echo "deb.sh: $*" >&2
    exit 1
}

# Runs a command without its output; prints the end of it if it fails: quietly LOG COMMAND...
quietly() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 </dev/null || { tail -n 30 "$log"; fail "$*: failed"; }
}

install_packages() { quietly /tmp/install.log apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install "$@"; }

# In the first root file system.
build() {
    local began=$SECONDS
    ./setup.sh
    echo "deb: set up in $((SECONDS - began)) s, $(du -smx --exclude=/root / | cut -f 1) MB outside the checkout, $(du -smx . | cut -f 1) MB in it"
    install_packages build-essential debhelper lintian
    began=$SECONDS
    quietly .build/log/deb.log make deb
    echo "deb: built in $((SECONDS - began)) s: $(ls -sh .build/deb/*.deb)"
    lint
}

lint() {
    local began=$SECONDS log=.build/log/lintian.log
    lintian --allow-root --fail-on error --tag-display-limit 0 .build/deb/*.changes >"$log" 2>&1 || {
        grep '^E:' "$log" | cut -c 1-160 | sort | uniq -c | sort -rn | head -n 40
        fail "lintian: $(grep -c '^E:' "$log") errors"
    }
    echo "deb: lintian: $(grep -c '^W:' "$log" || true) warnings, no errors, $((SECONDS - began)) s"
}

# In the second root file system.
use() {
    local began=$SECONDS status=0 left
    mv /root/manet /root/checkout # nothing of it is used
    cd /root
    quietly /tmp/update.log apt-get -qq update
    install_packages ./manet_*.deb
    echo "deb: installed in $((SECONDS - began)) s, $(du -sm /usr/lib/manet | cut -f 1) MB in /usr/lib/manet"
    [[ ! -x /usr/bin/cargo && ! -x /usr/bin/clang && ! -x /usr/bin/make ]] || fail "a compiler is here"
    touch /root/stamp
    mkdir /root/work
    cd /root/work
    manet doctor
    bash -c 'source /usr/share/bash-completion/completions/manet && complete -p manet'
    zcat /usr/share/man/man1/manet.1.gz | grep -q '^.SH MANET DEMO' || fail "the man page has no demo"
    manet demo || status=$?
    ((status == 0)) || { ((status == 1)) && ! grep -q '"status": "failed"' results/demo/*/seed-*/run.json; } || fail "manet demo: $status"
    left=$(find /usr/lib/manet -newer /root/stamp ! -type d)
    [[ -z $left ]] || fail "written into the package: $left"
    quietly /tmp/purge.log apt-get -qq -y -o Dpkg::Use-Pty=0 purge manet
    left=$(find / -xdev \( -path /root -o -path /tmp -o -path /proc -o -path /run \) -prune -o -iname '*manet*' -print)
    [[ -z $left ]] || fail "left after purge: $left"
    echo "deb: files that are new since the installation, by folder:"
    find / -xdev \( -path /root/checkout -o -path /tmp -o -path /proc -o -path /run -o -path /sys -o -path /dev \) -prune -o \
        -type f -newer /root/stamp -print |
        sed -E 's#^(/root/work/results|/root/\.cache/[^/]+|/var/[^/]+/[^/]+|/[^/]+/[^/]+).*#\1#' | sort | uniq -c
}

case ${1-} in
--build)
    build
    exit
    ;;
--use)
    use
    exit
    ;;
12) name=bookworm ;;
13) name=trixie ;;
*) fail "usage: tests/fresh/deb.sh 12|13 [FILE]" ;;
esac
release=$1 package=${2-}
if [[ -z $package ]]; then
    "$here/tests/fresh/fresh.sh" "$release" tests/fresh/deb.sh --build
    rm -rf "$store/deb-$release"
    cp -r "$store/$name/root/manet/.build/deb" "$store/deb-$release"
    package=$(echo "$store/deb-$release"/manet_*.deb)
fi
FRESH_COPY=$package "$here/tests/fresh/fresh.sh" "$release" tests/fresh/deb.sh --use
echo "deb: Debian $release: $package works"
