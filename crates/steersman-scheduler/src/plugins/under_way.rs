//! The Pods whose victims are just being deleted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The Pods whose victims are just being deleted: they are not to be tried, lest they choose others.
#[derive(Debug, Default)]
pub(crate) struct UnderWay(Mutex<Preemptions>);

/// By uids.
#[derive(Debug, Default)]
struct Preemptions {
    /// The preemptors, with the victim that each waits for if it is the last one.
    preemptors: HashMap<Arc<str>, Option<Arc<str>>>,
    /// Who waits for a victim that is the last one: the same the other way round.
    last: HashMap<Arc<str>, Vec<Arc<str>>>,
}

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, Preemptions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether victims of a Pod are being deleted.
    pub(super) fn contains(&self, preemptor: &str) -> bool {
        self.lock().preemptors.contains_key(preemptor)
    }

    /// Keeps a Pod out of the queue.
    pub(crate) fn begin(&self, preemptor: Arc<str>) {
        self.lock().preemptors.entry(preemptor).or_default();
    }

    /// Only this victim is left: with its going, the preemption is over.
    pub(crate) fn waits_for(&self, preemptor: &Arc<str>, victim: &Arc<str>) {
        let mut preemptions = self.lock();
        let Some(last) = preemptions.preemptors.get_mut(preemptor) else { return };
        *last = Some(Arc::clone(victim));
        preemptions.last.entry(Arc::clone(victim)).or_default().push(Arc::clone(preemptor));
    }

    /// A Pod is gone, or on its way. Whose preemption is over by that.
    pub(crate) fn goes(&self, victim: &str) -> Vec<Arc<str>> {
        let mut preemptions = self.lock();
        if preemptions.last.is_empty() {
            return Vec::new();
        }
        let over = preemptions.last.remove(victim).unwrap_or_default();
        over.into_iter()
            .filter(|preemptor| preemptions.preemptors.remove(preemptor).is_some())
            .collect()
    }

    /// Lets a Pod in again.
    pub(crate) fn end(&self, preemptor: &str) {
        let mut preemptions = self.lock();
        let Some(Some(victim)) = preemptions.preemptors.remove(preemptor) else { return };
        let Some(waiting) = preemptions.last.get_mut(&victim) else { return };
        waiting.retain(|it| &**it != preemptor);
        if waiting.is_empty() {
            preemptions.last.remove(&victim);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preemption_is_over_when_the_last_victim_goes_and_not_before() {
        let under_way = UnderWay::default();
        let (preemptor, last): (Arc<str>, Arc<str>) = ("p".into(), "v2".into());
        under_way.begin(Arc::clone(&preemptor));
        assert!(under_way.goes("v1").is_empty());
        under_way.waits_for(&preemptor, &last);
        assert!(under_way.contains("p"));
        assert_eq!(under_way.goes("v2"), [Arc::clone(&preemptor)]);
        assert!(!under_way.contains("p"));
        under_way.begin(Arc::clone(&preemptor));
        under_way.waits_for(&preemptor, &last);
        under_way.end("p");
        assert!(!under_way.contains("p") && under_way.goes("v2").is_empty());
    }
}
