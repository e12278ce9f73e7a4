//! Machines of routing protocols joined by the medium library, in virtual time.
