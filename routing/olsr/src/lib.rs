//! Olsr.
