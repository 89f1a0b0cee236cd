//! When to come again: the longer a level has to refuse requests, the later.

use std::collections::VecDeque;

/// The longest that anybody is told to wait, in seconds.
const RETRY_AFTER_MAX: u64 = 32;

/// The requests that a level refused, by second.
#[derive(Debug)]
pub(super) struct Dropped {
    history: VecDeque<(u64, u64)>,
    /// The second of the last one, and how many were refused in it.
    current: (u64, u64),
    retry_after: u64,
    /// When that became longer.
    raised: u64,
}

impl Default for Dropped {
    fn default() -> Self {
        Self { history: VecDeque::new(), current: (0, 0), retry_after: 1, raised: 0 }
    }
}

impl Dropped {
    /// A request is refused; says when it should come again.
    pub(super) fn count(&mut self, second: u64) -> u64 {
        if self.current.0 == second {
            self.current.1 += 1;
            return self.retry_after;
        }
        self.history.push_back(std::mem::replace(&mut self.current, (second, 1)));
        let kept = (2 * self.retry_after).min(RETRY_AFTER_MAX);
        let last = self.history.back().map_or(0, |(at, _)| *at);
        while self.history.front().is_some_and(|(at, _)| last - at > kept) {
            self.history.pop_front();
        }
        self.adjust(second);
        self.retry_after
    }

    /// Twice as long after three refusals a second, a second less after less than one, as TCP does.
    fn adjust(&mut self, now: u64) {
        let recent = self.history.iter().filter(|(at, _)| now - at <= self.retry_after);
        let refused: u64 = recent.map(|(_, refused)| refused).sum();
        if now - self.raised >= self.retry_after && refused >= 3 * self.retry_after {
            self.retry_after = (2 * self.retry_after).min(RETRY_AFTER_MAX);
            self.raised = now;
        } else if refused < self.retry_after && self.retry_after > 1 {
            self.retry_after -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dropped;

    #[test]
    fn who_is_refused_again_and_again_is_told_to_wait_longer() {
        let mut dropped = Dropped::default();
        for (second, refused, expected) in
            [(100, 9, 1), (101, 9, 2), (102, 9, 2), (103, 9, 4), (107, 9, 4), (111, 50, 4)]
        {
            let told = (0..refused).fold(0, |_, _| dropped.count(second));
            assert_eq!(told, expected, "{second}");
        }
        for second in [200, 300, 400] {
            dropped.count(second);
        }
        assert_eq!(dropped.count(500), 1);
    }
}
