//! A handler's queue: what it merges, and that it is bounded.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;

use super::handler::{Notification, join};
use super::*;
use crate::cache::{Item, Replacement, Untyped};
use crate::reflector::Decode as _;

fn map(name: &str, uid: u64, version: u64) -> Item<Untyped> {
    let mut map = ConfigMap::default();
    map.metadata.namespace = Some("default".into());
    map.metadata.name = Some(name.into());
    map.metadata.uid = Some(uid.to_string());
    map.metadata.resource_version = Some(version.to_string());
    Item::typed(map).cast()
}

/// What somebody believes who only hears events: name → uid and version.
#[derive(Clone, Debug, Default, PartialEq)]
struct View(BTreeMap<String, (String, String)>);

impl View {
    /// Takes an event in. An event that makes no sense after those before it is a failure.
    fn hear(&mut self, event: &Event<Untyped>) {
        let known = |item: &Item<Untyped>| {
            let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
            (text(item.uid()), text(item.resource_version()))
        };
        let name = event.object().key().to_string();
        match event {
            Event::Added { object, .. } => {
                assert!(self.0.insert(name, known(object)).is_none(), "added twice: {event:?}");
            }
            Event::Updated { old, new } => {
                assert_eq!(self.0.insert(name, known(new)), Some(known(old)), "{event:?}");
            }
            Event::Deleted { .. } => assert!(self.0.remove(&name).is_some(), "{event:?}"),
            Event::Resynced { object } => assert_eq!(self.0.get(&name), Some(&known(object))),
            Event::Generic { .. } => panic!("an informer makes none: {event:?}"),
        }
    }
}

/// A handler with the view it comes to.
fn viewer() -> (Arc<Mutex<View>>, impl FnMut(&Event<Untyped>) + Send + 'static) {
    let view = Arc::new(Mutex::new(View::default()));
    let shared = Arc::clone(&view);
    (view, move |event| shared.lock().unwrap_or_else(PoisonError::into_inner).hear(event))
}

/// Writes to a cache, and what each write tells.
fn history(writes: &[(u64, bool, bool)]) -> (Vec<Event<Untyped>>, Cache<ConfigMap>) {
    let (mut writer, cache) = cache::channel();
    let mut events = writer.replace(Replacement {
        objects: vec![map("0", 0, 1), map("1", 1, 1)],
        skipped: Vec::new(),
        version: Some(1),
    });
    for (version, (name, deleted, other)) in (2..).zip(writes) {
        let uid = if *other { version } else { *name };
        let item = map(&name.to_string(), uid, version);
        if *deleted {
            events.extend(writer.delete(&item));
        } else {
            events.extend(writer.apply(vec![item]));
        }
    }
    (events, cache)
}

fn view_of(cache: &Cache<ConfigMap>) -> View {
    let mut view = View::default();
    for object in cache.snapshot().iter() {
        view.hear(&Event::Added { object: object.cast(), initial: true });
    }
    view
}

proptest! {
    #[test]
    fn a_slow_handler_comes_to_the_same_view_and_what_waits_is_bounded(
        writes in prop::collection::vec((0..5_u64, any::<bool>(), any::<bool>()), 0..200),
        in_order in 0..20_usize,
        pauses in prop::collection::vec(any::<bool>(), 50),
    ) {
        let (events, cache) = history(&writes);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (view, handler) = viewer();
            let options = HandlerOptions { in_order, ..HandlerOptions::default() };
            let (joiner, _registration) = join(options, Handler::Plain(Box::new(handler)));
            let seat = joiner.seat("ConfigMap", CancellationToken::new());
            for (event, pause) in events.into_iter().zip(pauses.into_iter().cycle()) {
                prop_assert!(seat.queue.try_push(Notification::Event(event)).is_ok());
                // Five names, each at most a change, a deletion and an addition.
                prop_assert!(seat.queue.len() <= in_order + 15, "{} wait", seat.queue.len());
                if pause {
                    tokio::task::yield_now().await;
                }
            }
            while !seat.queue.is_empty() {
                tokio::task::yield_now().await;
            }
            tokio::task::yield_now().await;
            prop_assert_eq!(&*view.lock().unwrap(), &view_of(&cache));
            Ok(())
        })?;
    }
}

