//! TAP devices in other network namespaces (Linux Documentation/networking/tuntap.rst).
//!
//! A TAP is created *inside* its namespace: the thread enters it (setns(2)), opens /dev/net/tun there, and returns.
//! It is not persistent: it is removed with its descriptor, however the process ends.
//! No offloads and no virtio header: a read returns a frame as on a wire.

use crate::DaemonError;
use manet_medium::wire::ethernet::Mac;
use manet_medium::wire::MacAddress;
use nix::errno::Errno;
use nix::libc;
use nix::sched::{setns, CloneFlags};
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// MTU of the interfaces, bytes.
pub const MTU: i32 = 1500;
/// Maximum length of an Ethernet frame from a host, bytes, whatever MTU the interface has.
pub const MAX_FRAME: usize = 65_536;

nix::ioctl_write_ptr_bad!(
    /// TUNSETIFF: creates a TUN or TAP device.
    tun_set_iff,
    nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()),
    libc::ifreq
);
nix::ioctl_write_ptr!(
    /// TUNSETCARRIER: sets the carrier of a device.
    tun_set_carrier,
    b'T',
    226,
    libc::c_int
);
nix::ioctl_write_ptr_bad!(
    /// SIOCSIFHWADDR: sets the hardware address of an interface.
    set_hardware_address,
    libc::SIOCSIFHWADDR,
    libc::ifreq
);
nix::ioctl_readwrite_bad!(
    /// SIOCGIFHWADDR: reads the hardware address of an interface.
    get_hardware_address,
    libc::SIOCGIFHWADDR,
    libc::ifreq
);
nix::ioctl_write_ptr_bad!(
    /// SIOCSIFMTU: sets the MTU of an interface.
    set_mtu,
    libc::SIOCSIFMTU,
    libc::ifreq
);
nix::ioctl_write_ptr_bad!(
    /// SIOCSIFFLAGS: sets the flags of an interface.
    set_flags,
    libc::SIOCSIFFLAGS,
    libc::ifreq
);

/// The error of a configuration without a namespace for the interface of `key`.
pub fn no_netns(key: &str) -> DaemonError {
    DaemonError(format!("key \"{key}.netns\" is missing; `run` makes an interface there (`sim` needs none)"))
}

/// An open network namespace; it exists at least as long as this value.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    path: PathBuf,
}

impl Namespace {
    /// Opens the namespace at `path` (`/proc/PID/ns/net`, `/run/netns/NAME`).
    ///
    /// # Errors
    /// A path that cannot be opened.
    pub fn open(path: &Path) -> Result<Self, DaemonError> {
        let file = File::open(path)
            .map_err(|e| DaemonError(format!("netns {}: {e}; is the station's process running?", path.display())))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// The open file of the namespace.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Executes `work` inside the namespace and returns to the previous one.
    ///
    /// # Errors
    /// That of `work`, or a namespace that cannot be entered.
    ///
    /// # Panics
    /// If the thread cannot return: anything it did from then on would happen in the wrong namespace.
    pub fn inside<R>(&self, work: impl FnOnce() -> Result<R, DaemonError>) -> Result<R, DaemonError> {
        let home = File::open("/proc/thread-self/ns/net")
            .map_err(|e| DaemonError(format!("/proc/thread-self/ns/net: {e}; is /proc mounted?")))?;
        setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(|e| {
            DaemonError(format!("netns {}: cannot be entered: {}; run as root", self.path.display(), e.desc()))
        })?;
        let result = work();
        setns(&home, CloneFlags::CLONE_NEWNET).expect("the way back to the own network namespace is open");
        result
    }
}

/// Result of writing a frame to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    /// The kernel accepted it.
    Taken,
    /// The host has set the interface down.
    Down,
    /// The kernel refused it for another reason.
    Lost,
    /// The interface was deleted.
    Deleted,
}

/// Result of reading from a host.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken<'a> {
    /// An Ethernet frame without FCS.
    Frame(&'a [u8]),
    /// No frame is waiting.
    Nothing,
    /// The interface was deleted.
    Deleted,
}

