#!/bin/bash
# deb.sh: tests the Debian package on fresh systems. Nightly, as root: `make nightly-deb-12`, `make nightly-deb-13`.
#
#   tests/fresh/deb.sh 12|13            builds the package, and tests it
#   tests/fresh/deb.sh --built 12|13    tests the package that was built last time
#
# Two fresh root file systems (fresh.sh). In the first, ./setup.sh, `make deb` and lintian, whose errors fail. In the second, which
# has none of the compilers, the package is installed; the doctor must find nothing missing, and `manet demo`, in a folder of its
# own, must end with 0, or 1 for void runs alone; after purge no file of the package may be left, and of all new files only results,
# apt's records and the user's cache. The packages stay in $FRESH_DIR/deb-RELEASE.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
store=${FRESH_DIR:-/var/tmp/manet-fresh}

fail() {
    echo "deb.sh: $*" >&2
    exit 1
}

built=
if [[ ${1-} == --built ]]; then
    built=yes
    shift
fi
release=${1-}
[[ $release == 12 || $release == 13 ]] || fail "usage: tests/fresh/deb.sh [--built] 12|13"
name=bookworm
if [[ $release == 13 ]]; then name=trixie; fi
packages=$store/deb-$release

# shellcheck disable=SC2016 # expanded in the root file system
if [[ -z $built ]]; then
    "$here/tests/fresh/fresh.sh" "$release" bash -ec '
        export DEBIAN_FRONTEND=noninteractive
        began=$SECONDS
        ./setup.sh
        echo "deb: set up in $((SECONDS - began)) s, $(du -smx / --exclude=/root | cut -f 1) MB outside the checkout, $(du -smx . | cut -f 1) MB in it"
        apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install dpkg-dev debhelper lintian >/dev/null
        began=$SECONDS
        make deb >.build/log/deb.log 2>&1 || { tail -n 30 .build/log/deb.log; exit 1; }
        echo "deb: built in $((SECONDS - began)) s: $(ls -sh .build/deb/*.deb)"
        began=$SECONDS
        lintian --allow-root --fail-on error --tag-display-limit 0 .build/deb/*.changes >.build/log/lintian.log 2>&1 ||
            { grep "^E:" .build/log/lintian.log | cut -c 1-200 | sort | uniq -c | sort -rn | head -n 40; exit 1; }
        echo "deb: lintian: $(grep -c "^W:" .build/log/lintian.log || true) warnings, no errors, $((SECONDS - began)) s"
    '
    rm -rf "$packages"
    cp -r "$store/$name/root/manet/.build/deb" "$packages"
fi

package=$(echo "$packages"/manet_*.deb)
[[ -e $package ]] || fail "$packages: no package; leave out --built"
# shellcheck disable=SC2016
FRESH_COPY=$package "$here/tests/fresh/fresh.sh" "$release" bash -ec '
    export DEBIAN_FRONTEND=noninteractive
    mv /root/manet /root/checkout # nothing of it is used
    cd /root
    apt-get -qq update
    began=$SECONDS
    apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install ./manet_*.deb >/root/install.log 2>&1 ||
        { tail -n 20 /root/install.log; exit 1; }
    echo "deb: installed in $((SECONDS - began)) s, $(du -sm /usr/lib/manet | cut -f 1) MB in /usr/lib/manet"
    [[ ! -x /usr/bin/cargo && ! -x /usr/bin/clang && ! -x /usr/bin/make ]]
    touch /root/stamp
    mkdir /root/work
    cd /root/work
    manet doctor
    bash -ec "source /usr/share/bash-completion/completions/manet && complete -p manet" >/dev/null
    [[ $(_ARGCOMPLETE=1 _ARGCOMPLETE_IFS=" " COMP_LINE="manet dem" COMP_POINT=9 COMP_TYPE=9 bash -c "manet 8>&1 9>/dev/null" 2>/dev/null) == *demo* ]]
    gzip -dc /usr/share/man/man1/manet.1.gz | grep -q "^.SH MANET DEMO"
    status=0
    manet demo || status=$?
    ((status == 0)) || ! grep -q "\"status\": \"failed\"" results/demo/*/seed-*/run.json
    ls results/demo
    [[ -z $(find /usr/lib/manet -newer /root/stamp -type f) ]] || { find /usr/lib/manet -newer /root/stamp -type f; exit 1; }
    apt-get -qq -y -o Dpkg::Use-Pty=0 purge manet >/root/purge.log 2>&1 || { cat /root/purge.log; exit 1; }
    left=$(find / -xdev \( -path /root -o -path /tmp -o -path /proc -o -path /run \) -prune -o -iname "*manet*" -print)
    [[ -z $left ]] || { echo "deb: left after purge: $left"; exit 1; }
    echo "deb: new files after purge, by folder:"
    find / -xdev \( -path /root/checkout -o -path /tmp -o -path /proc -o -path /run -o -path /sys -o -path /dev \) -prune -o \
        -type f -newer /root/stamp -print | sed -E "s#^(/root/work/results|/root/\.cache/[^/]+|/var/[^/]+/[^/]+|/[^/]+/[^/]+).*#\1#" | sort | uniq -c
'
echo "deb: Debian $release: $package works"
