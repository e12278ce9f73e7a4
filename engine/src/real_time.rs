//! The wall-clock driver: one thread, epoll.
//!
//! Model time is the *scheduled* instant; the wall clock (CLOCK_MONOTONIC, read in this file only)
//! decides when events are released, all of them in model order even if late. The loop sleeps until the next
//! externally visible event ([`Machine::next_visible`]) and then does all that was due. Input from outside is
//! stamped with the wall clock mapped to model time, never before the last event. An *immediate* answer to an output
//! ([`Outside::react`]: packets that the kernel sends from inside our `write`) is stamped with the instant of its
//! cause: the host's answer takes no model time, and the lateness of the driver does not enter the loop.
//!
//! Each release to the outside is recorded with its lateness. A gap of more than [`STALL`] between the instant at which
//! the loop had to run and the instant at which it did (SIGSTOP, a suspended host, starvation) is counted as a stall,
//! also when nothing was due: the loop turns at least every [`HEARTBEAT`], or as often as [`RealTime::set_heartbeat`] sets.
//!
//! The loop wakes at an instant by the time-out of epoll_pwait2(2) (Linux 5.11), in one system call, or by a timerfd beside epoll_wait(2),
//! in two: on older kernels, and for waits that may be longer than [`MAX_TIMEOUT`].

use crate::lateness::Lateness;
use crate::virtual_time::{Outside, Timeline};
use crate::{Duration, Instant, Machine};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rustix::buffer::spare_capacity;
use rustix::event::{epoll, Timespec};
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;

/// A longer gap between the planned and the actual turn of the loop is a stall.
pub const STALL: Duration = Duration::from_millis(50);
/// Longest time between two turns of the loop, unless [`RealTime::set_heartbeat`] sets another.
pub const HEARTBEAT: Duration = Duration::from_millis(25);
/// Longest heartbeat with which the loop sleeps by time-outs of epoll: the kernel may be late with one by a thousandth of it
/// (select_estimate_accuracy, fs/select.c), but not with a timerfd.
const MAX_TIMEOUT: Duration = Duration::from_millis(50);
const TIMER_TOKEN: u64 = u64::MAX;
const EVENTS_AT_ONCE: usize = 64;

/// Model time as a function of the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// CLOCK_MONOTONIC at model time 0.
    zero_ns: u64,
}

fn read(clock: nix::time::ClockId) -> u64 {
    // cannot fail: both clocks used here exist on every Linux
    clock.now().map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

impl Clock {
    /// A clock whose model time 0 is now.
    pub fn starting_now() -> Self {
        Self { zero_ns: read(nix::time::ClockId::CLOCK_MONOTONIC) }
    }

    /// The model time now; reads CLOCK_MONOTONIC.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read(nix::time::ClockId::CLOCK_MONOTONIC).saturating_sub(self.zero_ns))
    }

    /// CLOCK_REALTIME at model time 0 in ns since 1970; timestamps of packet captures are relative to it.
    pub fn epoch_ns(&self) -> u64 {
        read(nix::time::ClockId::CLOCK_REALTIME).saturating_sub(self.now().as_nanos())
    }

    fn wall(&self, at: Instant) -> TimeSpec {
        TimeSpec::from_duration(std::time::Duration::from_nanos(self.zero_ns.saturating_add(at.as_nanos())))
    }
}

/// Timing of a run as the driver measured it.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// Lateness of each release to the outside.
    pub lateness: Lateness,
    /// Number of gaps longer than [`STALL`].
    pub stalls: u64,
    /// Total length of the stalls.
    pub stalled: Duration,
    /// Length of the longest stall.
    pub longest_stall: Duration,
}

impl Health {
    fn record_gap(&mut self, gap: Duration) {
        if gap > STALL {
            self.stalls += 1;
            self.stalled += gap;
            self.longest_stall = self.longest_stall.max(gap);
        }
    }
}

/// The set of descriptors that wake the driver. Clones share it. Closing a descriptor removes it.
#[derive(Clone, Debug)]
pub struct Watcher(Rc<Epoll>);

fn interest(writable: bool) -> EpollFlags {
    if writable {
        EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT
    } else {
        EpollFlags::EPOLLIN
    }
}

