//! What the daemon asks of the host: descriptors, priority, memory that stays, signals, and its parent's death.
//!
//! All but signals may be refused: `status` reports the scheduling that was granted, and the verdict judges its consequences.

use crate::DaemonError;
use nix::libc;
use nix::sys::resource::{getrlimit, getrusage, setrlimit, Resource, UsageWho};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{FromRawFd, OwnedFd};

/// Above ordinary processes, below the kernel's own threads at 50.
const FIFO_PRIORITY: libc::c_int = 10;

/// How the host schedules us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    Fifo,
    Nice,
    Ordinary,
}

impl Scheduling {
    pub fn name(self) -> &'static str {
        match self {
            Scheduling::Fifo => "fifo",
            Scheduling::Nice => "nice",
            Scheduling::Ordinary => "ordinary",
        }
    }
}

/// As many descriptors as the host allows (a station takes three).
pub fn raise_descriptor_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Asks for real-time priority, or else for a better one. Threads started later do not inherit the former.
pub fn ask_for_priority() -> Scheduling {
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

/// No page of ours is swapped out once it has been touched; timers are not rounded. True if memory is locked.
pub fn settle_in_memory() -> bool {
    let _ = nix::sys::prctl::set_timerslack(1);
    // MCL_ONFAULT: thread stacks and reserved heap are not filled in for nothing
    // SAFETY: no pointers
    unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) == 0 }
}

/// SIGTERM and SIGINT as something to read; they no longer end the process by themselves.
pub fn stop_signals() -> Result<SignalFd, DaemonError> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGINT);
    set.thread_block()
        .and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC))
        .map_err(|e| DaemonError(format!("signals cannot be taken over: {}", e.desc())))
}

/// Readable once the parent process has ended. (PR_SET_PDEATHSIG would fire when the parent's *thread* ends.)
pub fn parent() -> Result<OwnedFd, DaemonError> {
    let parent = nix::unistd::getppid();
    // SAFETY: no pointers
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, parent.as_raw(), 0) };
    if fd < 0 || nix::unistd::getppid() != parent {
        return Err(DaemonError("the parent process has ended already; nothing to run for".to_owned()));
    }
    // SAFETY: pidfd_open gave us this descriptor and nobody else has it
    Ok(unsafe { OwnedFd::from_raw_fd(fd as libc::c_int) })
}

/// Seconds of processor time this process has used.
pub fn cpu_s() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |u| {
        [u.user_time(), u.system_time()].iter().map(|t| t.tv_sec() as f64 + t.tv_usec() as f64 * 1e-6).sum()
    })
}
