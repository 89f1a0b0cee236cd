//! Who matters more is scheduled first, and of equals who came first.

use std::cmp::Ordering;

use crate::framework::{Interest, Plugin, Points, QueuedPod};

/// Orders the queue.
pub(crate) struct PrioritySort;

impl Plugin for PrioritySort {
    fn name(&self) -> &'static str {
        "PrioritySort"
    }

    fn points(&self) -> Points {
        Points::QUEUE_SORT
    }

    fn interests(&self) -> &[Interest] {
        &[]
    }

    fn compare(&self, a: &QueuedPod, b: &QueuedPod) -> Ordering {
        let by_priority = b.info.priority.cmp(&a.info.priority);
        by_priority.then(a.timestamp.cmp(&b.timestamp))
    }
}