impl Watcher {
    /// Reports `token` while `fd` is readable (or, with `writable`, writable). The token `u64::MAX` is reserved.
    ///
    /// # Errors
    /// The errors of epoll_ctl(2), EEXIST for a descriptor that is watched already.
    pub fn watch(&self, fd: &impl AsFd, token: u64, writable: bool) -> io::Result<()> {
        Ok(self.0.add(fd, EpollEvent::new(interest(writable), token))?)
    }
    /// Changes token and interest of a watched descriptor.
    ///
    /// # Errors
    /// The errors of epoll_ctl(2), ENOENT for a descriptor that is not watched.
    pub fn change(&self, fd: &impl AsFd, token: u64, writable: bool) -> io::Result<()> {
        Ok(self.0.modify(fd, &mut EpollEvent::new(interest(writable), token))?)
    }
    /// Removes a descriptor.
    ///
    /// # Errors
    /// The errors of epoll_ctl(2), ENOENT for a descriptor that is not watched.
    pub fn unwatch(&self, fd: &impl AsFd) -> io::Result<()> {
        Ok(self.0.delete(fd)?)
    }
}

/// A machine driven by the wall clock.
pub struct RealTime<M: Machine> {
    timeline: Timeline<M>,
    clock: Clock,
    epoll: Watcher,
    /// Whether the kernel has epoll_pwait2(2).
    has_timeouts: bool,
    events: Vec<epoll::Event>,
    timer: TimerFd,
    armed: Option<Instant>,
    /// The instant at which the loop must turn next.
    due: Instant,
    heartbeat: Duration,
    ready: Vec<u64>,
    health: Health,
    is_release: fn(&M::Output) -> bool,
    /// Debug: added to every wake-up.
    extra_sleep: Duration,
}

impl<M: Machine> RealTime<M> {
    /// Starts model time. `is_release`: whether an output acts on the outside, so that its lateness counts.
    ///
    /// # Errors
    /// The errors of epoll_create1(2) and timerfd_create(2).
    pub fn start(machine: M, is_release: fn(&M::Output) -> bool) -> io::Result<Self> {
        let epoll = Watcher(Rc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?));
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
        epoll.watch(&timer, TIMER_TOKEN, false)?;
        Ok(Self {
            timeline: Timeline::new(machine),
            clock: Clock::starting_now(),
            has_timeouts: has_timeouts(&epoll),
            events: Vec::with_capacity(EVENTS_AT_ONCE),
            epoll,
            timer,
            armed: None,
            due: Instant::ZERO + HEARTBEAT,
            heartbeat: HEARTBEAT,
            ready: Vec::new(),
            health: Health::default(),
            is_release,
            extra_sleep: Duration::ZERO,
        })
    }

    /// Debug: delays every wake-up by this much, to measure the effect of lateness on results.
    pub fn inject_lateness(&mut self, late: Duration) {
        self.extra_sleep = late;
    }

    /// Sets the longest time between two turns of the loop (default: [`HEARTBEAT`]). A longer one detects fewer stalls.
    pub fn set_heartbeat(&mut self, every: Duration) {
        self.heartbeat = every;
        self.due = self.clock.now() + every;
    }

    /// The mapping between wall clock and model time.
    pub fn clock(&self) -> Clock {
        self.clock
    }
    /// Lateness and stalls so far.
    pub fn health(&self) -> &Health {
        &self.health
    }
    /// The machine and its model time.
    pub fn timeline(&self) -> &Timeline<M> {
        &self.timeline
    }
    /// See [`Timeline::machine_mut`].
    pub fn machine_mut(&mut self) -> &mut M {
        self.timeline.machine_mut()
    }

    /// The set of descriptors that [`Self::turn`] reports.
    pub fn watcher(&self) -> Watcher {
        self.epoll.clone()
    }

    /// Sleeps until something is due or readable, releases all that is due, and returns the tokens that are ready.
    ///
    /// # Errors
    /// The errors of epoll_wait(2) and timerfd_settime(2).
    pub fn turn(&mut self, outside: &mut impl Outside<M>) -> io::Result<Vec<u64>> {
        self.sleep()?;
        let now = self.clock.now();
        self.health.record_gap(now.since(self.due));
        self.release(now, outside);
        self.due = self.clock.now() + self.heartbeat;
        Ok(std::mem::take(&mut self.ready))
    }

    /// Hands an input to the machine, stamped with the present model time.
    pub fn input(&mut self, input: M::Input, outside: &mut impl Outside<M>) {
        let now = self.clock.now();
        let mut timed = Timed { outside, clock: self.clock, health: &mut self.health, is_release: self.is_release };
        self.timeline.input(now, input, &mut timed);
    }

    /// Releases all that is due by now, and returns now: the machine's state is then that of this instant. Between two turns the
    /// state may be older: the loop does not wake up for changes without an effect outside.
    pub fn catch_up(&mut self, outside: &mut impl Outside<M>) -> Instant {
        let now = self.clock.now();
        self.release(now, outside);
        now
    }

    fn release(&mut self, now: Instant, outside: &mut impl Outside<M>) {
        let mut timed = Timed { outside, clock: self.clock, health: &mut self.health, is_release: self.is_release };
        self.timeline.run_until(now, &mut timed);
    }

    fn sleep(&mut self) -> io::Result<()> {
        let deadline = self.timeline.machine().next_visible().map(|d| d + self.extra_sleep);
        let now = self.clock.now();
        self.due = deadline.map_or(self.due, |d| self.due.min(d.max(self.timeline.now())));
        if self.has_timeouts && self.heartbeat <= MAX_TIMEOUT {
            let wait = deadline.map_or(self.heartbeat, |d| d.since(now).min(self.heartbeat));
            self.sleep_for(wait)
        } else {
            self.sleep_by_timer(deadline, now)
        }
    }

    fn sleep_for(&mut self, wait: Duration) -> io::Result<()> {
        if self.armed.take().is_some() {
            self.timer.unset()?;
        }
        self.events.clear();
        match wait_for(&self.epoll, &mut self.events, wait) {
            Err(rustix::io::Errno::INTR) => {}
            other => drop(other?),
        }
        self.ready.extend(self.events.iter().map(|event| event.data.u64()).filter(|t| *t != TIMER_TOKEN));
        Ok(())
    }

    fn sleep_by_timer(&mut self, deadline: Option<Instant>, now: Instant) -> io::Result<()> {
        let mut wait = self.heartbeat;
        match deadline {
            Some(d) if d <= now => wait = Duration::ZERO,
            Some(d) if Some(d) != self.armed => self.arm(d)?,
            Some(_) => {}
            // an expired timer that stays set would wake the loop for ever
            None if self.armed.is_some_and(|a| a <= now) => {
                self.timer.unset()?;
                self.armed = None;
            }
            None => {}
        }
        let mut events = [EpollEvent::empty(); EVENTS_AT_ONCE];
        let wait_ms = i32::try_from(wait.as_nanos() / 1_000_000).unwrap_or(i32::MAX);
        let timeout = EpollTimeout::try_from(wait_ms).unwrap_or(EpollTimeout::ZERO);
        let count = match self.epoll.0.wait(&mut events, timeout) {
            Err(nix::errno::Errno::EINTR) => 0,
            other => other?,
        };
        self.ready.extend(events[..count].iter().map(EpollEvent::data).filter(|t| *t != TIMER_TOKEN));
        Ok(())
    }

    fn arm(&mut self, at: Instant) -> io::Result<()> {
        self.armed = Some(at);
        let wall = Expiration::OneShot(self.clock.wall(at));
        Ok(self.timer.set(wall, TimerSetTimeFlags::TFD_TIMER_ABSTIME)?)
    }
}

