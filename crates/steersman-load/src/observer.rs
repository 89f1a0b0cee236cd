//! Sees by watches what comes of writes: when its event arrives, and when the object is ready.
//!
//! A write is told of before it is sent and when it is answered; the event may come before the
//! answer. Versions are compared as numbers, which Kubernetes promises they are.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::core::DynamicObject;
use steersman::informer::{Event, Informer, Registration};
use steersman::reflector::Selection;
use steersman::{Client, ObjectKey};
use tokio::time::Instant;

use crate::population::Population;
use crate::recorder::Recorder;

/// Watches all objects of a run for as long as it lives.
pub(crate) struct Observer {
    sorts: Vec<Watched>,
}

struct Watched {
    known: Arc<Known>,
    _informer: Informer<DynamicObject>,
    _handler: Registration,
}

/// What is known of the objects of one sort. The lock is never held over a wait.
struct Known {
    recorder: Arc<Recorder>,
    /// What the two effects are called; what is ready as soon as it is there has only one.
    seen: String,
    ready: Option<String>,
    objects: Mutex<HashMap<ObjectKey, Observed>>,
}

/// One object.
#[derive(Default)]
struct Observed {
    /// The last write that is not yet all that it is to be.
    write: Option<Write>,
    /// What the last event said.
    last: Option<State>,
}

struct Write {
    sent: Instant,
    /// What it came to, once it is answered.
    answer: Option<Version>,
    /// The events that came before the answer.
    early: Vec<State>,
    is_seen: bool,
}

/// What an event said.
#[derive(Clone, Copy)]
struct State {
    at: Instant,
    version: Version,
    is_ready: bool,
}

/// A resource version, comparable with others of its kind, and the generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    resource: u64,
    generation: i64,
}

impl Version {
    fn of(object: &DynamicObject) -> Self {
        let resource = object.metadata.resource_version.as_deref();
        Self {
            resource: resource.and_then(|text| text.parse().ok()).unwrap_or(0),
            generation: object.metadata.generation.unwrap_or(0),
        }
    }
}

impl Observer {
    /// Begins to watch.
    pub(crate) async fn start(
        client: &Client,
        population: &Population,
        recorder: &Arc<Recorder>,
    ) -> Self {
        let mut sorts = Vec::new();
        for (place, sort) in population.sorts.iter().enumerate() {
            let known = Arc::new(Known {
                recorder: Arc::clone(recorder),
                seen: format!("{} seen", sort.resource()),
                ready: sort.readiness.takes_time().then(|| format!("{} ready", sort.resource())),
                objects: Mutex::default(),
            });
            let selection =
                Selection { labels: Some(population.selector(place)), ..Selection::default() };
            let kind = sort.kind.dynamic_type().clone();
            let informer = Informer::<DynamicObject>::builder_for(client.kube().clone(), kind)
                .selection(selection)
                .start();
            let readiness = sort.readiness.clone();
            let told = Arc::clone(&known);
            let handler = informer.add_handler(move |event: &Event<DynamicObject>| match event {
                Event::Deleted { object, .. } => told.gone(object.key()),
                event => {
                    let item = event.object();
                    if let Some(object) = item.object() {
                        let is_ready = readiness.of(&object);
                        let version = Version::of(&object);
                        told.changed(item.key(), State { at: Instant::now(), version, is_ready });
                    }
                }
            });
            let handler = handler.await;
            handler.synced().await;
            sorts.push(Watched { known, _informer: informer, _handler: handler });
        }
        Self { sorts }
    }

    /// A write of an object is about to be sent.
    pub(crate) fn writing(&self, sort: usize, key: &ObjectKey, sent: Instant) {
        self.sorts[sort].known.writing(key, sent);
    }

    /// A write was answered: with this object, or with a failure.
    pub(crate) fn written(&self, sort: usize, key: &ObjectKey, answer: Option<&DynamicObject>) {
        self.sorts[sort].known.written(key, answer.map(Version::of));
    }

    /// How many objects there are, and how many of them are ready and all that was written.
    pub(crate) fn count(&self) -> Count {
        let mut count = Count::default();
        for sort in &self.sorts {
            for object in sort.known.lock().values() {
                count.objects += u64::from(object.last.is_some());
                count.ready += u64::from(object.is_settled());
                count.pending += u64::from(object.write.is_some());
            }
        }
        count
    }
}

/// How many objects there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) objects: u64,
    pub(crate) ready: u64,
    /// Those whose last write is not seen, or not ready.
    pub(crate) pending: u64,
}

