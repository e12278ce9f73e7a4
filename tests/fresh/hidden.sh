#!/bin/bash
# hidden.sh: runs a command with only those programs visible that ./setup.sh installs.
#
#   tests/fresh/hidden.sh ./manet test
#
# In a separate mount namespace, the program folders (/usr/bin, /usr/sbin, /usr/local/bin, ...) show only the programs of
# Debian's essential and required packages, of apt, of the packages that `./setup.sh --packages` lists, and of their
# dependencies. Whiteouts of overlayfs hide everything else; nothing on disk changes. The script then checks that no program in
# FORBIDDEN is visible. A Rust toolchain in ~/.cargo/bin (rustup) stays visible, because setup.sh uses it.
#
# Run it as root, on Debian, after ./setup.sh. Difference from a fresh machine (tests/fresh/fresh.sh): libraries and Python
# packages of Debian that setup.sh does not install stay visible.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly FOLDERS='/usr/bin /usr/sbin /usr/games /usr/local/bin /usr/local/sbin'
readonly FORBIDDEN='qemu-system-x86_64 vagrant virtme-run virtme-ng babeld batmand batctl olsrd aodvd ns mn_wifi node npm wmediumd
shellcheck ns3 docker packetdrill debootstrap'

fail() {
    echo "hidden.sh: $*" >&2
    exit 1
}

visible_packages() {
    dpkg-query -W -f '${Package} ${Essential} ${Priority}\n' | awk '$2 == "yes" || $NF == "required" { print $1 }'
    echo apt
    ./setup.sh --packages
}

# The visible packages and their installed dependencies. (apt-cache refuses unknown names: cargo-web is not in every release.)
closure() {
    local known
    mapfile -t known < <(visible_packages | sort -u | xargs dpkg-query -W -f '${Package} ${db:Status-Status}\n' 2>/dev/null |
        awk '$2 == "installed" { print $1 }')
    printf '%s\n' "${known[@]}"
    apt-cache depends --recurse --installed --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces \
        --no-enhances "${known[@]}" | sed -nE 's/^([a-z0-9][^ :]*)(:.*)?$/\1/p'
}

# Paths of the visible programs, one per line, with /bin as a link to /usr/bin.
visible_programs() {
    closure | sort -u | while read -r package; do
        cat "/var/lib/dpkg/info/$package.list" "/var/lib/dpkg/info/$package:"*.list 2>/dev/null || true
    done | sed -E 's#^/s?bin/#/usr&#' | sort -u
}

# Makes an overlay of one folder in which all programs but the visible ones are whiteouts.
hide() { # FOLDER
    local folder=$1 layer=$layers$1 path
    mkdir -p "$layer/upper" "$layer/work"
    for path in "$folder"/*; do
        # A name unknown to dpkg may be an alternative (cc) of a known program.
        if ! grep -qxF -e "$path" -e "$(readlink -f "$path" || true)" "$layers/visible" && [[ ! -d $path || -L $path ]]; then
            mknod "$layer/upper/${path##*/}" c 0 0
            echo "${path##*/}" >>"$layers/hidden"
        fi
    done
    mount -t overlay overlay -o "lowerdir=$folder,upperdir=$layer/upper,workdir=$layer/work" "$folder" ||
        fail "overlayfs: cannot be mounted; the kernel needs CONFIG_OVERLAY_FS (modprobe overlay)"
}

inside() {
    local folder program
    layers=$(mktemp -d)
    mount -t tmpfs tmpfs "$layers"
    visible_programs >"$layers/visible"
    : >"$layers/hidden"
    for folder in $FOLDERS; do
        if [[ -d $folder ]]; then hide "$folder"; fi
    done
    hash -r
    for program in $FORBIDDEN; do
        if command -v "$program" >/dev/null; then fail "$program is still visible: $(command -v "$program")"; fi
    done
    echo "hidden: $(wc -l <"$layers/hidden") programs that ./setup.sh does not install"
    exec "$@"
}

if [[ ${1-} == --inside ]]; then
    shift
    inside "$@"
fi
(($#)) || fail "which command? for example: tests/fresh/hidden.sh ./manet test"
((EUID == 0)) || fail "mount namespaces need root"
./setup.sh --check >/dev/null || fail "a requirement is missing that ./setup.sh installs; run ./setup.sh first"
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
if [[ -d ${HOME:-/root}/.cargo/bin ]]; then PATH+=:${HOME:-/root}/.cargo/bin; fi
exec unshare --mount --propagation private "$BASH" "${BASH_SOURCE[0]}" --inside "$@"
