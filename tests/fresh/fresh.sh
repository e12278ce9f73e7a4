#!/bin/bash
# fresh.sh: tests that a clean checkout works on a machine with only git installed.
#
#   tests/fresh/fresh.sh 12 ./manet demo          a fresh Debian 12 root file system, a fresh clone, this command
#   tests/fresh/fresh.sh 13 ./manet test
#   tests/fresh/fresh.sh --again 13 ./manet test  the same root file system and clone as last time
#
# Run it as root, with debootstrap installed. The root file system is Debian's minbase with git and ca-certificates,
# debootstrapped once into $FRESH_DIR (default /var/tmp/manet-fresh) and unpacked again each time. The command runs with it
# as its root (pivot_root: programs that enter the mount namespace of a station must find the same root), in its own mount and pid
# namespaces, on this machine's kernel and network. The script copies in this machine's access to
# the package registries (resolver, extra CA certificates, apt proxy, the environment variables named
# below); nothing else of this machine is visible. The clone is of HEAD: commit first. FRESH_COPY: a file to copy into /root.
# FRESH_COMMIT: another commit to check out.
#
#   tests/fresh/fresh.sh --base 13                makes the root file system's archive alone, and prints its path
#
# Differences from a real fresh machine: the kernel is this machine's, and there is no init system.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/fresh/certificates.sh
source "$here/tests/fresh/certificates.sh"
store=${FRESH_DIR:-/var/tmp/manet-fresh}
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
readonly PASSED_ON='http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE PIP_CERT PIP_INDEX_URL
CARGO_HTTP_CAINFO CI TERM'

fail() {
    echo "fresh.sh: $*" >&2
    exit 1
}

again='' base_alone=''
case ${1-} in
--again) again=yes && shift ;;
--base) base_alone=yes && shift ;;
esac
case ${1-} in
12) release=bookworm ;;
13) release=trixie ;;
*) fail "usage: tests/fresh/fresh.sh [--again] 12|13 COMMAND..., or --base 12|13" ;;
esac
shift
[[ -n $base_alone ]] || (($#)) || fail "which command? for example: tests/fresh/fresh.sh 13 ./manet demo"
((EUID == 0)) || fail "pivot_root and debootstrap need root"
command -v debootstrap >/dev/null || fail "debootstrap is not installed: apt-get install debootstrap"
rootfs=$store/$release

make_base() {
    local base=$store/$release.base
    rm -rf "$base"
    echo "fresh: debootstrap $release" >&2
    debootstrap --variant=minbase --include=git,ca-certificates "$release" "$base" "$mirror" >"$store/$release.log" 2>&1 ||
        fail "debootstrap failed, see $store/$release.log"
    # Security and stable updates are enabled, as after Debian's installer.
    cat >"$base/etc/apt/sources.list" <<SOURCES
deb $mirror $release main
deb $mirror $release-updates main
deb ${mirror%/debian}/debian-security $release-security main
SOURCES
    rm -rf "$base"/var/lib/apt/lists/* "$base"/var/cache/apt/archives/*.deb
    tar -C "$base" -cf "$store/$release.tar.new" .
    mv "$store/$release.tar.new" "$store/$release.tar"
    rm -rf "$base"
}

let_it_reach_the_registries() {
    cp -L /etc/resolv.conf "$rootfs/etc/resolv.conf"
    local proxy
    for proxy in /etc/apt/apt.conf /etc/apt/apt.conf.d/*proxy*; do
        if [[ -e $proxy ]]; then cp "$proxy" "$rootfs/etc/apt/apt.conf.d/"; fi
    done
    trust_certificates_of_this_machine "$rootfs"
}

mkdir -p "$store"
if [[ -n $base_alone ]]; then
    [[ -e $store/$release.tar ]] || make_base
    echo "$store/$release.tar"
    exit
fi
if [[ -z $again ]]; then
    [[ -e $store/$release.tar ]] || make_base
    rm -rf "$rootfs"
    mkdir "$rootfs"
    tar -C "$rootfs" -xf "$store/$release.tar"
    let_it_reach_the_registries
    git clone -q --no-hardlinks "$here" "$rootfs/root/manet"
    if [[ -n ${FRESH_COMMIT-} ]]; then git -C "$rootfs/root/manet" checkout -q "$FRESH_COMMIT"; fi
    if [[ -n ${FRESH_COPY-} ]]; then cp "$FRESH_COPY" "$rootfs/root/"; fi
fi
[[ -d $rootfs/root/manet ]] || fail "there is no $rootfs/root/manet from a last time; leave out --again"

environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8)
for name in $PASSED_ON; do
    if [[ -n ${!name-} ]]; then environment+=("$name=${!name}"); fi
done
echo "fresh: Debian ${release}, $(git -c safe.directory="*" -C "$rootfs/root/manet" log -1 --format=%h), $*"
began=$SECONDS status=0
# The script below runs in the new namespaces. The root file system becomes a mount point (programs in it may
# change the propagation of /), with this machine's /dev and /sys (including cgroups) and its own /proc, /run and /tmp.
unshare --mount --pid --fork --kill-child env -i --default-signal=INT "${environment[@]}" bash -ec '
    rootfs=$1
    shift
    mount --make-rprivate /
    mount --bind "$rootfs" "$rootfs"
    mount --rbind /sys "$rootfs/sys"
    mount --rbind /dev "$rootfs/dev"
    mount -t proc proc "$rootfs/proc"
    mount -t tmpfs tmpfs "$rootfs/run"
    mount -t tmpfs tmpfs "$rootfs/tmp"
    cd "$rootfs"
    # The old root is stacked on the new one, and then detached (pivot_root(2), "pivot_root(".", ".")").
    pivot_root . .
    umount --lazy .
    cd /root/manet
    # This shell stays process 1 and collects orphans, as an init does.
    status=0
    "$@" || status=$?
    exit "$status"
' fresh "$rootfs" "$@" </dev/null &
child=$!
# unshare --fork ignores INT and TERM; SIGKILL also ends all processes in its pid namespace.
trap 'kill -KILL "$child"' INT TERM
wait "$child" 2>/dev/null || status=$?
echo "fresh: Debian $release, exit $status after $((SECONDS - began)) s"
exit "$status"
