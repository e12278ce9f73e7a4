//! What the rate controls know of each peer, as data (`rates.json`, formats/air.md).

use crate::medium::Medium;
use crate::message::StationId;
use crate::phy::Mode;
use crate::rate_control::Row;
use serde::Serialize;
use std::collections::BTreeMap;

/// A rate in the table of a peer: one that was sent at, or that has a role.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RateRow {
    /// Name of an MCS as in `air.csv`; `None` for a rate of DSSS, CCK or OFDM.
    pub mode: Option<String>,
    /// Data rate.
    pub rate_bps: u64,
    /// As of [`Row::roles`].
    pub roles: String,
    /// Estimated success of an MPDU, 0 to 1; `None`: no estimate.
    pub success: Option<f64>,
    /// Estimated throughput; `None`: no estimate.
    pub throughput_bps: Option<f64>,
    /// MPDUs sent.
    pub mpdus: u64,
    /// MPDUs acknowledged.
    pub acknowledged: u64,
}

impl RateRow {
    fn of(mode: Mode, row: Row) -> Option<Self> {
        let Row { roles, success, throughput_bps, mpdus, acknowledged, .. } = row;
        let name = if let Mode::Mcs(mcs) = mode { Some(mcs.to_string()) } else { None };
        let shown = mpdus > 0 || !roles.is_empty();
        shown.then(|| Self {
            mode: name,
            rate_bps: mode.rate_bps(),
            roles,
            success,
            throughput_bps,
            mpdus,
            acknowledged,
        })
    }
}

/// The tables of each station by the name of the peer, slowest rate first.
pub type RateTables = BTreeMap<String, BTreeMap<String, Vec<RateRow>>>;

/// The tables of all stations that sent to a peer; empty if all data are sent at the profile's rate. `names`: of the stations, in the
/// order of their numbers.
pub fn rate_tables(medium: &Medium, names: &[impl AsRef<str>]) -> RateTables {
    let peer = |(peer, rows): (u16, Vec<(Mode, Row)>)| {
        let mut rows: Vec<RateRow> = rows.into_iter().filter_map(|(mode, row)| RateRow::of(mode, row)).collect();
        rows.sort_by_key(|row| row.rate_bps);
        (names[usize::from(peer)].as_ref().to_owned(), rows)
    };
    let station = |(number, name)| {
        let peers: BTreeMap<_, _> = medium.rate_tables(StationId(number)).into_iter().map(peer).collect();
        (!peers.is_empty()).then(|| (AsRef::<str>::as_ref(name).to_owned(), peers))
    };
    (0..).zip(names).filter_map(station).collect()
}

/// The content of `rates.json`. `algorithm`: value of the key `rate_control`.
pub fn report(algorithm: &str, tables: &RateTables) -> serde_json::Value {
    serde_json::json!({"format": "manet-rates/1", "rate_control": algorithm, "stations": tables})
}
