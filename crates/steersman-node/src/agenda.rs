//! Which of many is due when, so that nobody looks through all of them.

use std::collections::BTreeSet;

use tokio::time::Instant;

/// When each of a number of things is due next, if at all.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    /// By number.
    times: Vec<Option<Instant>>,
    /// The same, the next one first.
    order: BTreeSet<(Instant, usize)>,
}

impl Agenda {
    /// Nothing is due of so many.
    pub(crate) fn of(count: usize) -> Self {
        Self { times: vec![None; count], order: BTreeSet::new() }
    }

    /// Notes when one is due from now on.
    pub(crate) fn set(&mut self, number: usize, due: Option<Instant>) {
        if let Some(before) = std::mem::replace(&mut self.times[number], due) {
            self.order.remove(&(before, number));
        }
        self.order.extend(due.map(|due| (due, number)));
    }

    /// When the next one is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.order.first().map(|(due, _)| *due)
    }

    /// Takes out those that are due by now.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<usize> {
        let mut due = Vec::new();
        while let Some(&(time, number)) = self.order.first()
            && time <= now
        {
            self.set(number, None);
            due.push(number);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Agenda;

    #[tokio::test(start_paused = true)]
    async fn what_is_due_comes_in_order_and_once() {
        let start = Instant::now();
        let after = |seconds| Some(start + Duration::from_secs(seconds));
        let mut agenda = Agenda::of(4);
        assert_eq!(agenda.next(), None);
        agenda.set(0, after(30));
        agenda.set(1, after(10));
        agenda.set(2, after(20));
        agenda.set(1, after(25)); // later than it was
        agenda.set(3, after(5));
        agenda.set(3, None);
        assert_eq!(agenda.next(), after(20));
        assert_eq!(agenda.take_due(after(25).unwrap()), [2, 1]);
        assert_eq!(agenda.next(), after(30));
        assert!(agenda.take_due(start).is_empty());
    }
}
