#!/bin/bash
# setup.sh: prepares a fresh Debian 12 or 13, or a system like it, for ./manet, and keeps it up to date. It is safe to run it
# twice, or after an interrupted run.
#
#   ./setup.sh           installs and builds missing or outdated parts
#   ./setup.sh --check   changes nothing; lists missing parts (exit 1 if there are any)
#   ./setup.sh --guests  also installs the requirements of `manet vm`: QEMU, virtme-ng (.build/guests), kmod,
#                        file, gpgv, batctl (for batman-adv, which the guests' kernels have), hostapd,
#                        wpasupplicant and iw (for access points)
#                        (--guests --check: checks them)
#   ./setup.sh --develop  also installs what tests and lint need: requirements-develop.lock in .venv (`./manet test` calls it)
#   ./setup.sh --pages   also installs the requirements of the tests of pages, of the notebooks and of the documentation
#                        site: chromium, and requirements-pages.lock in .venv
#   ./setup.sh --cluster  also installs what `manet campaign --cluster` needs: requirements-cluster.lock in .venv
#                        (each of the three with --check: checks it)
#   ./setup.sh --ebpf-may-fail  continues, with one line, if the eBPF programs cannot be built; ./manet uses it
#                        for verbs that do not need them
#   ./setup.sh --packages  lists the packages that it installs here if they are missing (--guests and --pages add their own)
#
# It has four steps; each runs only if its result is missing: Debian packages (the only step that needs root), the
# Rust programs (target/release), the eBPF programs (.build/kernel-tcp), the Python environment (.venv). The
# hashes of a step's inputs are in .build/stamps, the logs of the steps in .build/log. Whether a system has a package is
# asked of its apt, not read from its name (docs/install.md lists the systems tried). Where there is no apt it works if the
# commands below are installed.
set -euo pipefail
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
cd "$root"
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:${HOME:-/root}/.cargo/bin
# Ubuntu's bpftool is only here; the one in /usr/sbin looks for that of the running kernel, and WSL's has none.
for tools in /usr/lib/linux-tools/*/bpftool; do if [[ -x $tools ]]; then PATH=${tools%/bpftool}:$PATH; fi; done
unset MAKEFLAGS MAKELEVEL PYTHONHOME PYTHONPATH VIRTUAL_ENV GIT_DIR GIT_WORK_TREE

readonly RUST_MINOR_NEEDED=85 # 1.85: edition and resolver of Cargo.toml; the version in Debian 13
readonly PYTHON_MINOR_NEEDED=11 # 3.11: pyproject.toml; the version in Debian 12
readonly BY_HAND='docs/install.md has more, and a container that needs none of them'
readonly SYSTEM_MB_NEEDED=2000 # measured on fresh root file systems, see docs/validation.md
readonly CHECKOUT_MB_NEEDED=2200
readonly LOCK_PATIENCE_S=900

# The requirements, each with its Debian package: `command NAME PACKAGE` or `file GLOB PACKAGE`. PACKAGE|OTHER: the first of them
# that this system has.
readonly REQUIREMENTS='
command git git
file /etc/ssl/certs/ca-certificates.crt ca-certificates
command make make
command cc gcc
file /usr/include/stdio.h libc6-dev
command clang clang
command bpftool bpftool|linux-tools-generic
file /usr/include/bpf/libbpf.h libbpf-dev
file /usr/include/jansson.h libjansson-dev
command python3 python3
file /usr/lib/python3.*/ensurepip/__init__.py python3-venv
file /usr/lib/python3/dist-packages/mininet/net.py mininet
command mnexec mininet
command ip iproute2
command ifconfig net-tools
command ping iputils-ping
command sysctl procps
command killall psmisc
command unshare util-linux
command ethtool ethtool
command iperf3 iperf3
command tcpdump tcpdump
command tshark tshark
command nginx nginx
'
# The additional requirements of --guests.
readonly GUEST_REQUIREMENTS='
command qemu-system-x86_64 qemu-system-x86
command depmod kmod
command batctl batctl
command hostapd hostapd
command wpa_supplicant wpasupplicant
command iw iw
command file file
command gpgv gpgv
command dpkg-deb dpkg
command setpriv util-linux
file /usr/share/keyrings/debian-archive-keyring.gpg debian-archive-keyring
'
# The additional requirements of --pages.
readonly PAGES_REQUIREMENTS='
command chromium chromium
'
# Folders and files from which the programs are built.
readonly RUST_SOURCES=(Cargo.toml Cargo.lock engine netlink medium routing)
readonly BPF_SOURCES=(kernel-tcp)
readonly BPF_BINARIES='.build/kernel-tcp/manet-tcp'
readonly PYTHON_SOURCES=(requirements.lock)
readonly GUESTS_SOURCES=(requirements-guests.lock)
readonly EXTRAS=(develop pages cluster) # requirements-NAME.lock in .venv, each by its option; the tests of all import the project

