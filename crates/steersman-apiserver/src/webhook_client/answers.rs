//! Answers that count for a while, by the hash of what was asked.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ring::digest::{SHA256, digest};
use tokio::time::Instant;

/// How many answers are remembered.
const REMEMBERED_MAX: usize = 4096;

/// What answers are remembered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The one of a question.
    pub(crate) fn of(question: &[u8]) -> Self {
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, question).as_ref());
        Self(key)
    }
}

/// Answers, and until when they count. The lock is held for moments, never over a wait.
#[derive(Debug)]
pub(crate) struct Answers<T>(Mutex<HashMap<Key, (T, Instant)>>);

impl<T> Default for Answers<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Answers<T> {
    /// What was answered, if that still counts.
    pub(crate) fn recall(&self, key: &Key) -> Option<T> {
        let answers = self.locked();
        let (answer, until) = answers.get(key)?;
        (Instant::now() < *until).then(|| answer.clone())
    }

    /// Keeps an answer. If there are too many, all go that count no more, and as many as are left
    /// beyond half: one look at all of them makes room for thousands.
    pub(crate) fn keep(&self, key: Key, answer: T, lasts: Duration) {
        let now = Instant::now();
        let Some(until) = now.checked_add(lasts).filter(|until| *until > now) else { return };
        let mut answers = self.locked();
        if answers.len() >= REMEMBERED_MAX {
            answers.retain(|_, (_, until)| now < *until);
            let mut left = REMEMBERED_MAX / 2;
            answers.retain(|_, _| {
                left = left.saturating_sub(1);
                left > 0
            });
        }
        answers.insert(key, (answer, until));
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Key, (T, Instant)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Answers, Duration, Key, REMEMBERED_MAX};

    #[tokio::test(start_paused = true)]
    async fn an_answer_counts_for_a_while_and_only_so_many_are_kept() {
        let answers = Answers::default();
        let key = |number: usize| Key::of(number.to_string().as_bytes());
        answers.keep(key(0), "yes", Duration::from_secs(2));
        answers.keep(key(1), "no", Duration::ZERO);
        assert_eq!((answers.recall(&key(0)), answers.recall(&key(1))), (Some("yes"), None));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(answers.recall(&key(0)), None);
        for number in 0..3 * REMEMBERED_MAX {
            answers.keep(key(number), "yes", Duration::from_secs(1));
            assert_eq!(answers.recall(&key(number)), Some("yes"));
            assert!(answers.locked().len() <= REMEMBERED_MAX);
        }
    }
}
