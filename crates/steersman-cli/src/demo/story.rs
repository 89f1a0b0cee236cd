//! What happened, in the order in which it began.
//!
//! Whoever watches may act on a write before its writer has been answered, so the answers come in
//! another order than what they answer. A line is therefore begun with its request and held back,
//! with all that began later, until it has ended. Nobody waits here, and it is bounded: if too many
//! lines are open, the oldest is given up.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// How many lines there may be that nobody has read.
const LINES_MAX: usize = 4096;

/// What happened, for one reader.
#[derive(Default)]
pub(super) struct Story {
    lines: Mutex<VecDeque<Line>>,
    news: Notify,
}

struct Line {
    began: Instant,
    /// By what its end is known, as long as it has not ended.
    open: Option<String>,
    text: String,
}

impl Story {
    fn lines(&self) -> MutexGuard<'_, VecDeque<Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, open: Option<String>, text: String) {
        let mut lines = self.lines();
        if lines.len() >= LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(Line { began: Instant::now(), open, text });
    }

    /// Something begins.
    pub(super) fn begin(&self, id: &str) {
        self.push(Some(id.to_owned()), String::new());
    }

    /// It has ended with this, or with nothing worth telling.
    pub(super) fn end(&self, id: &str, text: Option<String>) {
        let mut lines = self.lines();
        let Some(place) = lines.iter().rposition(|line| line.open.as_deref() == Some(id)) else {
            return;
        };
        match text {
            Some(text) => {
                lines[place].open = None;
                lines[place].text = text;
            }
            None => drop(lines.remove(place)),
        }
        drop(lines);
        self.wake();
    }

    /// Something has happened.
    pub(super) fn tell(&self, text: String) {
        self.push(None, text);
        self.wake();
    }

    /// Lets the reader look again.
    pub(super) fn wake(&self) {
        self.news.notify_one();
    }

    /// Waits for a reason to look again.
    pub(super) async fn news(&self) {
        self.news.notified().await;
    }

    /// Whether everything that began has ended.
    pub(super) fn is_whole(&self) -> bool {
        self.lines().iter().all(|line| line.open.is_none())
    }

    /// The lines before which nothing is open, and when they began.
    pub(super) fn take(&self) -> Vec<(Instant, String)> {
        let mut lines = self.lines();
        let ended = lines.iter().take_while(|line| line.open.is_none()).count();
        lines.drain(..ended).map(|line| (line.began, line.text)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(story: &Story) -> Vec<String> {
        story.take().into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn what_began_first_is_told_first_whoever_is_answered_first() {
        let story = Story::default();
        story.begin("deployment");
        story.begin("replicaset");
        story.tell("reconcile".to_owned());
        story.end("replicaset", Some("create replicasets".to_owned()));
        assert_eq!(taken(&story), Vec::<String>::new());
        assert!(!story.is_whole());
        story.end("deployment", Some("create deployments".to_owned()));
        assert_eq!(taken(&story), ["create deployments", "create replicasets", "reconcile"]);
        assert!(story.is_whole());
    }

    #[test]
    fn what_came_to_nothing_holds_up_nobody() {
        let story = Story::default();
        story.begin("conflict");
        story.tell("reconcile".to_owned());
        story.end("conflict", None);
        assert_eq!(taken(&story), ["reconcile"]);
    }

    #[test]
    fn it_does_not_grow_without_end() {
        let story = Story::default();
        (0..LINES_MAX + 10).for_each(|number| story.begin(&number.to_string()));
        assert_eq!(story.lines().len(), LINES_MAX);
    }
}
