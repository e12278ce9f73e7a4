//! Dsr.
