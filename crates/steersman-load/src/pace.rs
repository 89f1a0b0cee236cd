//! When each request of a load is due, and of which sort it is.

use std::time::Duration;

use crate::scenario::Activity;

/// What is done to one object, or one namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Update,
    Churn,
    Get,
    List,
}

/// One step of a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// When it is due, counted from the beginning.
    pub(crate) after: Duration,
    pub(crate) action: Action,
}

/// All steps of a load in the order in which they are due, each sort evenly spread.
pub(crate) struct Pace {
    duration: Duration,
    sorts: [Sort; 4],
}

struct Sort {
    action: Action,
    per_second: f64,
    done: u64,
}

impl Pace {
    pub(crate) fn of(load: &Activity) -> Self {
        let sort = |action, per_second| Sort { action, per_second, done: 0 };
        let sorts = [
            sort(Action::Update, load.updates),
            sort(Action::Churn, load.churn),
            sort(Action::Get, load.gets),
            sort(Action::List, load.lists),
        ];
        Self { duration: load.duration, sorts }
    }
}

impl Iterator for Pace {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let wanted = self.sorts.iter_mut().filter(|sort| sort.per_second > 0.0);
        let sort = wanted.min_by(|one, other| one.next().total_cmp(&other.next()))?;
        let after = Duration::try_from_secs_f64(sort.next()).unwrap_or(Duration::MAX);
        sort.done += 1;
        (after < self.duration).then_some(Step { after, action: sort.action })
    }
}

impl Sort {
    /// When the next one is due, in seconds.
    fn next(&self) -> f64 {
        self.done as f64 / self.per_second
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Action, Pace, Step};
    use crate::scenario::Activity;

    #[test]
    fn steps_come_in_order_and_in_number() {
        let duration = Duration::from_secs(10);
        let load = Activity { duration, updates: 2.0, gets: 0.5, ..Activity::default() };
        let steps: Vec<Step> = Pace::of(&load).collect();
        assert!(steps.is_sorted_by_key(|step| step.after));
        let count = |action| steps.iter().filter(|step| step.action == action).count();
        assert_eq!((count(Action::Update), count(Action::Get), steps.len()), (20, 5, 25));
        assert!(steps.iter().all(|step| step.after < duration));
    }

    #[test]
    fn without_rates_nothing_is_due() {
        let load = Activity { duration: Duration::from_secs(10), ..Activity::default() };
        assert_eq!(Pace::of(&load).count(), 0);
    }
}