# ----- messages ------------------------------------------------------------------------------------------------------

say() { echo "setup: $*"; }

fail() {
    echo "setup.sh: $*" >&2
    exit 1
}

# Runs a command with its output in a log, and prints progress: step TITLE LOG COMMAND...
step() {
    local title=$1 log=.build/log/$2.log status=0 began=$SECONDS
    shift 2
    say "$title ..."
    # A separate session, so that stop_child reaches the compilers that cargo and make start.
    setsid "$@" >"$log" 2>&1 </dev/null 9>&- &
    local child=$!
    running=$child
    while kill -0 "$child" 2>/dev/null; do
        # Polling is short so that short steps end at once; a line follows each quarter of a minute.
        local elapsed=$((SECONDS - began))
        if ((elapsed >= next_word_s)); then
            say "  ${elapsed} s: $(last_word "$log")"
            next_word_s=$((elapsed + 15))
        fi
        sleep 0.2
    done
    wait "$child" || status=$?
    running=
    next_word_s=15
    if ((status == 0)); then say "$title: done in $((SECONDS - began)) s"; fi
    return "$status"
}
running=
next_word_s=15
guests= # yes: with the requirements of `manet vm`
extras=() # the EXTRAS to install
ebpf_may_fail= # yes: the caller needs no eBPF programs
ebpf_failed=

# The last line of a log. apt's status lines (README.progress-reporting of apt) become its percentage and what it does.
last_word() { # LOG
    tail -n 1 "$1" | tr '\r' '\n' | tail -n 1 | tr -cd '[:print:]' |
        sed -E 's/^(dl|pm)status:[^:]*:([0-9]+)[.0-9]*:/\2 %: /' | cut -c 1-90
}

# The likely cause of a failed step, from its log, in one line.
cause_of() {
    local log=.build/log/$1.log
    # cargo's progress ends in carriage returns; an error follows directly
    if grep -q $'\r' "$log"; then sed -i 's/\r/\n/g' "$log"; fi
    if grep -qiE 'no space left on device|not enough free (disk )?space|disk quota exceeded' "$log"; then
        echo "the disk is full ($(df -Ph . | awk 'NR == 2 { print $4 }') left here); free about ${SYSTEM_MB_NEEDED} MB and run ./setup.sh again"
    elif grep -qiE 'temporary failure (in name )?resol|could not resolve|name or service not known|network is unreachable|connection (refused|timed out)|failed to establish a new connection|read timed out|cannot initiate the connection|unable to connect' "$log"; then
        echo "a package registry was not reached: $(grep -iE 'resolv|unreachable|refused|timed out|connect' "$log" | tail -n 1 | cut -c 1-160); check the network or proxy and run ./setup.sh again"
    elif grep -qiE 'certificate verify failed|certificate verification failed|SSL certificate problem' "$log"; then
        echo "a registry's certificate is not trusted by this machine; install your network's CA (update-ca-certificates) and run ./setup.sh again"
    elif grep -qiE 'permission denied|read-only file system' "$log"; then
        echo "$(grep -iE 'permission denied|read-only file system' "$log" | tail -n 1 | cut -c 1-160); run ./setup.sh as the owner of the checkout"
    else
        echo "$(grep -iE '^(E:|error|.*: error|.*fatal error)' "$log" | tail -n 1 | cut -c 1-200) (log: $log)"
    fi
}

# ----- missing parts -------------------------------------------------------------------------------------------------

