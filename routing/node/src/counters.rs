//! What happened, counted by name. Every packet or message a machine drops is counted under its reason.

use serde::Serialize;
use std::collections::BTreeMap;

/// Names are lower case with hyphens: `rreq-sent`, `malformed`, `held-full`, ...; the set of a protocol is in its README.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Counters(BTreeMap<&'static str, u64>);

impl Counters {
    pub fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    pub fn add(&mut self, what: &'static str, n: u64) {
        *self.0.entry(what).or_default() += n;
    }

    pub fn get(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or(0)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(k, v)| (*k, *v))
    }
}