/// epoll_pwait2(2): appends what is ready to `events`, up to their capacity.
fn wait_for(epoll: &Watcher, events: &mut Vec<epoll::Event>, wait: Duration) -> rustix::io::Result<usize> {
    const SECOND: u64 = 1_000_000_000;
    let (tv_sec, tv_nsec) = ((wait.as_nanos() / SECOND) as i64, (wait.as_nanos() % SECOND) as i64);
    epoll::wait(&epoll.0 .0, spare_capacity(events), Some(&Timespec { tv_sec, tv_nsec }))
}

/// Whether the kernel has epoll_pwait2(2): ENOSYS before Linux 5.11, EPERM under filters of system calls that do not know it.
fn has_timeouts(epoll: &Watcher) -> bool {
    wait_for(epoll, &mut Vec::with_capacity(1), Duration::ZERO).is_ok()
}

/// The outside, with the lateness of each release measured.
struct Timed<'a, M: Machine, S> {
    outside: &'a mut S,
    clock: Clock,
    health: &'a mut Health,
    is_release: fn(&M::Output) -> bool,
}

impl<M: Machine, S: Outside<M>> Outside<M> for Timed<'_, M, S> {
    fn put(&mut self, at: Instant, output: M::Output) {
        if (self.is_release)(&output) {
            self.health.lateness.record(self.clock.now().since(at));
        }
        self.outside.put(at, output);
    }
    fn react(&mut self) -> Option<M::Input> {
        self.outside.react()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_time::tests::{Echo, Say};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    const MS: u64 = 1_000_000;

    /// One that waits by epoll_pwait2 where the kernel has it, and one that waits as on older kernels.
    fn both_ways() -> [RealTime<Echo>; 2] {
        let start = || RealTime::start(Echo::default(), |_| true).unwrap();
        [start(), RealTime { has_timeouts: false, ..start() }]
    }

    #[test]
    fn a_refused_epoll_pwait2_is_found_at_the_start() {
        let refuses = std::fs::File::open("/dev/null").unwrap();
        assert!(!has_timeouts(&Watcher(Rc::new(Epoll(refuses.into())))));
        let [first, _] = both_ways();
        let answer = wait_for(&first.epoll, &mut Vec::with_capacity(1), Duration::ZERO);
        assert_eq!(first.has_timeouts, answer != Err(rustix::io::Errno::NOSYS));
    }

    #[test]
    fn a_shorter_heartbeat_leaves_no_timer_that_would_wake_the_loop_for_ever() {
        let [mut driver, _] = both_ways();
        let (mut a, b) = UnixStream::pair().unwrap();
        driver.watcher().watch(&b, 42, false).unwrap();
        a.write_all(b"x").unwrap();
        driver.set_heartbeat(Duration::from_secs(3600));
        driver.input(Say(3600 * 1000 * MS), &mut |_, _| {});
        driver.turn(&mut |_, _| {}).unwrap();
        assert!(driver.timer.get().unwrap().is_some());
        driver.set_heartbeat(HEARTBEAT);
        driver.turn(&mut |_, _| {}).unwrap();
        assert_eq!(driver.timer.get().unwrap().is_some(), !driver.has_timeouts);
    }

    #[test]
    fn nothing_is_released_early_and_its_model_time_is_the_scheduled_one() {
        for mut driver in both_ways() {
            let clock = driver.clock();
            let mut heard: Vec<(Instant, Instant, u64)> = Vec::new();
            let mut sink = |t: Instant, o: u64| heard.push((t, clock.now(), o));
            driver.input(Say(3 * MS), &mut sink);
            driver.input(Say(MS), &mut sink);
            while driver.health().lateness.count() < 2 {
                driver.turn(&mut sink).unwrap();
            }
            assert_eq!(heard.iter().map(|h| h.2).collect::<Vec<_>>(), [MS, 3 * MS]);
            assert!(heard.iter().all(|(model, wall, _)| wall >= model));
            assert!(heard[1].0 - heard[0].0 < Duration::from_millis(3));
        }
    }

    #[test]
    fn a_readable_descriptor_is_reported_until_it_is_unwatched() {
        for mut driver in both_ways() {
            let (mut a, b) = UnixStream::pair().unwrap();
            driver.watcher().watch(&b, 42, false).unwrap();
            assert!(driver.turn(&mut |_, _| {}).unwrap().is_empty());
            a.write_all(b"x").unwrap();
            assert_eq!(driver.turn(&mut |_, _| {}).unwrap(), [42]);
            driver.watcher().unwatch(&b).unwrap();
            assert!(driver.turn(&mut |_, _| {}).unwrap().is_empty());
        }
    }

    #[test]
    fn a_gap_is_a_stall_even_when_nothing_was_due() {
        let mut driver = RealTime::start(Echo::default(), |_| true).unwrap();
        driver.turn(&mut |_, _| {}).unwrap();
        // stands for SIGSTOP: the loop does not turn for 100 ms
        std::thread::sleep(std::time::Duration::from_millis(100));
        driver.turn(&mut |_, _| {}).unwrap();
        assert!(driver.health().stalls >= 1);
        assert!(driver.health().longest_stall > STALL);
    }

    #[test]
    fn a_long_heartbeat_leaves_the_loop_asleep_until_its_deadline() {
        let mut driver = RealTime::start(Echo::default(), |_| true).unwrap();
        driver.set_heartbeat(Duration::from_secs(3600));
        driver.input(Say(200 * MS), &mut |_, _| {});
        let mut turns = 0;
        while driver.health().lateness.count() < 1 {
            driver.turn(&mut |_, _| {}).unwrap();
            turns += 1;
        }
        // one wake-up by the timer, perhaps a second one for the remaining time; turns 25 ms apart would be eight
        assert!(turns <= 2, "{turns}");
    }

    #[test]
    fn injected_lateness_is_seen() {
        for mut driver in both_ways() {
            driver.inject_lateness(Duration::from_millis(10));
            driver.input(Say(MS), &mut |_, _| {});
            while driver.health().lateness.count() < 1 {
                driver.turn(&mut |_, _| {}).unwrap();
            }
            assert!(driver.health().lateness.max() >= Duration::from_millis(10));
        }
    }

    #[test]
    fn the_epoch_is_the_wall_clock_at_model_time_zero() {
        let before = read(nix::time::ClockId::CLOCK_REALTIME);
        let clock = Clock::starting_now();
        let epoch = clock.epoch_ns();
        let after = read(nix::time::ClockId::CLOCK_REALTIME);
        // the two clocks are read one after the other: allow a millisecond of being preempted in between
        assert!(epoch + MS >= before && epoch <= after, "{before} {epoch} {after}");
    }
}
