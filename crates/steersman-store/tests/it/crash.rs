//! A process that writes is killed at any moment, again and again, and what it was told was
//! written must be there.
//!
//! `child` runs in a process of its own: this test binary, started again with the one test that
//! is ignored otherwise. It says each acknowledgement to its parent, which kills it, opens the
//! directory itself, compares with its `ledger`, and lets the next child go on.

mod child;
mod ledger;
mod runs;
mod value;