/// A TAP device in another namespace.
#[derive(Debug)]
pub struct Tap {
    file: File,
    namespace: Namespace,
    ifname: String,
}

impl Tap {
    /// Creates `ifname` with address `mac` in the namespace at `netns` and sets it up.
    ///
    /// # Errors
    /// The step that failed, with a remedy.
    pub fn create(netns: &Path, ifname: &str, mac: MacAddress) -> Result<Self, DaemonError> {
        let namespace = Namespace::open(netns)?;
        let file = namespace
            .inside(|| make(ifname, mac))
            .map_err(|e| DaemonError(format!("{} in netns {}", e.0, netns.display())))?;
        Ok(Self { file, namespace, ifname: ifname.to_owned() })
    }

    /// The next frame from the host; does not block.
    pub fn read<'a>(&self, buffer: &'a mut [u8]) -> Taken<'a> {
        match (&self.file).read(buffer) {
            Ok(length) => Taken::Frame(&buffer[..length]),
            Err(e) if e.raw_os_error() == Some(libc::EBADFD) => Taken::Deleted,
            // nothing waits, or the interface is down
            Err(_) => Taken::Nothing,
        }
    }

    /// Passes a frame to the host; does not block.
    pub fn write(&self, frame: &[u8]) -> Handed {
        match (&self.file).write(frame) {
            Ok(n) if n == frame.len() => Handed::Taken,
            Err(e) if e.raw_os_error() == Some(libc::EIO) => Handed::Down,
            Err(e) if e.raw_os_error() == Some(libc::EBADFD) => Handed::Deleted,
            _ => Handed::Lost,
        }
    }

    /// Sets the carrier of the interface; a station without power has none, and neither has a wire to one.
    pub fn set_carrier(&self, on: bool) {
        let value = libc::c_int::from(on);
        // SAFETY: TUNSETCARRIER reads an int; the descriptor is open. It fails only for a device that is gone.
        let _ = unsafe { tun_set_carrier(self.file.as_raw_fd(), &value) };
    }

    /// Number of frames from the host that the kernel dropped before they were read; `None`: the interface was deleted.
    pub fn dropped(&self) -> Option<u64> {
        let table = self
            .namespace
            .inside(|| std::fs::read_to_string("/proc/thread-self/net/dev").map_err(|e| DaemonError(e.to_string())));
        tx_dropped(&table.ok()?, &self.ifname)
    }
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Column "drop" of "Transmit" in /proc/net/dev: after 8 columns of "Receive", the fourth.
fn tx_dropped(table: &str, ifname: &str) -> Option<u64> {
    let line = table.lines().find_map(|l| l.trim_start().strip_prefix(ifname)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

/// An `ifreq` with the name of an interface.
///
/// # Errors
/// A name that is not 1 to 15 characters, or has a character that interface names cannot have.
pub fn request(ifname: &str) -> Result<libc::ifreq, DaemonError> {
    if ifname.is_empty()
        || ifname.len() >= libc::IFNAMSIZ
        || ifname.contains(|c: char| c == '/' || c == '%' || c.is_whitespace())
    {
        return Err(DaemonError(format!("ifname \"{ifname}\" is no interface name of 1 to 15 characters")));
    }
    // SAFETY: ifreq is plain data for which all zeroes is a value
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(ifname.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// Creates a TAP in the current namespace.
fn make(ifname: &str, mac: MacAddress) -> Result<File, DaemonError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")
        .map_err(|e| DaemonError(format!("/dev/net/tun: {e}; load the kernel's tun module and run as root")))?;
    let mut r = request(ifname)?;
    r.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: an ifreq is what TUNSETIFF reads; the descriptor is open
    unsafe { tun_set_iff(file.as_raw_fd(), &r) }.map_err(|e| failed(ifname, "cannot be made", e))?;
    let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|e| failed(ifname, "no socket to configure it with", e))?;
    let mut r = request(ifname)?;
    let mut address = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: [0; 14] };
    for (to, from) in address.sa_data.iter_mut().zip(mac) {
        *to = from as libc::c_char;
    }
    r.ifr_ifru.ifru_hwaddr = address;
    // SAFETY: here and below, an ifreq is what these requests read; the descriptor is open
    unsafe { set_hardware_address(control.as_raw_fd(), &r) }
        .map_err(|e| failed(ifname, &format!("cannot take the address {}", Mac(mac)), e))?;
    let mut r = request(ifname)?;
    r.ifr_ifru.ifru_mtu = MTU;
    unsafe { set_mtu(control.as_raw_fd(), &r) }.map_err(|e| failed(ifname, "cannot take MTU 1500", e))?;
    set_up(&control, ifname)?;
    Ok(file)
}

/// Sets an interface of the current namespace up.
///
/// # Errors
/// The kernel's refusal, with a remedy.
pub fn set_interface_up(ifname: &str) -> Result<(), DaemonError> {
    let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|e| failed(ifname, "no socket to configure it with", e))?;
    set_up(&control, ifname)
}

