#!/bin/busybox sh
# init.sh: the first process of a guest, after virtme-ng's initramfs has mounted this machine's files read-only.
#
# It lays a file system in memory over them, so that everything can be written and nothing of it lasts, mounts the
# folders that are shared for writing, prepares what manet needs (cgroup2, bpffs, TUN, modules on demand), runs the
# job and says how it ended. guest.py is at the other end:
#
#   kernel command line   manet.modules=FOLDER, manet.mode=run|shell|memory, manet.job=FILE
#   that file             shell text: job_shares() calls mount_share for each, job() runs the command; job_time, seconds
#   port manet.out, .err  what the job prints
#   port manet.in         what the job reads; without this port nothing
#   port manet.status     "ready", then "status N"; the host then ends the guest, nothing has to be shut down
#   9p tag manet.rootfs   / of the host, read-only; manet.shareN: a folder to write to
#
# A guest with all of its files in its initramfs (third argument: `memory`) has only the second pass. It reads nothing of the
# host's, and its job mounts the shared folders itself.
#
# Run by a static busybox whose shell prefers its own commands: under emulation each program that is started from the
# disk costs half a second. Departs from virtme-ng's own init: no udev, no systemd-tmpfiles, and all of / writable.
set -u
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

readonly NINEP=version=9p2000.L,trans=virtio,access=any,msize=500000

option() { # NAME: its value on the kernel's command line
    local word
    read -r line </proc/cmdline
    for word in $line; do
        case $word in "$1="*) echo "${word#*=}" ;; esac
    done
}

port() { # NAME: the device of a virtio port, without udev's links
    local entry name
    for entry in /sys/class/virtio-ports/*; do
        read -r name <"$entry/name"
        if [ "$name" = "$1" ]; then echo "/dev/${entry##*/}"; fi
    done
}

# ----- first pass: this machine's files, made writable -----------------------------------------------------------------

lay_over_the_files() { # ARGUMENTS: how this script was called
    "$1" mount -t proc proc /proc
    mount -t tmpfs -o size=70% files /run
    load overlay
    mkdir /run/host /run/root /run/memory /run/memory/upper /run/memory/work
    # A second export of the same files: these may be cached here, which makes Python's start ten times faster.
    mount -t 9p -o "ro,$NINEP,cache=loose" manet.rootfs /run/host || { echo "init.sh: no 9p export of /"; sleep 2; }
    mount -t overlay -o lowerdir=/run/host,upperdir=/run/memory/upper,workdir=/run/memory/work files /run/root
    # As switch_root does, which in busybox is for an initramfs only.
    cd /run/root || exit 1
    "$1" mount -o move . /
    exec "$1" chroot . "$1" sh "$2" "$1" "$2" second
}

load() { # MODULE, before /lib/modules is there
    local file
    file=$(option manet.modules)/lib/modules/$(uname -r)/kernel/fs/overlayfs/$1.ko
    if [ -e "$file" ]; then insmod "$file"; elif [ -e "$file.xz" ]; then insmod "$file.xz"; fi
}

# ----- second pass -------------------------------------------------------------------------------------------------------

mount_the_rest() { # BUSYBOX
    local modules
    "$1" mount -t proc proc /proc
    mount -t sysfs sys /sys
    mount -t devtmpfs dev /dev
    mount -t tmpfs -o mode=755 run /run
    mkdir -p /dev/pts /dev/shm /run/manet-guest
    mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
    mount -t tmpfs -o mode=1777 shm /dev/shm
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mount -t bpf bpf /sys/fs/bpf
    mount -t debugfs debugfs /sys/kernel/debug
    mount -t tracefs tracefs /sys/kernel/tracing
    [ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
    if [ ! -e /dev/stdin ]; then
        ln -s /proc/self/fd/0 /dev/stdin
        ln -s /proc/self/fd/1 /dev/stdout
        ln -s /proc/self/fd/2 /dev/stderr
    fi
    # With modules where the kernel looks for them, algorithms and devices come on demand. A machine with no more than the headers of
    # this kernel has the folder, too, with the links `build` and `source` in it, and modules that its user built against them.
    modules=/usr/lib/modules/$(uname -r)
    if [ ! -e "$modules/kernel" ]; then
        mkdir -p "$modules"
        ln -sf "$(option manet.modules)/lib/modules/$(uname -r)"/* "$modules"
        if [ -e "$modules/extra" ] || [ -e "$modules/updates" ]; then /sbin/depmod; fi
    fi
    modprobe tun
    ip link set lo up
    hostname manet-guest
    ulimit -n 65536
}

mount_share() { # NUMBER FOLDER
    mkdir -p "$2"
    # With a cache (mmap, loose) whoever opens a file while another appends to it takes the host's size for the file's, and the next
    # piece is written over the last one: logs that this testbed waits for lost lines.
    mount -t 9p -o "rw,$NINEP,cache=none" "manet.share$1" "$2"
}

# The job's output goes through pipes: a port cannot be opened twice, and programs open /dev/stderr.
run_job() {
    local out err status input=/dev/null
    mkfifo /run/manet-guest/out /run/manet-guest/err
    cat /run/manet-guest/out >"$(port manet.out)" &
    out=$!
    cat /run/manet-guest/err >"$(port manet.err)" &
    err=$!
    if [ -n "$(port manet.in)" ]; then
        input=/run/manet-guest/in
        mkfifo "$input"
        cat "$(port manet.in)" >"$input" &
    fi
    (job) <"$input" >/run/manet-guest/out 2>/run/manet-guest/err
    status=$?
    # A daemon of the job's may hold the pipes; what the job itself printed is through by then.
    (sleep 2 && kill "$out" "$err") 2>/dev/null &
    wait "$out" "$err" 2>/dev/null
    return "$status"
}

case ${3-} in
second | memory) ;;
*) lay_over_the_files "$@" ;;
esac
mount_the_rest "$1"
exec 9>"$(port manet.status)"
# shellcheck disable=SC1090 # made for each job: the functions job and job_shares, and job_time
. "$(option manet.job)"
if [ "${3-}" != memory ]; then job_shares; fi
# shellcheck disable=SC2154
if [ -n "$job_time" ]; then date -s "@$job_time" >/dev/null; fi
echo ready >&9
if [ "$(option manet.mode)" = shell ]; then
    (job) </dev/ttyS0 >/dev/ttyS0 2>&1
    status=$?
    stty raw </dev/ttyS0 # returns when all output has been sent
else
    run_job
    status=$?
fi
sync
echo "status $status" >&9
while :; do sleep 60; done
