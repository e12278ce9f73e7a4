//! Aodv.
