//! Truncation: what an event loses that is too large for a sink.
//!
//! First go the bodies, and the event says so; one that is too large even then is not told.

use std::sync::Arc;

use super::event::Event;
use super::policy::Level;

/// Says that the bodies are missing.
const TRUNCATED: &str = "audit.k8s.io/truncated";

/// How large events may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    /// The largest event, in bytes.
    pub max_event_size: usize,
    /// The largest batch of events, in bytes, more or less.
    pub max_batch_size: usize,
}

impl Default for Truncation {
    /// kube-apiserver's limits, where somebody switches them on.
    fn default() -> Self {
        Self { max_event_size: 100 * 1024, max_batch_size: 10 * 1024 * 1024 }
    }
}

impl Truncation {
    /// The event as it may be told; `None` if it may not be.
    pub(super) fn truncated(self, event: &Arc<Event>) -> Option<Arc<Event>> {
        if self.fits(event) {
            return Some(Arc::clone(event));
        }
        if event.level < Level::Request {
            return None;
        }
        let mut less = Event::clone(event);
        (less.request_object, less.response_object) = (None, None);
        less.annotations.insert(TRUNCATED.to_owned(), "true".to_owned());
        self.fits(&less).then(|| Arc::new(less))
    }

    /// Whether an event is small enough. Only for one that may not be is it written out.
    fn fits(self, event: &Event) -> bool {
        event.size() < self.max_event_size / 4 || event.to_json().len() <= self.max_event_size
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::event::{Event, Json};
    use super::super::policy::Level;
    use super::{TRUNCATED, Truncation};

    fn event(level: Level, body: usize, uri: usize) -> Arc<Event> {
        let body = format!("{:?}", "x".repeat(body));
        Arc::new(Event {
            level,
            request_uri: "/".repeat(uri),
            request_object: Json::of(body.as_bytes()),
            response_object: Json::of(b"1"),
            ..Event::default()
        })
    }

    #[test]
    fn bodies_go_where_an_event_is_too_large_and_it_says_so() {
        let limits = Truncation { max_event_size: 10_000, ..Truncation::default() };
        let whole = event(Level::RequestResponse, 5_000, 10);
        assert!(Arc::ptr_eq(&limits.truncated(&whole).unwrap(), &whole));
        let less = limits.truncated(&event(Level::RequestResponse, 20_000, 10)).unwrap();
        assert!(less.request_object.is_none() && less.response_object.is_none());
        assert_eq!(less.annotations.get(TRUNCATED).map(String::as_str), Some("true"));
        assert!(less.to_json().len() <= 10_000);
    }

    #[test]
    fn what_is_too_large_without_bodies_is_not_told() {
        let limits = Truncation { max_event_size: 10_000, ..Truncation::default() };
        assert!(limits.truncated(&event(Level::Request, 10, 20_000)).is_none());
        assert!(limits.truncated(&event(Level::Metadata, 0, 20_000)).is_none());
    }
}
