//! Options in seconds (`f64` in JSON), durations in the machines: `#[serde(with = "manet_routing::seconds")]`.

use manet_engine::keys::MAX_TIME_S;
use manet_engine::Duration;
use serde::{de::Error, Deserialize, Deserializer, Serializer};

/// Writes seconds as a number.
pub fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    // divided, not multiplied by 1e-9: 30 ms prints as 0.03
    s.serialize_f64(d.as_nanos() as f64 / 1e9)
}

/// Reads seconds as a number. Fails outside 0 to `MAX_TIME_S` of the engine.
pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
    let s = f64::deserialize(d)?;
    if (0.0..=MAX_TIME_S).contains(&s) {
        Ok(Duration::from_secs_f64(s))
    } else {
        Err(D::Error::custom(format!("{s} is no time in seconds from 0 to {MAX_TIME_S}")))
    }
}
