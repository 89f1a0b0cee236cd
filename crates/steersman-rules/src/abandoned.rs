//! Work that nobody waits for any more.
//!
//! What is checked may take long, and whoever asked for it may have gone or been told that it takes
//! too long. The server says so on the thread that [works](within); what takes longest here looks
//! now and then whether it [is so](is_abandoned), and ends with a mistake, which nobody sees.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    static ABANDONED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// Works on this thread, until somebody says that it is for nothing.
pub fn within<T>(abandoned: &Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    let before = ABANDONED.replace(Some(Arc::clone(abandoned)));
    let _restored = Restored(before);
    work()
}

/// Whether what is done on this thread is for nothing.
pub fn is_abandoned() -> bool {
    ABANDONED.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Acquire)))
}

/// Puts back what was there before, also when the work panics.
struct Restored(Option<Arc<AtomicBool>>);

impl Drop for Restored {
    fn drop(&mut self) {
        ABANDONED.set(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use serde_json::json;

    use super::{is_abandoned, within};
    use crate::schema::Schema;

    #[test]
    fn work_is_abandoned_only_where_somebody_says_so() {
        let (outer, inner) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        inner.store(true, Ordering::Relaxed);
        within(&outer, || {
            assert!(!is_abandoned());
            within(&inner, || assert!(is_abandoned()));
            assert!(!is_abandoned());
            outer.store(true, Ordering::Relaxed);
            assert!(is_abandoned());
        });
        assert!(!is_abandoned());
    }

    #[test]
    fn rules_that_nobody_waits_for_end_soon_and_do_not_hold() {
        let schema = Schema::structural(&json!({
            "type": "object", "properties": {"spec": {
                "type": "array", "maxItems": 1000, "items": {"type": "integer"},
                "x-kubernetes-validations": [{"rule": "self.all(one, self.exists(other, one == other))"}],
            }},
        }));
        let object = json!({"spec": (0..500).collect::<Vec<_>>()});
        assert_eq!(schema.validate_change(&object, None).errors, []);
        let abandoned = Arc::new(AtomicBool::new(true));
        let found = within(&abandoned, || schema.validate_change(&object, None));
        assert_eq!(found.errors.len(), 1, "{:?}", found.errors);
    }

    #[test]
    fn patterns_that_nobody_waits_for_do_not_match() {
        let schema = Schema::structural(&json!({
            "type": "object", "properties": {"spec": {"type": "string", "pattern": "^a*$"}},
        }));
        let object = json!({"spec": "aaa"});
        assert_eq!(schema.validate_change(&object, None).errors, []);
        let abandoned = Arc::new(AtomicBool::new(true));
        let found = within(&abandoned, || schema.validate_change(&object, None));
        assert_eq!(found.errors.len(), 1, "{:?}", found.errors);
    }
}
