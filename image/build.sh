#!/bin/bash
# build.sh: an OCI image of this testbed, of Debian packages and this checkout, by mmdebstrap and buildah.
#
#   make image                       .build/manet-image.tar, an OCI archive (as root)
#   image/build.sh FILE              another file
#
# Two layers, both FROM scratch: the Debian packages that runs need (runtime.list), and /opt/manet: the committed files without
# tests, the programs that ./setup.sh has built, its Python packages (tree.sh). The release is this machine's, for which they
# were built.
# The network is used for the packages alone: from $DEBIAN_MIRROR (default http://deb.debian.org/debian).
#
# The same commit, packages and compilers give the same digest, wherever the checkout is: all times are the commit's, Python's
# compiled files name their source by its hash, and no file has the path of the checkout (tree.sh, packages.py).
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
target=$(realpath -m "${1:-$here/.build/manet-image.tar}")
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
readonly PLACE=opt/manet
packages=$(grep -v '^#' "$here/image/runtime.list" | paste -sd ,)

fail() {
    echo "image: $*" >&2
    exit 1
}

ID='' VERSION_CODENAME=''
# shellcheck disable=SC1091
. /etc/os-release
[[ $ID == debian ]] || fail "this is ${ID:-an unknown system}, and the image is of the Debian for which the programs were built; use Debian 12 or 13"
((EUID == 0)) || fail "mmdebstrap and buildah need root; run it with sudo"
for tool in mmdebstrap buildah git; do
    command -v "$tool" >/dev/null || fail "$tool: not found; apt-get install mmdebstrap buildah git"
done
[[ -x $here/.build/kernel-tcp/manet-tcp ]] || fail "nothing is built; run ./setup.sh"
git_here() { git -c safe.directory="$here" -C "$here" "$@"; }
[[ -z $(git_here status --porcelain --untracked-files=no) ]] || echo "image: files differ from the commit; the image has the commit's" >&2
commit=$(git_here rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git_here log -1 --format=%ct)
export SOURCE_DATE_EPOCH

work=$(mktemp -d /var/tmp/manet-image.XXXXXX)
trap 'rm -rf "$work"' EXIT

echo "image: Debian $VERSION_CODENAME with ${packages//,/, }"
mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    "$VERSION_CODENAME" "$work/debian.tar" \
    "deb $mirror $VERSION_CODENAME main" \
    "deb $mirror $VERSION_CODENAME-updates main" \
    "deb ${mirror%/debian}/debian-security $VERSION_CODENAME-security main"

echo "image: the checkout at ${commit:0:12}"
app=$work/app/$PLACE
git_here archive HEAD | "$here/image/tree.sh" "$app" "/$PLACE" || fail "see above"
PYTHONHASHSEED=0 "$here/.venv/bin/python" -m compileall -q -f --invalidation-mode unchecked-hash \
    -s "$work/app" -p / "$app" >"$work/compile.log" || true # some packages have files for other versions of Python

build() { buildah --storage-driver vfs --root "$work/storage" --runroot "$work/runroot" "$@"; }
echo "image: two layers"
container=$(build from scratch)
build add --quiet "$container" "$work/debian.tar" / >/dev/null
build commit --quiet --rm --timestamp "$SOURCE_DATE_EPOCH" "$container" localhost/manet-debian >/dev/null
rm "$work/debian.tar"
container=$(build from --pull-never localhost/manet-debian)
build add --quiet "$container" "$work/app" / >/dev/null
rm -r "$work/app"
build config --workingdir "/$PLACE" --entrypoint "[\"/$PLACE/image/entrypoint.sh\"]" --cmd demo \
    --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --env "PYTHONPATH=/$PLACE" --env "MANET_COMMIT=$commit" --env LANG=C.UTF-8 \
    --label org.opencontainers.image.revision="$commit" --label org.opencontainers.image.licenses=MIT \
    "$container"
build commit --quiet --rm --timestamp "$SOURCE_DATE_EPOCH" "$container" localhost/manet >/dev/null
mkdir -p "$(dirname "$target")"
rm -f "$target.new"
build push --quiet localhost/manet "oci-archive:$target.new:localhost/manet:latest"
mv "$target.new" "$target"
digest=$(tar -xOf "$target" index.json | sed -E 's/.*"digest":"([^"]+)".*/\1/')
echo "image: $target, $(du -m "$target" | cut -f 1) MB, $digest"
echo "image: podman load -i $target && podman run --privileged --rm localhost/manet demo"