/// Whom an object belonged to before its last change is found out by what it was then.
#[tokio::test(start_paused = true)]
async fn a_slow_handler_hears_what_an_object_was_before_it_changed_and_went() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&heard);
    let handler = move |event: &Event<Untyped>| {
        let versions = event.objects().filter_map(|item| item.resource_version());
        let versions: Vec<String> = versions.map(ToOwned::to_owned).collect();
        shared.lock().unwrap_or_else(PoisonError::into_inner).push(versions);
    };
    let options = HandlerOptions { in_order: 0, ..HandlerOptions::default() };
    let (joiner, registration) = join(options, Handler::Plain(Box::new(handler)));
    let seat = joiner.seat("ConfigMap", CancellationToken::new());
    let [first, second, third] = [1, 2, 3].map(|version| map("a", 1, version));
    for event in [
        Event::Updated { old: first, new: second.clone() },
        Event::Updated { old: second, new: third.clone() },
        Event::Deleted { object: third, final_state_unknown: false },
    ] {
        assert!(seat.queue.try_push(Notification::Event(event)).is_ok());
    }
    assert!(seat.queue.try_push(Notification::Synced).is_ok());
    registration.synced().await;
    let mut heard = heard.lock().unwrap().clone();
    heard.iter_mut().for_each(|versions| versions.sort());
    assert_eq!(heard, [vec!["1", "3"], vec!["3"]]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_loses_one_event_and_hears_the_rest() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&heard);
    let handler = move |event: &Event<Untyped>| {
        let name = event.object().key().name.to_string();
        assert_ne!(name, "b", "on purpose");
        shared.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    };
    let (joiner, registration) = join(HandlerOptions::default(), Handler::Plain(Box::new(handler)));
    let seat = joiner.seat("ConfigMap", CancellationToken::new());
    for name in ["a", "b", "c"] {
        let object = map(name, 1, 1);
        assert!(
            seat.queue
                .try_push(Notification::Event(Event::Added { object, initial: true }))
                .is_ok()
        );
    }
    assert!(seat.queue.try_push(Notification::Synced).is_ok());
    registration.synced().await;
    assert_eq!(*heard.lock().unwrap(), ["a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_left_is_not_called_again() {
    let (view, handler) = viewer();
    let (joiner, registration) = join(HandlerOptions::default(), Handler::Plain(Box::new(handler)));
    let seat = joiner.seat("ConfigMap", CancellationToken::new());
    let added =
        |name| Notification::Event(Event::Added { object: map(name, 1, 1), initial: false });
    assert!(seat.queue.try_push(added("a")).is_ok());
    assert!(seat.queue.try_push(Notification::Synced).is_ok());
    registration.synced().await;
    registration.remove().await;
    let _ = seat.queue.try_push(added("b"));
    tokio::task::yield_now().await;
    assert_eq!(view.lock().unwrap().0.len(), 1);
}

/// Otherwise a handler that has fallen behind would decode everything again, and stay behind.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_handler_is_still_decoded_when_it_comes_to_see_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&seen);
    let handler = move |event: &Event<Untyped>| {
        let decoded = event.object().decoded_if_compact().is_some();
        shared.lock().unwrap_or_else(PoisonError::into_inner).push(decoded);
    };
    let (joiner, registration) = join(HandlerOptions::default(), Handler::Plain(Box::new(handler)));
    let seat = joiner.seat("ConfigMap", CancellationToken::new());
    let mut decoder = Decoder::new(Codec::of::<ConfigMap>(), Form::Compact { recent: 1 });
    let mut first = None;
    for name in ["a", "b", "c"] {
        let json = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        let object = decoder.decode_change(&json).unwrap();
        let decoded = object.decoded_if_compact();
        assert!(decoded.is_some());
        first.get_or_insert(object.clone());
        let event = Event::Added { object, initial: false };
        assert!(seat.queue.try_push(Notification::of(event, decoded)).is_ok());
    }
    assert!(first.unwrap().decoded_if_compact().is_none(), "two others came after it");
    assert!(seat.queue.try_push(Notification::Synced).is_ok());
    registration.synced().await;
    assert_eq!(*seen.lock().unwrap(), [true; 3]);
}

#[tokio::test(start_paused = true)]
async fn objects_are_let_go_a_minute_after_they_were_used_last_and_then_there_is_no_timer() {
    let mut decoder = Decoder::new(Codec::of::<ConfigMap>(), Form::Compact { recent: 400 });
    let mut cooling = Cooling::new(decoder.warmth().into_iter().collect());
    cooling.begin();
    assert_eq!(cooling.due(), None, "nothing is decoded");
    let objects: Vec<_> = (0..400)
        .map(|n| format!(r#"{{"metadata":{{"name":"c{n}"}}}}"#))
        .map(|json| decoder.decode_change(&json).unwrap())
        .collect();
    cooling.begin();
    let mut steps = 0;
    while let Some(due) = cooling.due() {
        tokio::time::sleep_until(due).await;
        cooling.step();
        steps += 1;
    }
    assert_eq!(steps, 4, "two passes of two steps each");
    let Some(object) = objects.first() else { unreachable!() };
    assert!(object.decoded_if_compact().is_none());
}
