//! The page against whoever names objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::page::{escaped, render};
use super::snapshot::{QueueSnapshot, Snapshot};
use crate::cause::Causes;
use crate::controller::{ControllerHistory, ControllerPhase, Outcome, ReconcileRecord};
use crate::object::ObjectKey;
use crate::workqueue::{KeyDump, KeyState, Priority};

use super::ControllerSnapshot;

const HOSTILE: &str = "</td><script>alert('x')</script><img src=x onerror=\"alert(1)\">&amp;";

fn hostile() -> Snapshot {
    let key = KeyDump {
        key: ObjectKey::namespaced(HOSTILE, HOSTILE),
        state: KeyState::BackingOff,
        again: false,
        priority: Priority::default(),
        seconds: None,
        due_in_seconds: Some(3.0),
        failures: 2,
        reason: Some(HOSTILE.into()),
    };
    let record = Arc::new(ReconcileRecord {
        controller: HOSTILE.into(),
        key: key.key.clone(),
        id: 7,
        causes: Causes::default(),
        outcome: Outcome::Failed(HOSTILE.into()),
        started: jiff::Timestamp::UNIX_EPOCH,
        duration: Duration::from_millis(3),
    });
    let history = ControllerHistory {
        controller: HOSTILE.into(),
        concurrency: 1,
        running: Vec::new(),
        recent: vec![Arc::clone(&record)],
        failing: vec![record],
        hot_loops: Vec::new(),
    };
    Snapshot {
        time: "2030-01-01T00:00:00Z".into(),
        started: Some("others".into()),
        key: Some(format!("\" autofocus onfocus=alert(1) x=\"{HOSTILE}")),
        controllers: vec![ControllerSnapshot {
            name: HOSTILE.into(),
            phase: ControllerPhase::Working,
        }],
        leases: Vec::new(),
        caches: Vec::new(),
        queues: vec![QueueSnapshot {
            name: HOSTILE.into(),
            counts: BTreeMap::from([(KeyState::BackingOff, 1)]),
            keys: vec![key],
        }],
        history: vec![history],
    }
}

#[test]
fn nothing_that_comes_from_objects_becomes_markup() {
    let page = render(&hostile());
    for markup in ["<script", "<img", "onerror=\"", "\" autofocus"] {
        assert!(!page.contains(markup), "{markup} in {page}");
    }
    let escaped = page.matches(&escaped(HOSTILE)).count();
    assert_eq!(escaped, 15, "{page}"); // two in each key
    assert!(page.contains("1 backing off"), "{page}");
}

#[test]
fn every_element_is_closed() {
    let page = render(&hostile());
    for element in ["table", "tr", "td", "h2", "form", "label", "body", "html", "style"] {
        let opened = page.matches(&format!("<{element}>")).count()
            + page.matches(&format!("<{element} ")).count();
        assert_eq!(opened, page.matches(&format!("</{element}>")).count(), "{element}");
    }
}
