//! What volumes are, in three parts: what they are made of, what containers see of them, and what is
//! on the disk.

mod disk;
mod mounts;
mod plans;

use jiff::{SignedDuration, Timestamp};

fn at(second: i64) -> Timestamp {
    "2026-11-17T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second)
}