impl Known {
    fn writing(&self, key: &ObjectKey, sent: Instant) {
        let write = Write { sent, answer: None, early: Vec::new(), is_seen: false };
        self.lock().entry(key.clone()).or_default().write = Some(write);
    }

    fn written(&self, key: &ObjectKey, answer: Option<Version>) {
        let mut objects = self.lock();
        let Some(object) = objects.get_mut(key) else { return };
        match (answer, &mut object.write) {
            (Some(version), Some(write)) => {
                write.answer = Some(version);
                for state in std::mem::take(&mut write.early) {
                    self.follow(object, state);
                }
            }
            _ => object.write = None,
        }
        if object.write.is_none() && object.last.is_none() {
            objects.remove(key);
        }
    }

    fn changed(&self, key: &ObjectKey, state: State) {
        let mut objects = self.lock();
        let object = objects.entry(key.clone()).or_default();
        object.last = Some(state);
        self.follow(object, state);
    }

    fn gone(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    /// Notes what an event says of the last write.
    fn follow(&self, object: &mut Observed, state: State) {
        let Some(write) = &mut object.write else { return };
        let Some(answer) = write.answer else { return write.early.push(state) };
        if state.version.resource < answer.resource {
            return;
        }
        let took = state.at.saturating_duration_since(write.sent);
        if !std::mem::replace(&mut write.is_seen, true) {
            self.recorder.done(&self.seen, took);
        }
        if state.is_ready && state.version.generation >= answer.generation {
            if let Some(ready) = &self.ready {
                self.recorder.done(ready, took);
            }
            object.write = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Observed>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observed {
    fn is_settled(&self) -> bool {
        self.write.is_none() && self.last.is_some_and(|state| state.is_ready)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use steersman::ObjectKey;
    use tokio::time::{Duration, Instant, advance};

    use super::{Known, State, Version};
    use crate::recorder::Recorder;

    fn known() -> Known {
        let recorder = Arc::new(Recorder::start());
        let [seen, ready] = ["seen", "ready"].map(str::to_owned);
        Known { recorder, seen, ready: Some(ready), objects: Mutex::default() }
    }

    fn version(resource: u64, generation: i64) -> Version {
        Version { resource, generation }
    }

    fn event(resource: u64, generation: i64, is_ready: bool) -> State {
        State { at: Instant::now(), version: version(resource, generation), is_ready }
    }

    /// How often something was measured, and its longest time in milliseconds.
    fn measured(known: &Known, name: &str) -> (u64, f64) {
        let operations = known.recorder.operations();
        let found = operations.iter().find(|operation| operation.name == name);
        found.map_or((0, 0.0), |operation| (operation.count, operation.max))
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_after_the_answer_is_timed_from_when_the_write_was_sent() {
        let known = known();
        let key = ObjectKey::named("a");
        known.writing(&key, Instant::now());
        advance(Duration::from_millis(5)).await;
        known.written(&key, Some(version(10, 1)));
        advance(Duration::from_millis(5)).await;
        known.changed(&key, event(10, 1, false));
        assert_eq!(measured(&known, "seen"), (1, 10.0));
        assert_eq!(measured(&known, "ready").0, 0);
        advance(Duration::from_millis(20)).await;
        known.changed(&key, event(12, 1, true));
        assert_eq!((measured(&known, "seen").0, measured(&known, "ready")), (1, (1, 30.0)));
        known.changed(&key, event(13, 1, true));
        assert_eq!(measured(&known, "ready").0, 1, "nothing was written since");
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_before_the_answer_counts_from_when_it_came() {
        let known = known();
        let key = ObjectKey::named("a");
        known.writing(&key, Instant::now());
        known.changed(&key, event(9, 1, true)); // of an earlier write
        advance(Duration::from_millis(5)).await;
        known.changed(&key, event(10, 2, true));
        advance(Duration::from_millis(50)).await;
        known.written(&key, Some(version(10, 2)));
        assert_eq!(measured(&known, "seen"), (1, 5.0));
        assert_eq!(measured(&known, "ready"), (1, 5.0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_failed_is_waited_for_by_nobody() {
        let known = known();
        let key = ObjectKey::named("a");
        known.writing(&key, Instant::now());
        known.written(&key, None);
        assert!(known.lock().is_empty());
        known.changed(&key, event(3, 1, true));
        known.writing(&key, Instant::now());
        known.written(&key, None);
        assert!(known.lock()[&key].is_settled());
        known.gone(&key);
        assert!(known.lock().is_empty());
    }
}
