#!/bin/bash
# user.sh: tests the testbed as an ordinary user of a fresh system, without sudo. Nightly, as root: `make nightly-user`.
#
#   tests/fresh/user.sh 12|13          set-up, doctor, demo and `./manet test --quick`; then root's demo, for comparison
#   tests/fresh/user.sh 12|13 demo     without the tests
#
# In a fresh root file system (fresh.sh) root does what docs/rootless.md asks of it: installs what `./setup.sh --packages` lists. A new
# user, with no group but their own and Debian's PATH for users, does the rest. /dev/net/tun has the mode that Debian's udev gives it.
# Each step fails the script, except that runs of a demo may be void. The tests' failures are of their last line.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
readonly USER_NAME=newcomer
readonly CHECKOUT=/home/$USER_NAME/manet
failed=()

fail() {
    echo "user.sh: $*" >&2
    exit 1
}

# Runs a command as the user, as after a login: as_user WORDS...
as_user() {
    local kept=() name
    for name in http_proxy https_proxy no_proxy SSL_CERT_FILE PIP_CERT PIP_INDEX_URL CARGO_HTTP_CAINFO; do
        if [[ -n ${!name-} ]]; then kept+=("$name=${!name}"); fi
    done
    runuser -u "$USER_NAME" -- env -i "HOME=/home/$USER_NAME" "USER=$USER_NAME" LANG=C.UTF-8 \
        PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games "${kept[@]}" "$@" </dev/null
}

# Runs a step, prints its duration, and notes a failure: step NAME COMMAND...
step() {
    local name=$1 began=$SECONDS status=0
    shift
    echo "--- $name: $*"
    "$@" || status=$?
    echo "--- $name: status $status after $((SECONDS - began)) s"
    ((status == 0)) || failed+=("$name")
}

# A demo, which may end with 1 if void runs are the only reason: demo FOLDER COMMAND...
demo() {
    local folder=$1 status=0
    shift
    "$@" || status=$?
    ((status == 0)) || { ((status == 1)) && ! grep -q '"status": "failed"' "$folder"/*/seed-*/run.json; }
}

# As udev makes it, without a change of this machine's: a device node of this mount namespace.
open_tun() {
    mknod /tmp/tun c 10 200
    chmod 0666 /tmp/tun
    mount --bind /tmp/tun /dev/net/tun
}

as_root() {
    apt-get -qq update || return
    # shellcheck disable=SC2046 # a list of packages
    if ! apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install $(./setup.sh --packages) >/tmp/install.log 2>&1; then
        tail -n 20 /tmp/install.log
        return 1
    fi
}

clone() {
    as_user git clone -q /srv/manet.git "$CHECKOUT"
}

inside() {
    step packages as_root
    useradd --create-home --shell /bin/bash "$USER_NAME"
    ! command -v sudo >/dev/null || fail "sudo is installed"
    open_tun
    git clone -q --bare /root/manet /srv/manet.git
    chown -R "$USER_NAME:" /srv/manet.git # git refuses another user's
    cd "/home/$USER_NAME"
    step clone clone
    cd "$CHECKOUT"
    step setup as_user ./setup.sh
    step check as_user ./setup.sh --check
    step doctor as_user ./manet doctor
    step demo demo results/demo as_user ./manet demo
    if [[ ${1-} != demo ]]; then step tests as_user ./manet test --quick; fi
    step root-demo demo results/root ./manet run hv-fig1 --quick --out results/root
    compare
    ((!${#failed[@]})) || fail "failed: ${failed[*]}"
}

# Throughput of both demos, by cell.
compare() {
    .venv/bin/python - <<'END'
import csv

both = []
for folder in ("demo", "root"):
    with open(f"results/{folder}/summary.csv") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "acked_kbps"]
    both.append({tuple(value for key, value in row.items() if key in ("variant", "hops")): row for row in rows})
print("--- acknowledged kbit/s: cell, user, root, difference")
for cell, row in both[0].items():
    if cell in both[1] and row["mean"] and both[1][cell]["mean"]:
        user, root = float(row["mean"]), float(both[1][cell]["mean"])
        print(f"{' '.join(cell):24} {user:8.1f} {root:8.1f} {100 * (user - root) / root:+6.1f} %")
END
}

case ${1-} in
--inside)
    shift
    inside "$@"
    exit
    ;;
12 | 13) ;;
*) fail "usage: tests/fresh/user.sh 12|13 [demo]" ;;
esac
release=$1
shift
exec "$here/tests/fresh/fresh.sh" "$release" tests/fresh/user.sh --inside "$@"