requirements() {
    echo "$REQUIREMENTS${guests:+$GUEST_REQUIREMENTS}"
    [[ " ${extras[*]} " != *' pages '* ]] || echo "$PAGES_REQUIREMENTS"
}

is_there() { # KIND WHAT
    case $1 in
    command) command -v "$2" >/dev/null ;;
    file) compgen -G "$2" >/dev/null ;;
    esac
}

# Prints `PACKAGE (the missing part)`, one per line.
missing_packages() {
    local kind what package
    while read -r kind what package; do
        [[ -n $kind ]] || continue
        is_there "$kind" "$what" || echo "$package ($kind $what)"
    done <<<"$(requirements)"
    rust_program cargo >/dev/null && rust_program rustc >/dev/null || echo "cargo rustc (Rust >= 1.$RUST_MINOR_NEEDED)"
}

# ----- what this system's apt has ------------------------------------------------------------------------------------

has_apt() { [[ -x $(type -P apt-get) && -x $(type -P apt-cache) ]]; }

has_lists() { compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; }

# The version that apt would install; empty if it has none. A package that others only provide has none.
candidate_of() { apt-cache policy "$1" 2>/dev/null | sed -nE 's/^ *Candidate: *([^( ]+).*/\1/p'; }

# Prints what to install for the lines of missing_packages, one package per line; fails with a message if apt lacks one. Without
# apt's lists the first choice is assumed.
available() { # LINES
    local line choice package found
    while read -r line; do
        choice=${line%% (*}
        if [[ $line == *'(Rust >='* ]]; then
            rust_packages || return
            continue
        fi
        found=
        for package in ${choice//|/ }; do
            if ! has_lists || [[ -n $(candidate_of "$package") ]]; then
                found=$package
                break
            fi
        done
        [[ -n $found ]] ||
            { echo "setup.sh: $(system_name) has no package ${choice//|/ or }; add the repository that has it (Ubuntu: universe), or install its program by hand; $BY_HAND" >&2; return 1; }
        echo "$found"
    done <<<"$1" | sort -u
}

# The packages with a Rust that is new enough: Debian 13's cargo and rustc; cargo-web, which Debian 12 keeps current for its browsers;
# Ubuntu's, which have the version in their names.
rust_packages() {
    local version minor least=
    for version in '' -web; do
        minor=$(candidate_of "rustc$version" | sed -nE 's/^([0-9]+:)?1\.([0-9]+)\..*/\2/p')
        if ((${minor:-0} >= RUST_MINOR_NEEDED)); then
            printf '%s\n' "cargo$version" "rustc$version"
            return
        fi
    done
    while read -r minor; do
        if ((minor >= RUST_MINOR_NEEDED && minor < ${least:-10000})) && [[ -n $(candidate_of "cargo-1.$minor") ]]; then least=$minor; fi
    done < <(apt-cache pkgnames rustc-1. 2>/dev/null | sed -nE 's/^rustc-1\.([0-9]+)$/\1/p')
    if [[ -z $least ]] && ! has_lists; then printf '%s\n' cargo rustc && return; fi
    [[ -n $least ]] || {
        echo "setup.sh: $(system_name) has no package with Rust >= 1.$RUST_MINOR_NEEDED; install it for your user with rustup (https://rustup.rs) and run ./setup.sh again; $BY_HAND" >&2
        return 1
    }
    printf '%s\n' "cargo-1.$least" "rustc-1.$least"
}

python_is_too_old() { echo "$(system_name) has Python $(old_python), and 3.$PYTHON_MINOR_NEEDED is needed: use a newer release, or the container; $BY_HAND"; }

system_name() { echo "${PRETTY_NAME:-this system}"; }

# The missing packages in words, for a person: those with a condition keep it.
in_words() { # LINES
    sed -E '/\(Rust >=/! s/ \(.*//; s/\|/ or /' <<<"$1" | sort -u | paste -sd , | sed 's/,/, /g'
}

# The version of a Python that is too old; empty if it is new enough, or absent.
old_python() {
    [[ ! -x /usr/bin/python3 ]] ||
        /usr/bin/python3 -c "import sys; v = sys.version_info; print('' if v >= (3, $PYTHON_MINOR_NEEDED) else f'{v.major}.{v.minor}')"
}

# The cargo or rustc to use: the first that is new enough.
rust_program() {
    local candidate minor
    for candidate in $(type -ap "$1") "/usr/bin/$1" "/usr/bin/$1"-1.*; do
        [[ -x $candidate ]] || continue
        # rustup's stand-in ends with an error if no toolchain is installed
        minor=$("$candidate" --version 2>/dev/null | sed -nE 's/^[a-z]+ 1\.([0-9]+)\..*/\1/p') || continue
        if ((${minor:-0} >= RUST_MINOR_NEEDED)); then
            echo "$candidate"
            return
        fi
    done
    return 1
}

hash_of() { # SOURCES...: one hash over names and contents of the relevant files
    local here=()
    local source
    for source in "$@"; do if [[ -e $source ]]; then here+=("$source"); fi; done
    ((${#here[@]})) || { echo none; return; }
    find "${here[@]}" -name __pycache__ -prune -o -name target -prune -o -type f \
        \( -name '*.rs' -o -name '*.[ch]' -o -name '*.toml' -o -name '*.lock' -o -name Makefile -o -name table.py \) -print0 |
        sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1
}

rust_binaries() { # the [[bin]] names of the workspace, as paths
    local sources=() manifests=()
    mapfile -t sources < <(existing "${RUST_SOURCES[@]}")
    mapfile -t manifests < <(find "${sources[@]}" -name Cargo.toml -not -path '*/fuzz/*' 2>/dev/null)
    ((${#manifests[@]})) || return 0
    sed -nE '/^\[\[bin\]\]/,/^name/ s/^name *= *"([^"]+)".*/target\/release\/\1/p' "${manifests[@]}"
}

rust_programs_exist() {
    local programs=()
    mapfile -t programs < <(rust_binaries)
    all_exist "${programs[@]}"
}

existing() {
    local source
    for source in "$@"; do if [[ -e $source ]]; then echo "$source"; fi; done
}

stamped() { # NAME KEY: was step NAME finished with this KEY?
    [[ -r .build/stamps/$1 && $(<".build/stamps/$1") == "$2" ]]
}

all_exist() {
    local file
    for file in "$@"; do [[ -e $file ]] || return 1; done
}

rust_key() { echo "$(hash_of "${RUST_SOURCES[@]}") $system"; }
bpf_key() { echo "$(hash_of "${BPF_SOURCES[@]}") $system $root"; }
python_key() { echo "$(hash_of "${PYTHON_SOURCES[@]}") $(readlink -f /usr/bin/python3) $root"; }

rust_is_ready() { stamped rust "$(rust_key)" && rust_programs_exist; }
bpf_is_ready() { [[ ! -e kernel-tcp/Makefile ]] || { stamped kernel-tcp "$(bpf_key)" && all_exist "$BPF_BINARIES"; }; }
guests_key() { echo "$(hash_of "${GUESTS_SOURCES[@]}") $(readlink -f /usr/bin/python3) $root"; }
python_is_ready() { [[ -x .venv/bin/python && ! -e .venv/unfinished ]] && stamped python "$(python_key)"; }
guests_are_ready() { [[ -z $guests ]] || { [[ -x .build/guests/bin/virtme-run ]] && stamped guests "$(guests_key)"; }; }
extra_key() { echo "$(hash_of "requirements-$1.lock") $(python_key)"; }
extra_is_ready() { stamped "$1" "$(extra_key "$1")"; }

check() {
    local packages builds extra
    packages=$(missing_packages)
    builds=$(
        rust_is_ready || echo "build    Rust programs (cargo build --release): missing or older than their sources"
        bpf_is_ready || echo "build    eBPF programs (kernel-tcp): missing or older than their sources"
        python_is_ready || echo "python   .venv: missing or different from requirements.lock"
        guests_are_ready || echo "python   .build/guests (virtme-ng): missing or different from requirements-guests.lock"
        for extra in "${extras[@]}"; do
            extra_is_ready "$extra" || echo "python   .venv: missing parts, or different from requirements-$extra.lock"
        done
    )
    if [[ -z $packages$builds ]]; then
        say "nothing is missing"
        return 0
    fi
    [[ -z $packages ]] || sed 's/^/package  /' <<<"$packages"
    [[ -z $builds ]] || echo "$builds"
    if [[ -n $(old_python) ]]; then
        say "missing; $(python_is_too_old)"
    elif [[ -z $packages ]]; then
        say "missing; ./setup.sh builds it"
    elif ! has_apt; then
        say "missing; ./setup.sh installs no packages on $(system_name), which has no apt: install the equivalents by hand, then ./setup.sh builds the rest; $BY_HAND"
    elif available "$packages" >/dev/null; then
        say "missing; ./setup.sh installs it$( ((EUID == 0)) || echo ' (packages: as root)')"
    fi
    return 1
}

# ----- Debian packages -----------------------------------------------------------------------------------------------

install_packages() {
    local lines packages list=()
    # An interrupted apt leaves packages that are unpacked, but not configured.
    if [[ -e .build/installing ]] && ((EUID == 0)); then
        step "finishing an interrupted installation" dpkg dpkg --configure -a --force-confold ||
            fail "dpkg --configure -a failed: $(cause_of dpkg)"
        rm .build/installing
    fi
    lines=$(missing_packages)
    [[ -n $lines ]] || return 0
    has_apt || fail "$(system_name) has no apt, from which ./setup.sh installs packages; install the equivalents of these Debian packages by hand: $(in_words "$lines"); then run ./setup.sh again; $BY_HAND"
    if ((EUID == 0)) && ! has_lists; then apt 'reading package lists' update; fi
    packages=$(available "$lines") || exit
    mapfile -t list <<<"$packages"
    packages=${list[*]}
    ((EUID == 0)) || fail "installing packages needs root: run 'sudo ./setup.sh', or 'apt-get install --no-install-recommends $packages' (nothing was changed)"
    enough_disk / $((SYSTEM_MB_NEEDED * ${#list[@]} / $(wc -l <<<"$REQUIREMENTS") + 100))
    if [[ $packages == *cargo-web* ]] && dpkg-query -W -f '${Status}' cargo rustc 2>/dev/null | grep -q 'install ok installed'; then
        fail "Debian 12's cargo 0.66/rustc 1.63 are installed, too old, and in the way of cargo-web: run 'apt-get remove cargo rustc' or put Rust >= 1.$RUST_MINOR_NEEDED (rustup) on PATH; then run ./setup.sh again"
    fi
    touch .build/installing
    [[ " $packages " != *" nginx "* ]] || keep_nginx_off
    # An outdated list names files that the mirror no longer has. Only then update it.
    apt "installing ${#list[@]} packages" install "${list[@]}" ||
        { apt 'reading package lists' update && apt 'installing packages, second try' install "${list[@]}"; } ||
        fail "apt-get install failed: $(cause_of apt-install)"
    rm .build/installing
    [[ -z $nginx_kept_off ]] || leave_nginx_off
    lines=$(missing_packages)
    [[ -z $lines ]] || fail "still missing after apt-get install: ${lines//$'\n'/, }; see .build/log/apt-install.log"
}

# Debian's package starts nginx as a service on port 80, at once and at each boot. Runs need the program alone. The mask is in /run:
# an interrupted setup leaves it until the next boot at most.
keep_nginx_off() {
    if [[ -d /run/systemd/system ]] && systemctl mask --runtime --quiet nginx.service 2>/dev/null; then nginx_kept_off=yes; fi
}

leave_nginx_off() {
    systemctl unmask --runtime --quiet nginx.service 2>/dev/null || true
    systemctl disable --quiet nginx.service 2>/dev/null || true
    say "the service nginx is disabled: runs start nginx themselves ('systemctl enable --now nginx' enables it)"
}
nginx_kept_off= # yes: the service is masked while its package is installed

# One apt-get call: waits while another process has the lock, repairs an interrupted dpkg. apt TITLE update|install ...
apt() {
    local title=$1 verb=$2 began=$SECONDS said=''
    shift
    local options=(-qq -o Dpkg::Use-Pty=0 -o APT::Status-Fd=1 -o Acquire::Retries=3 -o Acquire::http::Timeout=60)
    if [[ $verb == install ]]; then
        shift
        set -- -y --no-install-recommends --no-remove install "$@"
    fi
    until step "$title" "apt-$verb" apt-get "${options[@]}" "$@"; do
        local log=.build/log/apt-$verb.log
        if grep -qE 'Could not get lock|Unable to lock|Unable to acquire the dpkg' "$log"; then
            ((SECONDS - began < LOCK_PATIENCE_S)) ||
                fail "another process held apt's lock for $LOCK_PATIENCE_S s: $(grep -m 1 'Could not get lock' "$log"); end it and run ./setup.sh again"
            [[ -n $said ]] || say "waiting for apt's lock: $(grep -m 1 -E 'held by|another process' "$log" | sed 's/^E: //')"
            said=yes
            sleep 3
        elif grep -q 'dpkg --configure -a' "$log"; then
            step "finishing an interrupted dpkg" dpkg dpkg --configure -a --force-confold ||
                fail "dpkg --configure -a failed: $(cause_of dpkg)"
        else
            [[ $verb == install ]] || fail "apt-get update failed: $(cause_of apt-update)"
            if grep -qiE 'no space left|not enough free|held broken|unmet dependencies' "$log"; then
                fail "apt-get install failed: $(cause_of apt-install)"
            fi
            return 1
        fi
    done
    # update succeeds even if it could read no list.
    if [[ $verb == update ]] && ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null; then
        fail "apt-get update read no list: $(cause_of apt-update)"
    fi
}

enough_disk() { # PATH MB
    local free
    free=$(df -Pm "$1" | awk 'NR == 2 { print $4 }')
    ((free >= $2)) || fail "only $free MB are free on the file system of $1, and about $2 MB are needed; free some and run ./setup.sh again"
}

# ----- building ------------------------------------------------------------------------------------------------------

finished() { # NAME KEY: called only after the step's output is on disk
    mkdir -p .build/stamps
    echo "$2" >".build/stamps/$1.new"
    mv ".build/stamps/$1.new" ".build/stamps/$1"
}

build_rust() {
    local key cargo rustc
    rust_is_ready && return
    key=$(rust_key)
    [[ -d target/release ]] || enough_disk . "$CHECKOUT_MB_NEEDED"
    cargo=$(rust_program cargo)
    rustc=$(rust_program rustc)
    # fetch also downloads the test-only crates, so that the tests need no network.
    step "fetching Rust crates" cargo-fetch env RUSTC="$rustc" "$cargo" fetch --locked ||
        fail "cargo fetch failed: $(cause_of cargo-fetch)"
    # cargo's count of crates (`45/78`), which it shows only on terminals by default. The program of tests/mesh is for tests alone.
    step "building the Rust programs" cargo-build env RUSTC="$rustc" CARGO_TERM_PROGRESS_WHEN=always \
        CARGO_TERM_PROGRESS_WIDTH=80 "$cargo" build --release --locked --workspace --exclude manet-mesh --target-dir "$root/target" ||
        fail "cargo build failed: $(cause_of cargo-build)"
    rust_programs_exist || fail "cargo build made no $(rust_binaries | tr '\n' ' '); see .build/log/cargo-build.log"
    finished rust "$key"
}

build_bpf() {
    local key
    bpf_is_ready && return
    key=$(bpf_key)
    step "building the eBPF programs" kernel-tcp make -C kernel-tcp BUILD="$root/.build/kernel-tcp" ||
        { fail_ebpf "make -C kernel-tcp failed: $(cause_of kernel-tcp)"; return; }
    all_exist "$BPF_BINARIES" ||
        { fail_ebpf "make -C kernel-tcp made no $BPF_BINARIES; see .build/log/kernel-tcp.log"; return; }
    finished kernel-tcp "$key"
}

fail_ebpf() { # CAUSE
    [[ -n $ebpf_may_fail ]] || fail "$1"
    say "$1; going on without the eBPF programs, which this verb does not need"
    ebpf_failed=yes
}

# The lock files support --require-hashes: every line carries its hashes. connection-pool, which Snakemake requires, has no wheel on
# the index; it is pure Python.
readonly PIP_INSTALL=(.venv/bin/python -m pip install --disable-pip-version-check --no-input --require-virtualenv --progress-bar off
    --only-binary :all: --no-binary connection-pool --use-pep517 --require-hashes)

# The libraries' own tests, 45 MB, are not needed.
remove_tests() { find .venv/lib/python3.*/site-packages -type d -name tests -prune -exec rm -rf {} +; }

build_python() {
    local key fresh=()
    python_is_ready && return
    key=$(python_key)
    if [[ -e .venv/unfinished ]] || { [[ -e .venv ]] && ! .venv/bin/python -c 'import pip' 2>/dev/null; }; then
        say "the Python environment is incomplete, rebuilding it"
        rm -rf .venv
    fi
    if [[ ! -e .venv ]]; then
        enough_disk . 800
        mkdir .venv
        touch .venv/unfinished
        # System site packages, because Mininet is a Debian package and not on the Python index.
        step "making the Python environment" venv /usr/bin/python3 -m venv --system-site-packages .venv ||
            fail "python3 -m venv failed: $(cause_of venv)"
        # Otherwise pip tries to uninstall Debian's own packages, and reports an error for each.
        fresh=(--ignore-installed)
    fi
    touch .venv/unfinished
    step "installing Python packages" pip "${PIP_INSTALL[@]}" "${fresh[@]}" -r requirements.lock ||
        fail "pip install failed: $(cause_of pip)"
    remove_tests
    rm -f .venv/unfinished
    finished python "$key"
}

# .venv/bin/python imports the packages of this checkout from any folder, as notebooks need. The path is relative to the
# file, so that a moved or copied checkout uses its own.
link_checkout() {
    local folder
    for folder in .venv/lib/python3.*/site-packages; do
        if [[ -d $folder && ! -e $folder/manet.pth ]]; then echo '../../../..' >"$folder/manet.pth"; fi
    done
}

# virtme-ng has an environment of its own, so that its dependencies do not affect ours. It is small enough to be rebuilt.
install_virtme() {
    local key
    guests_are_ready && return
    key=$(guests_key)
    rm -rf .build/guests
    step "making virtme-ng's Python environment" guests-venv /usr/bin/python3 -m venv .build/guests ||
        fail "python3 -m venv failed: $(cause_of guests-venv)"
    step "installing virtme-ng" guests-pip .build/guests/bin/python -m pip install --disable-pip-version-check --no-input \
        --require-virtualenv --progress-bar off --only-binary :all: --require-hashes -r requirements-guests.lock ||
        fail "pip install failed: $(cause_of guests-pip)"
    finished guests "$key"
}

# Installs what a lock file has beside requirements.lock. It is complete, so that no dependency is looked for.
install_extra() { # NAME
    local key beside=.build/requirements-$1.lock
    extra_is_ready "$1" && return
    key=$(extra_key "$1")
    awk '/^[^ #]/ { keep = FILENAME != "requirements.lock" && !($1 in listed); listed[$1] } keep' \
        requirements.lock "requirements-$1.lock" >"$beside"
    step "installing Python packages ($1)" "$1-pip" "${PIP_INSTALL[@]}" --no-deps --ignore-installed -r "$beside" ||
        fail "pip install failed: $(cause_of "$1-pip")"
    remove_tests
    finished "$1" "$key"
}

# The launcher reads this file. Its date precedes the hashing of the sources, so a file saved
# during the build counts as changed.
write_ready() {
    local kind what package source extra
    {
        echo "root $root"
        echo "system $system"
        while read -r kind what package; do
            if [[ $kind == command ]]; then echo "need $what"; fi
        done <<<"$REQUIREMENTS"
        rust_binaries | sed 's/^/file /'
        [[ ! -e kernel-tcp/Makefile ]] || echo "file $BPF_BINARIES"
        for extra in "${EXTRAS[@]}"; do
            if extra_is_ready "$extra"; then
                echo "extra $extra"
                echo "watch requirements-$extra.lock"
            fi
        done
        for source in setup.sh "${RUST_SOURCES[@]}" "${BPF_SOURCES[@]}" "${PYTHON_SOURCES[@]}"; do
            if [[ -e $source ]]; then echo "watch $source"; else echo "absent $source"; fi
        done
    } >.build/ready.list
    cat .build/ready.list >.build/ready.new
    touch -r .build/began .build/ready.new
    mv .build/ready.new .build/ready
    rm .build/ready.list
}

# What this call will do, with the time on two cores, idle or shared, beside a fast mirror (docs/install.md has it by step).
announce() {
    local parts=() packages extra
    packages=$(missing_packages)
    [[ -z $packages ]] || parts+=("packages ($(wc -l <<<"$packages") missing; 1 minute for all)")
    rust_is_ready || parts+=('Rust programs (1 to 5 minutes)')
    bpf_is_ready || parts+=('eBPF programs (5 s)')
    python_is_ready || parts+=('Python environment (half a minute)')
    guests_are_ready || parts+=('virtme-ng')
    for extra in "${extras[@]}"; do extra_is_ready "$extra" || parts+=("Python packages ($extra)"); done
    if ((${#parts[@]})); then
        say "to do: $(printf '%s, ' "${parts[@]}" | sed 's/, $//')"
    fi
}

# If two instances run at once, the second waits and then has nothing left to do.
take_lock() {
    mkdir -p .build/log 2>/dev/null && [[ -w .build ]] || fail "cannot write to $root/.build; run as the owner of the checkout or as root"
    exec 9>.build/lock
    if ! flock -n 9; then
        say "another setup.sh is at work here; waiting for it"
        flock -w 3600 9 || fail "another setup.sh has been at work for an hour; see 'fuser $root/.build/lock'"
    fi
}

# shellcheck disable=SC2329 # a trap calls it
stop_child() {
    trap '' INT TERM
    if [[ -n $running ]]; then
        local patience=50
        kill -TERM -- "-$running" 2>/dev/null || true
        wait "$running" 2>/dev/null || true
        while kill -0 -- "-$running" 2>/dev/null && ((patience--)); do sleep 0.2; done
        kill -KILL -- "-$running" 2>/dev/null || true
    fi
    echo "setup.sh: interrupted; run it again to go on" >&2
    exit 130
}

main() {
    ID='' VERSION_ID='' PRETTY_NAME=''
    # shellcheck disable=SC1091
    if [[ -r /etc/os-release ]]; then . /etc/os-release; fi
    system=${ID:-unknown}${VERSION_ID:+ $VERSION_ID}
    while [[ ${1-} =~ ^--(guests|develop|pages|cluster)$ ]]; do
        if [[ $1 == --guests ]]; then guests=yes; else extras+=("${1#--}"); fi
        shift
    done
    [[ -z $guests || $(uname -m) == x86_64 ]] || fail "--guests: guests are amd64 machines, and this is $(uname -m); leave it out"
    case ${1-} in
    '') ;;
    --ebpf-may-fail) ebpf_may_fail=yes ;;
    --check)
        check
        return
        ;;
    --packages)
        local rust
        available "$(awk 'NF { print $3 }' <<<"$(requirements)")"
        # No package has it where it is rustup's.
        if rust=$(rust_packages 2>/dev/null); then echo "$rust"; elif ! rust_program cargo >/dev/null; then rust_packages; fi
        return
        ;;
    -h | --help)
        sed -n '2,/^set -/ s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
        return
        ;;
    *) fail "unknown argument '$1'; it takes --guests, --develop, --pages, --cluster, --check, --ebpf-may-fail, --packages or nothing" ;;
    esac
    [[ -z $(old_python) ]] || fail "$(python_is_too_old)"
    # Refuse before anything is written if a user without root cannot finish.
    if ((EUID != 0)) && [[ -n $(missing_packages) ]]; then install_packages; fi
    trap stop_child INT TERM
    take_lock
    touch .build/began
    announce
    install_packages
    build_rust
    build_bpf
    build_python
    link_checkout
    install_virtme
    local extra
    for extra in "${extras[@]}"; do install_extra "$extra"; done
    [[ -z $ebpf_failed ]] || return 0 # the next call tries again
    write_ready
    say "ready"
}

main "$@"
exit
