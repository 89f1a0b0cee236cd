//! What the store on disk promises beyond the suite that all stores share.
//!
//! `simulated` is a disk that loses power, `script` runs a store on it beside a model; `crash`,
//! `faults` and `damage` are what can happen to it. `reopening`, `backups` and `space` use
//! a real disk.

mod backups;
mod crash;
mod damage;
mod faults;
mod reopening;
mod scratch;
mod script;
mod simulated;
mod space;
