//! Statistics and permanent address of an interface in the current network namespace, from its driver (linux/ethtool.h).

use crate::DaemonError;
use manet_medium::wire::MacAddress;
use nix::libc;
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};
use std::os::fd::AsRawFd;

nix::ioctl_readwrite_bad!(
    /// SIOCETHTOOL: an ethtool command on an interface.
    ethtool,
    libc::SIOCETHTOOL,
    libc::ifreq
);

const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_PERMANENT_ADDRESS: u32 = 0x20;
const STATISTICS_SET: u32 = 1;
const NAME_LEN: usize = 32;
/// Maximum number of statistics, far above that of any driver.
const ROOM: usize = 1024;
/// MAX_ADDR_LEN of linux/netdevice.h.
const MAX_ADDRESS: usize = 32;

/// Name and value of each statistic of the driver.
///
/// # Errors
/// No such interface, or a driver without statistics.
pub fn statistics(ifname: &str) -> Result<Vec<(String, u64)>, DaemonError> {
    // header: command, set or count, length; then names of 32 bytes
    let mut names = vec![0u8; 12 + ROOM * NAME_LEN];
    names[..4].copy_from_slice(&GET_STRINGS.to_ne_bytes());
    names[4..8].copy_from_slice(&STATISTICS_SET.to_ne_bytes());
    call(ifname, &mut names)?;
    let count = (u32::from_ne_bytes([names[8], names[9], names[10], names[11]]) as usize).min(ROOM);
    // header: command, count; then 64-bit values
    let mut values = vec![0u8; 8 + ROOM * 8];
    values[..4].copy_from_slice(&GET_STATISTICS.to_ne_bytes());
    values[4..8].copy_from_slice(&(count as u32).to_ne_bytes());
    call(ifname, &mut values)?;
    let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
    let value = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
    let names = names[12..].chunks_exact(NAME_LEN).map(name);
    Ok(names.zip(values[8..].chunks_exact(8).map(value)).take(count).collect())
}

/// The permanent address of an interface, whatever address it has now.
///
/// # Errors
/// No such interface, or a driver without this command.
pub fn permanent_address(ifname: &str) -> Result<MacAddress, DaemonError> {
    // header: command, room and then length of the address
    let mut data = [0u8; 8 + MAX_ADDRESS];
    data[..4].copy_from_slice(&GET_PERMANENT_ADDRESS.to_ne_bytes());
    data[4..8].copy_from_slice(&(MAX_ADDRESS as u32).to_ne_bytes());
    call(ifname, &mut data)?;
    Ok(std::array::from_fn(|i| data[8 + i]))
}

fn call(ifname: &str, data: &mut [u8]) -> Result<(), DaemonError> {
    let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|e| DaemonError(e.desc().to_owned()))?;
    let mut request = crate::tap::request(ifname)?;
    request.ifr_ifru.ifru_data = data.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most the names and values of one driver, or one address, into `data`, which has room for
    // 1024 of them, or for the longest
    unsafe { ethtool(control.as_raw_fd(), &mut request) }
        .map_err(|e| DaemonError(format!("interface {ifname}: its driver cannot be queried: {}", e.desc())))?;
    Ok(())
}
