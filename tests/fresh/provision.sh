#!/bin/bash
# provision.sh: tests that the Vagrantfile's provisioning makes a working machine. Nightly, as root: `make nightly-provision`.
#
#   tests/fresh/provision.sh                  from a fresh Debian 13 root file system
#   tests/fresh/provision.sh --again          boots the one provisioned last time
#
# Three steps:
#   1. fresh.sh makes a Debian 13 root file system with the standard parts of a Debian machine (its own kernel, systemd, udev) and
#      runs the Vagrantfile's provisioner "setup" in it, in a chroot on this machine's kernel and network. Compiling in software
#      emulation would take hours, and setup does not depend on the kernel.
#   2. The root file system is copied into a disk image and booted by QEMU with its own kernel and systemd, without a network.
#   3. The guest runs as an ordinary service: `./setup.sh --check` (nothing may be missing), the Vagrantfile's provisioner "doctor", and
#      `./manet demo`. Their output is printed here; results of the demo go to $PROVISION_OUT (default results/provision).
#
# The status is 0 if all three ended with 0. Void runs of the demo are ignored; failed runs are not. In software emulation the
# guest has one CPU that counts instructions (as `manet vm --cpus 1`, testbed/guests/README.md).
# It needs the requirements of fresh.sh, QEMU and e2fsprogs. Environment: FRESH_DIR, DEBIAN_MIRROR (fresh.sh), PROVISION_OUT,
# PROVISION_KVM=1 (with KVM, two CPUs), PROVISION_S (time limit of the guest, default 7200).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
store=${FRESH_DIR:-/var/tmp/manet-fresh}
rootfs=$store/trixie
image=$store/trixie.img
out=${PROVISION_OUT:-$here/results/provision}
readonly LONGEST_S=${PROVISION_S:-7200} SPARE_MB=3000
# The packages of Debian's boxes before provisioning.
readonly MACHINE='linux-image-amd64 initramfs-tools systemd-sysv udev kmod zstd iproute2 sudo rsync'

fail() {
    echo "provision.sh: $*" >&2
    exit 1
}

provisioner() { # NAME: its command of the Vagrantfile, without the cd
    sed -nE "s/^ *config\.vm\.provision \"$1\", type: \"shell\", inline: \"cd [^ ]+ \&\& (.*)\"\$/\1/p" "$here/Vagrantfile"
}

provision() {
    local setup
    setup=$(provisioner setup)
    [[ -n $setup ]] || fail "the Vagrantfile has no provisioner \"setup\" of one line"
    "$here/tests/fresh/fresh.sh" 13 sh -ec "
        export DEBIAN_FRONTEND=noninteractive
        apt-get -qq update
        apt-get -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 install $MACHINE >/dev/null
        apt-get clean
        $setup"
}

# The service that does step 3 and ends the machine.
add_job() {
    local doctor
    doctor=$(provisioner doctor)
    [[ -n $doctor ]] || fail "the Vagrantfile has no provisioner \"doctor\" of one line"
    cat >"$rootfs/root/job" <<JOB
#!/bin/bash
exec </dev/null >/dev/ttyS1 2>&1
stty -F /dev/ttyS1 raw
cd /root/manet
export HOME=/root LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
run() {
    echo "--- \$1"
    local began=\$SECONDS status=0
    bash -c "\$1" || status=\$?
    echo "--- status \$status of: \$1 (\$((SECONDS - began)) s of the guest's time)"
}
echo "--- \$(uname -rv), up \$(cut -d . -f 1 /proc/uptime) s, units that failed: \$(systemctl list-units --failed --plain --no-legend | wc -l)"
run './setup.sh --guests --check'
run '$doctor'
run './manet demo'
sync
echo '--- end'
JOB
    cat >"$rootfs/etc/systemd/system/manet-job.service" <<'UNIT'
[Unit]
Description=checks of tests/fresh/provision.sh
After=multi-user.target
[Service]
Type=oneshot
TimeoutStartSec=infinity
ExecStart=/bin/bash /root/job
ExecStopPost=/usr/bin/systemctl poweroff --no-block
[Install]
WantedBy=multi-user.target
UNIT
    chroot "$rootfs" systemctl -q enable manet-job.service
    rm -rf "$rootfs/root/manet/results"
}

