//! Which starts of containers were cut off, because nobody was left to hear what became of them.
//!
//! A runtime kills what it is about to start when whoever asked for it is gone, and says of it what
//! it says of any container that was killed. So it is noted before each start that it is under way,
//! and the note goes when the runtime has answered: what ended by force while there is one was
//! cut off by the death of an agent, and does not count. What comes in its place has its number.

use std::fs;
use std::io;

use super::places::Places;
use crate::cri::wire::container::ContainerStatus;

/// The code of what is ended by force.
const KILLED: i32 = 137;
/// How long after its beginning a start may be cut off, in nanoseconds: what runs for longer is not
/// killed because of how it was started.
const WITHIN: i64 = 10_000_000_000;

/// A container that is being started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starting<'a> {
    /// Of its Pod.
    pub(super) uid: &'a str,
    pub(super) name: &'a str,
    pub(super) attempt: i32,
    /// The runtime's name for it.
    pub(super) id: &'a str,
}

impl Starting<'_> {
    /// Notes that the runtime is about to be told.
    pub(super) fn begin(&self, places: &Places) -> io::Result<()> {
        fs::write(places.starting(self.uid, self.name, self.attempt), self.id)
    }

    /// Notes that it has answered.
    pub(super) fn answered(&self, places: &Places) {
        let path = places.starting(self.uid, self.name, self.attempt);
        if let Err(error) = fs::remove_file(&path) {
            tracing::warn!(%error, path = %path.display(), "a start that is over stays noted");
        }
    }

    /// Whether it ended as this says because its start was cut off.
    pub(super) fn was_cut_off(&self, places: &Places, status: &ContainerStatus) -> bool {
        if !looks_cut_off(status) {
            return false;
        }
        let noted = fs::read_to_string(places.starting(self.uid, self.name, self.attempt));
        noted.is_ok_and(|id| id == self.id)
    }
}

/// Whether a container ended as one does whose start is cut off.
fn looks_cut_off(status: &ContainerStatus) -> bool {
    let begun = status.started_at.max(status.created_at);
    let soon = status.finished_at.saturating_sub(begun) < WITHIN;
    status.reason == "StartError"
        || status.exit_code == KILLED && status.reason != "OOMKilled" && soon
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(reason: &str, exit_code: i32, seconds: i64) -> ContainerStatus {
        let (created_at, started_at) = (1_000, 2_000);
        let finished_at = started_at + seconds * 1_000_000_000;
        let reason = reason.to_owned();
        let times = ContainerStatus { created_at, started_at, ..ContainerStatus::default() };
        ContainerStatus { reason, exit_code, finished_at, ..times }
    }

    #[test]
    fn what_is_killed_while_nobody_hears_of_its_start_does_not_count() {
        let root = std::env::temp_dir().join(format!("steersman-starting-{}", std::process::id()));
        let places = Places { logs: root.clone(), links: root.clone(), root: root.clone() };
        let one = Starting { uid: "u", name: "main", attempt: 0, id: "c1" };
        let killed = ended("Error", 137, 0);
        fs::create_dir_all(places.starting("u", "main", 0).parent().unwrap()).unwrap();
        assert!(!one.was_cut_off(&places, &killed), "nothing is noted");
        one.begin(&places).unwrap();
        for (status, expected) in [
            (&killed, true),
            (&ended("StartError", 128, 0), true),
            (&ended("OOMKilled", 137, 0), false),
            (&ended("Error", 137, 11), false),
            (&ended("Error", 3, 0), false),
            (&ended("Completed", 0, 0), false),
        ] {
            assert_eq!(one.was_cut_off(&places, status), expected, "{status:?}");
        }
        let other = Starting { id: "c2", ..one };
        assert!(!other.was_cut_off(&places, &killed), "it is of another container");
        one.answered(&places);
        assert!(!one.was_cut_off(&places, &killed), "the runtime has answered");
        fs::remove_dir_all(&root).unwrap();
    }
}
