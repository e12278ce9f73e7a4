//! Dsdv.
