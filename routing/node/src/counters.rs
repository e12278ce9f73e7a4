//! Counters of events, by name. A machine counts every packet or message that it drops under the reason.

use serde::Serialize;
use std::collections::BTreeMap;

/// Names are lower case with hyphens: `rreq-sent`, `malformed`, `held-full`, ...; the set of a protocol is in its README.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Counters(BTreeMap<&'static str, u64>);

impl Counters {
    /// Adds one to the counter `what`.
    pub fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    /// Adds `n` to the counter `what`; zero creates the counter.
    pub fn add(&mut self, what: &'static str, n: u64) {
        *self.0.entry(what).or_default() += n;
    }

    /// The value of the counter `what`; 0 if it has never been counted.
    pub fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    /// Names and values, in alphabetical order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(k, v)| (*k, *v))
    }
}
