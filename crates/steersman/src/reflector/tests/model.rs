//! Random histories of a failing server: in the end, who replays the deltas knows what it knows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use proptest::prelude::*;
use tokio::time::{Instant, timeout_at};

use super::script::{Reflection, describe};
use super::server::{Cut, Fault, Server, Streaming};
use crate::object::version_of;
use crate::reflector::{Delta, Options};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Happening {
    Set { name: u8, malformed: bool },
    Delete { name: u8 },
    Compact,
    CutWatches(Cut),
    Serve(bool),
    Fault(Fault),
    Pass { seconds: u64 },
}

fn happenings() -> impl Strategy<Value = Vec<Happening>> {
    let cut = prop_oneof![
        Just(Cut::End),
        Just(Cut::Reset),
        Just(Cut::MidEvent),
        Just(Cut::Expired),
        Just(Cut::Silence),
    ];
    let fault = prop_oneof![
        Just(Fault::ConnectionRefused),
        Just(Fault::InternalError),
        Just(Fault::Busy),
        Just(Fault::Forbidden),
        Just(Fault::NoRoute),
        Just(Fault::Expired),
        Just(Fault::ExpiredEvent),
        Just(Fault::Cut),
    ];
    let happening = prop_oneof![
        8 => (0_u8..8, prop::bool::weighted(0.1))
            .prop_map(|(name, malformed)| Happening::Set { name, malformed }),
        4 => (0_u8..8).prop_map(|name| Happening::Delete { name }),
        2 => Just(Happening::Compact),
        3 => cut.prop_map(Happening::CutWatches),
        1 => prop::bool::weighted(0.6).prop_map(Happening::Serve),
        4 => fault.prop_map(Happening::Fault),
        4 => prop_oneof![0_u64..3, 0_u64..100].prop_map(|seconds| Happening::Pass { seconds }),
    ];
    prop::collection::vec(happening, 0..60)
}

fn streaming() -> impl Strategy<Value = Streaming> {
    prop_oneof![Just(Streaming::Supported), Just(Streaming::Refused), Just(Streaming::Ignored)]
}

/// What is known to someone who hears only the deltas.
#[derive(Default)]
struct Replay {
    objects: BTreeMap<String, u64>,
    version: u64,
    told: Vec<String>,
}

impl Replay {
    fn take(&mut self, delta: Delta<ConfigMap>) {
        self.told.push(describe(&delta));
        match delta {
            Delta::Replaced { objects, skipped, version } => {
                let skipped: BTreeSet<&str> = skipped.iter().map(|key| &*key.name).collect();
                self.objects.retain(|name, _| skipped.contains(name.as_str()));
                objects.iter().for_each(|object| self.apply(object));
                self.reach(version);
            }
            Delta::Applied(object) => {
                self.apply(&object);
                self.reach(version_of(object.metadata.resource_version.as_deref()));
            }
            Delta::Reread(object) => self.apply(&object),
            Delta::Deleted(object) => {
                self.objects.remove(object.metadata.name.as_deref().unwrap());
                self.reach(version_of(object.metadata.resource_version.as_deref()));
            }
            Delta::DeletedKey { key, version } => {
                self.objects.remove(&*key.name);
                self.reach(version);
            }
            Delta::Bookmark { version } => self.reach(version),
        }
    }

    fn apply(&mut self, object: &ConfigMap) {
        let version = version_of(object.metadata.resource_version.as_deref()).unwrap();
        self.objects.insert(object.metadata.name.clone().unwrap(), version);
    }

    fn reach(&mut self, version: Option<u64>) {
        let Some(version) = version else { return };
        assert!(version >= self.version, "back in time to {version}: {:?}", self.told);
        self.version = version;
    }

    /// Takes whatever is told within a time.
    async fn listen(&mut self, reflection: &mut Reflection, seconds: u64) {
        let until = Instant::now() + Duration::from_secs(seconds);
        while let Ok(batch) = timeout_at(until, reflection.deltas.pop_batch(5)).await {
            assert!(!batch.is_empty(), "the reflector ended");
            batch.into_iter().for_each(|delta| self.take(delta));
        }
    }
}

/// Lets all of it happen, then lets the reflector recover and compares.
async fn run(server: Server, happenings: Vec<Happening>) {
    let options = Options { page_size: 2, ..Options::default() };
    let mut reflection = Reflection::start(server.client(), options);
    let mut replay = Replay::default();
    for happening in happenings {
        match happening {
            Happening::Set { name, malformed } => server.set(&name.to_string(), malformed),
            Happening::Delete { name } => server.delete(&name.to_string()),
            Happening::Compact => server.compact(),
            Happening::CutWatches(cut) => server.cut_watches(cut),
            Happening::Serve(served) => server.serve(served),
            Happening::Fault(fault) => server.fail_next(fault),
            Happening::Pass { seconds } => replay.listen(&mut reflection, seconds).await,
        }
    }
    server.heal();
    // The longest silence of a watch before it is taken for dead, and some pauses.
    replay.listen(&mut reflection, 700).await;
    compare(&server, &replay);
}

/// Objects that can be decoded are known in their present version, and none that is gone.
fn compare(server: &Server, replay: &Replay) {
    let truth = server.objects();
    for (name, object) in &truth {
        let known = replay.objects.get(name).copied();
        let right = object.malformed || known == Some(object.version);
        assert!(right, "{name}: {object:?} is known as {known:?} after {:?}", replay.told);
    }
    for name in replay.objects.keys() {
        assert!(truth.contains_key(name), "{name} is gone; told {:?}", replay.told);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The failing history prints itself.
    #[test]
    fn whatever_happens_the_deltas_end_in_the_state_of_the_server(
        streaming in streaming(),
        sends_bookmarks in any::<bool>(),
        seed in any::<u64>(),
        happenings in happenings(),
    ) {
        crate::random::seed(seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(Server::new(streaming, sends_bookmarks), happenings));
    }
}
