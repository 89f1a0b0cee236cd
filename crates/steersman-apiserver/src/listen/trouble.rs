//! What is said about connections that cannot be taken: that it begins and that it is over, however
//! many they are.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

/// How long to wait before accepting again after it failed for lack of files or memory.
const BACKOFF: Duration = Duration::from_millis(100);

/// How often the same is said, at most.
const SILENCE: Duration = Duration::from_secs(60);

/// A trouble that comes and goes.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    /// When it was last told.
    told: Option<Instant>,
    /// How often it happened since then.
    times: u64,
    lasts: bool,
}

/// What there is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Nothing,
    /// It happened, so many times since it was told last.
    Happened(u64),
    /// It is over.
    Over,
}

impl Trouble {
    /// It happened.
    pub(super) fn happened(&mut self) -> News {
        self.times += 1;
        if self.told.is_some_and(|told| told.elapsed() < SILENCE) {
            return News::Nothing;
        }
        self.told = Some(Instant::now());
        self.lasts = true;
        News::Happened(std::mem::take(&mut self.times))
    }

    /// It did not happen.
    pub(super) fn passed(&mut self) -> News {
        if std::mem::take(&mut self.lasts) { News::Over } else { News::Nothing }
    }
}

/// How long to wait after accepting failed. Some failures are of the one who came: the next may
/// come at once.
pub(super) fn backoff(error: &io::Error) -> Option<Duration> {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    let of_client = [ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted];
    (!of_client.contains(&error.kind())).then_some(BACKOFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_trouble_is_told_when_it_begins_and_when_it_is_over() {
        let mut trouble = Trouble::default();
        assert_eq!(trouble.passed(), News::Nothing);
        assert_eq!(trouble.happened(), News::Happened(1));
        let said = (0..599).map(|_| trouble.happened()).filter(|news| *news != News::Nothing);
        assert_eq!(said.count(), 0);
        tokio::time::advance(SILENCE).await;
        assert_eq!(trouble.happened(), News::Happened(600));
        assert_eq!(trouble.passed(), News::Over);
        assert_eq!(trouble.passed(), News::Nothing);
    }

    #[tokio::test(start_paused = true)]
    async fn a_trouble_that_comes_and_goes_is_told_no_more_often() {
        let mut trouble = Trouble::default();
        let mut said = 0;
        for _ in 0..1000 {
            said += usize::from(trouble.happened() != News::Nothing);
            said += usize::from(trouble.passed() != News::Nothing);
        }
        assert_eq!(said, 2);
    }
}
