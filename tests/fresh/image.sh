#!/bin/bash
# image.sh: builds the Containerfile and runs the image, where no registry of images is in reach. As root: `make nightly-image`.
#
#   tests/fresh/image.sh            podman build, then `doctor` and `demo` in the image
#   tests/fresh/image.sh doctor     another verb
#
# The base is not debian:13 of a registry but fresh.sh's root file system of Debian 13, imported as localhost/debian:13 and given as the
# build argument BASE. Images are kept in $FRESH_DIR/images, apart from the machine's, and removed at the end unless KEEP is set. The
# demo runs in a container with --privileged, as root's; then `run chain5` runs in one without, as docs/rootless.md has it.
# It needs podman and crun: apt-get install podman crun.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
# shellcheck source=tests/fresh/certificates.sh
source "$here/tests/fresh/certificates.sh"
store=${FRESH_DIR:-/var/tmp/manet-fresh}
images=$store/images
readonly BASE=localhost/debian:13

fail() {
    echo "image.sh: $*" >&2
    exit 1
}

podman_here() { podman --root "$images/storage" --runroot "$images/run" --storage-driver "${STORAGE_DRIVER:-overlay}" --cgroup-manager cgroupfs "$@"; }

# shellcheck disable=SC2329 # a trap calls it
remove() {
    podman_here rmi --all --force >/dev/null 2>&1 || true
    # its overlays may still be mounted
    grep -F " $images/" /proc/self/mountinfo | awk '{ print $5 }' | sort -r | xargs -r umount 2>/dev/null || true
    rm -rf --one-file-system "$images"
}

((EUID == 0)) || fail "debootstrap and mounts need root"
command -v podman >/dev/null || fail "podman is not installed: apt-get install podman crun"
mkdir -p "$images"
[[ -n ${KEEP-} ]] || trap remove EXIT

# The base, with this machine's access to the package registries (as fresh.sh gives it).
archive=$("$here/tests/fresh/fresh.sh" --base 13)
work=$(mktemp -d "$images/base.XXXXXX")
tar -C "$work" -xf "$archive"
trust_certificates_of_this_machine "$work"
tar -C "$work" -c . | podman_here import --quiet - "$BASE" >/dev/null
rm -rf "$work"

began=$SECONDS
echo "image: podman build --build-arg BASE=$BASE"
podman_here build --network host --isolation chroot --layers=false --build-arg BASE="$BASE" \
    --build-arg COMMIT="$(git -c safe.directory='*' -C "$here" rev-parse HEAD)" --tag localhost/manet --file "$here/Containerfile" "$here" \
    >"$images/build.log" 2>&1 || { tail -n 30 "$images/build.log"; fail "podman build failed"; }
echo "image: built in $((SECONDS - began)) s: $(podman_here images --format '{{.Size}}' localhost/manet)"
mkdir -p "$images/results"
verbs=("${@:-doctor}")
if ((!$#)); then verbs=(doctor demo); fi
for verb in "${verbs[@]}"; do
    began=$SECONDS
    podman_here run --privileged --network none --rm --volume "$images/results:/opt/manet/results" localhost/manet "$verb" ||
        fail "$verb: status $?"
    echo "image: $verb: $((SECONDS - began)) s"
done
began=$SECONDS
podman_here run --network none --device /dev/net/tun --security-opt seccomp=unconfined --security-opt unmask=ALL --rm \
    --volume "$images/results:/opt/manet/results" localhost/manet run chain5 --set duration=5 || fail "run chain5, not privileged: status $?"
echo "image: run chain5, not privileged: $((SECONDS - began)) s"
