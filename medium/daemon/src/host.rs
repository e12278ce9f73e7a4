//! Requests to the host: descriptors, priority, locked memory, signals, and notice of the parent's end.
//!
//! The host may refuse all but signals: `status` reports the scheduling that was granted, and the verdict judges its consequences.

use crate::DaemonError;
use nix::libc;
use nix::sys::resource::{getrlimit, getrusage, setrlimit, Resource, UsageWho};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{FromRawFd, OwnedFd};

/// Above ordinary processes, below the kernel's own threads at 50.
const FIFO_PRIORITY: libc::c_int = 10;

/// Scheduling of the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// SCHED_FIFO.
    Fifo,
    /// Nice level -20.
    Nice,
    /// Unchanged.
    Ordinary,
}

impl Scheduling {
    /// Name in the answer to `status`.
    pub fn name(self) -> &'static str {
        match self {
            Scheduling::Fifo => "fifo",
            Scheduling::Nice => "nice",
            Scheduling::Ordinary => "ordinary",
        }
    }
}

/// Raises the limit of open descriptors to the maximum (a station needs three).
pub fn raise_descriptor_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Requests real-time priority, or else nice level -20; returns what was granted. Threads started later do not inherit real time.
pub fn request_priority() -> Scheduling {
    let parameter = libc::sched_param { sched_priority: FIFO_PRIORITY };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter outlives the call; 0 is this thread
    if unsafe { libc::sched_setscheduler(0, policy, &parameter) } == 0 {
        return Scheduling::Fifo;
    }
    // SAFETY: no pointers
    if unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) } == 0 {
        return Scheduling::Nice;
    }
    Scheduling::Ordinary
}

/// Locks touched pages in memory and sets the timer slack to 1 ns. Returns whether memory is locked: not without the right to any
/// amount, since the kernel would then refuse allocations above the limit.
pub fn settle_in_memory() -> bool {
    let _ = nix::sys::prctl::set_timerslack(1);
    if setrlimit(Resource::RLIMIT_MEMLOCK, libc::RLIM_INFINITY, libc::RLIM_INFINITY).is_err() {
        return false;
    }
    // MCL_ONFAULT: unused thread stacks and reserved heap take no memory
    // SAFETY: no pointers
    unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) == 0 }
}

/// SIGTERM and SIGINT as a readable descriptor; they no longer end the process themselves.
///
/// # Errors
/// The errors of signalfd(2).
pub fn stop_signals() -> Result<SignalFd, DaemonError> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGINT);
    set.thread_block()
        .and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC))
        .map_err(|e| DaemonError(format!("signals cannot be taken over: {}", e.desc())))
}

/// A descriptor that is readable once the parent process has ended. (PR_SET_PDEATHSIG would fire when the parent's *thread* ends.)
///
/// # Errors
/// The parent has ended already.
pub fn parent() -> Result<OwnedFd, DaemonError> {
    let parent = nix::unistd::getppid();
    // SAFETY: no pointers
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, parent.as_raw(), 0) };
    if fd < 0 || nix::unistd::getppid() != parent {
        return Err(DaemonError("the parent process has ended already; nothing to run for".to_owned()));
    }
    // SAFETY: pidfd_open returned this descriptor and nothing else owns it
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Processor time of this process, s.
pub fn cpu_s() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |u| {
        [u.user_time(), u.system_time()].iter().map(|t| t.tv_sec() as f64 + t.tv_usec() as f64 * 1e-6).sum()
    })
}