/// Hardware address of an interface of the current namespace.
///
/// # Errors
/// No such interface.
pub fn hardware_address(ifname: &str) -> Result<MacAddress, DaemonError> {
    let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|e| failed(ifname, "no socket to ask for it with", e))?;
    let mut r = request(ifname)?;
    // SAFETY: an ifreq is what this request reads and writes; the descriptor is open
    unsafe { get_hardware_address(control.as_raw_fd(), &mut r) }.map_err(|e| failed(ifname, "is not there", e))?;
    // SAFETY: all six bytes of this member were written
    let bytes = unsafe { r.ifr_ifru.ifru_hwaddr }.sa_data;
    Ok(std::array::from_fn(|i| bytes[i] as u8))
}

fn set_up(control: &OwnedFd, ifname: &str) -> Result<(), DaemonError> {
    let mut r = request(ifname)?;
    r.ifr_ifru.ifru_flags =
        (libc::IFF_UP | libc::IFF_RUNNING | libc::IFF_BROADCAST | libc::IFF_MULTICAST) as libc::c_short;
    // SAFETY: an ifreq is what this request reads; the descriptor is open
    unsafe { set_flags(control.as_raw_fd(), &r) }.map_err(|e| failed(ifname, "cannot be set up", e))?;
    Ok(())
}

fn failed(ifname: &str, what: &str, errno: Errno) -> DaemonError {
    let remedy = match errno {
        Errno::EBUSY | Errno::EEXIST | Errno::EINVAL => {
            "; is there an interface of that name already? `manet clean` removes old ones"
        }
        Errno::EPERM | Errno::EACCES => "; run as root",
        _ => "",
    };
    DaemonError(format!("interface {ifname}: {what}: {}{remedy}", errno.desc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_are_read_from_the_transmit_side() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
             face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls\n    \
             lo:       1       2    3    4    5     6          7         8        9      10   11   12   13    14\n \
             wlan0: 100 2 0 3 0 0 0 0 200 4 0 77 0 0 0 0\n";
        assert_eq!(tx_dropped(table, "wlan0"), Some(77));
        assert_eq!(tx_dropped(table, "lo"), Some(12));
        assert_eq!(tx_dropped(table, "wlan"), None);
    }

    #[test]
    fn the_address_of_an_interface_is_read_and_a_missing_interface_is_named() {
        assert_eq!(hardware_address("lo").unwrap(), [0; 6]);
        assert!(hardware_address("absent0").unwrap_err().0.starts_with("interface absent0: is not there: "));
    }

    #[test]
    fn impossible_names_and_namespaces_are_refused_with_a_remedy() {
        assert!(request("a-name-too-long-for-linux").is_err());
        assert!(request("a/b").is_err());
        let e = Tap::create(Path::new("/proc/nonexistent/ns"), "wlan0", [2, 0, 0, 0, 0, 1]).unwrap_err();
        assert!(e.0.starts_with("netns /proc/nonexistent/ns: ") && e.0.ends_with("is the station's process running?"));
    }
}