make_image() {
    local used_mb
    used_mb=$(du -smx "$rootfs" | cut -f 1)
    echo "provision: $used_mb MB of files into a disk image"
    (($(df -Pm "$store" | awk 'NR == 2 { print $4 }') > used_mb + SPARE_MB)) ||
        fail "$store: less than $((used_mb + SPARE_MB)) MB are free; free some, or name another folder with FRESH_DIR"
    rm -f "$image"
    # fstab names the root file system, as after Debian's installer.
    echo '/dev/vda / ext4 defaults 0 1' >"$rootfs/etc/fstab"
    mke2fs -q -t ext4 -d "$rootfs" "$image" $((used_mb + SPARE_MB))M
}

boot() {
    local accelerator=(-accel tcg -cpu max -smp 1 -icount 'shift=0,sleep=on')
    if [[ -n ${PROVISION_KVM-} ]]; then accelerator=(-accel kvm -cpu host -smp 2); fi
    echo "provision: booting $(basename "$(readlink -f "$rootfs/vmlinuz")")"
    # Job and console each go to a file; `timeout` ends a guest that hangs.
    : >"$out/job.log"
    tail -n +1 -f --pid=$$ "$out/job.log" &
    local follower=$! status=0
    timeout -k 10 "$LONGEST_S" qemu-system-x86_64 -M q35 "${accelerator[@]}" -m 2048 -nodefaults -display none -no-reboot \
        -kernel "$rootfs/vmlinuz" -initrd "$rootfs/initrd.img" -append 'root=/dev/vda rw console=ttyS0 panic=-1' \
        -drive "file=$image,if=virtio,format=raw,cache=unsafe" -device virtio-rng-pci -nic none \
        -serial "file:$out/console.log" -serial "file:$out/job.log" </dev/null || status=$?
    sleep 1
    kill "$follower" 2>/dev/null || true
    ((status == 0)) || fail "the guest did not end by itself in $LONGEST_S s (QEMU: $status); see $out/console.log"
}

# The setup check, the doctor and the demo must have ended with 0; the demo may end with 1 if void runs are the only reason.
judge() {
    local log=$out/job.log status
    debugfs -R "rdump /root/manet/results $out" "$image" >/dev/null 2>&1 || true
    grep -aq '^--- end' "$log" || fail "the job did not finish; see $log and $out/console.log"
    while read -r _ _ status _; do
        ((status == 0)) || { [[ $status == 1 ]] && only_void "$log"; } || fail "not all of it worked: $(statuses "$log")"
    done < <(grep -a '^--- status ' "$log" | tr -d '\r')
    [[ $(grep -ac '^--- status 0 of: ' "$log") -ge 2 ]] || fail "not all of it worked: $(statuses "$log")"
    echo "provision: it works: $(statuses "$log"); $out has the output"
}

statuses() { grep -a '^--- status ' "$1" | tr -d '\r' | sed 's/^--- //' | paste -sd ';'; }

only_void() { # LOG: there were void runs, and no failed ones
    grep -aq '^manet run: .*: void; see ' "$1" && ! grep -aq '^manet run: .*: failed; see ' "$1"
}

case ${1-} in
'' | --again) ;;
*) fail "unknown argument '$1'; it takes --again or nothing" ;;
esac
((EUID == 0)) || fail "chroot and disk images need root"
for program in qemu-system-x86_64:qemu-system-x86 mke2fs:e2fsprogs debugfs:e2fsprogs timeout:coreutils; do
    command -v "${program%:*}" >/dev/null || fail "${program%:*} is not installed: apt-get install ${program#*:}"
done
mkdir -p "$out"
began=$SECONDS
if [[ -z ${1-} ]]; then provision; fi
[[ -e $rootfs/root/manet/.build/ready && -e $rootfs/vmlinuz ]] || fail "$rootfs: not provisioned by a last time; leave out --again"
provisioned=$((SECONDS - began))
add_job
make_image
imaged=$((SECONDS - began))
boot
echo "provision: provisioned in $provisioned s, image in $((imaged - provisioned)) s, guest in $((SECONDS - began - imaged)) s"
judge
rm -f "$image"
