//! An informer behind every fault, while objects change at random: in the end its cache is
//! what the server has, and every handler was told the way there without a lie or a gap.

mod progress;
mod view;
mod writer;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use steersman::cache::{Form, Item};
use steersman::informer::Informer;
use steersman_testkit::{Cluster, Fault, Faults, Settings, run_with};

pub(crate) use view::config_maps;
use view::{Objects, View, cached, seen};
use writer::{Writer, everything};

use crate::replicas::many_seeds;

/// How many times the writer acts.
const STEPS: usize = 50;
/// How many objects a page has: few objects must make several pages.
const PAGE: u32 = 4;
/// Virtual time in which everything is told once nothing is injected any more. A dead watch is
/// noticed only after as long as it was asked to last.
const PATIENCE: Duration = Duration::from_secs(40 * 60);
/// How often it is looked whether everything is told.
const LOOK: Duration = Duration::from_secs(30);

/// Happen, if nothing else goes wrong, only to an informer that lists and then watches.
const OF_LISTS: [Fault; 3] = [Fault::SlowPage, Fault::ContinueExpired, Fault::WatchExpired];

/// How often a fault happens when it is alone.
fn often(fault: Fault) -> f64 {
    match fault {
        Fault::ConnectionRefused
        | Fault::TooManyRequests
        | Fault::ServerError
        | Fault::Forbidden
        | Fault::ConnectionReset
        | Fault::SlowPage
        | Fault::WatchExpired
        | Fault::BookmarkMissing => 0.5,
        Fault::ContinueExpired
        | Fault::StreamingRefused
        | Fault::StreamingIgnored
        | Fault::InitialEventsEndMissing => 0.7,
        _ => 0.15,
    }
}

/// Lets watches end and versions expire, so that there are lists to go wrong, of both kinds.
fn relisting(faults: Faults) -> Faults {
    faults
        .with(Fault::WatchEnded, 0.05)
        .with(Fault::ExpiredEvent, 0.05)
        .with(Fault::StreamingRefused, 0.5)
}

/// Everything that one run looks at.
struct Run {
    faults: Faults,
    informer: Informer<ConfigMap>,
    early: Arc<Mutex<View>>,
    late: Arc<Mutex<View>>,
}

/// Runs one informer behind these faults and checks all that it told.
fn check(seed: u64, faults: &Faults) {
    run_with(Settings::bare(seed), |cluster| async move {
        let mut writer = Writer::new(&cluster, seed);
        writer.begin().await;
        // Half of the seeds with each form of cache.
        let form = if seed.is_multiple_of(2) { Form::Typed } else { Form::COMPACT };
        let run = Run::start(&cluster, faults.clone(), form);
        for step in 0..STEPS {
            if step == STEPS / 2 {
                run.attach(&run.late);
            }
            writer.step().await;
        }
        run.faults.heal();
        run.settle(&cluster).await;
    });
}

impl Run {
    fn start(cluster: &Cluster, faults: Faults, form: Form) -> Self {
        let client = cluster.client_with(&faults);
        let informer = Informer::builder(client).form(form).start();
        let run = Self { faults, informer, early: Arc::default(), late: Arc::default() };
        run.attach(&run.early);
        run
    }

    /// Adds a handler without waiting for the first list, which may take long.
    fn attach(&self, view: &Arc<Mutex<View>>) {
        let informer = self.informer.clone();
        let view = Arc::clone(view);
        tokio::spawn(async move { View::attach(&informer, view).await });
    }

    /// Waits until all agree, and checks how they got there.
    async fn settle(&self, cluster: &Cluster) {
        for _ in 0..PATIENCE.as_secs() / LOOK.as_secs() {
            cluster.advance(LOOK).await;
            // What cannot be decoded is found out, and read again, when somebody looks at it.
            let read = self.informer.cache().list().len();
            let truth = truth(cluster).await;
            if read == truth.len() && self.disagreement(&truth).is_none() {
                break;
            }
        }
        let truth = truth(cluster).await;
        let disagreement = self.disagreement(&truth);
        assert!(disagreement.is_none(), "{}: {}", self.faults, disagreement.unwrap_or_default());
        let read: Vec<ConfigMap> =
            self.informer.cache().list().iter().map(|map| ConfigMap::clone(map)).collect();
        assert_eq!(read, everything(cluster).await, "{}: what is read differs", self.faults);
        for view in [&self.early, &self.late] {
            let view = view.lock().unwrap();
            assert!(view.wrong.is_empty(), "{}: {:#?}", self.faults, view.wrong);
            let lost = view.lost_deletes(&truth);
            assert!(lost.is_empty(), "{}: deletes were lost: {lost:?}", self.faults);
        }
    }

    /// Who does not see what the server has.
    fn disagreement(&self, truth: &Objects) -> Option<String> {
        let (early, late) = (self.early.lock().unwrap(), self.late.lock().unwrap());
        let cached = cached(&self.informer);
        let seen = [
            ("cache", &cached),
            ("early handler", &early.objects),
            ("late handler", &late.objects),
        ];
        seen.into_iter().find(|(_, objects)| *objects != truth).map(|(who, objects)| {
            format!("the {who} has {objects:#?} and the server has {truth:#?}")
        })
    }
}

async fn truth(cluster: &Cluster) -> Objects {
    everything(cluster).await.into_iter().map(|map| seen(&Item::typed(map))).collect()
}

/// Checks from these seeds, and from further ones until the fault has happened at all.
fn survived(fault: Fault, seeds: std::ops::Range<u64>, faults: impl Fn(Faults) -> Faults) {
    let mut injected = 0;
    for seed in seeds.start..seeds.end + 10 {
        if seed >= seeds.end && injected > 0 {
            return;
        }
        let faults = faults(Faults::seeded(seed).pages_of(PAGE)).with(fault, often(fault));
        check(seed, &faults);
        injected += faults.injected(fault);
    }
    assert!(injected > 0, "{fault:?} never happened");
}

#[test]
fn without_faults_everything_is_told() {
    check(1, &Faults::seeded(1));
}

/// A few seeds, or as many as the soak wants.
fn from(first: u64, few: u64) -> std::ops::Range<u64> {
    first..first + many_seeds().unwrap_or(few)
}

#[test]
fn every_fault_alone_is_survived() {
    for fault in Fault::ALL.into_iter().filter(|fault| *fault != Fault::Malformed) {
        survived(fault, from(0, 2), |faults| {
            let lists = OF_LISTS.contains(&fault);
            faults.with(Fault::StreamingRefused, if lists { 1.0 } else { 0.0 })
        });
    }
}

#[test]
fn every_fault_among_relists_is_survived() {
    for fault in Fault::ALL.into_iter().filter(|fault| *fault != Fault::Malformed) {
        survived(fault, from(100_000, 2), relisting);
    }
}

#[test]
fn objects_that_cannot_be_decoded_are_survived() {
    survived(Fault::Malformed, from(200_000, 4), |faults| faults);
    survived(Fault::Malformed, from(300_000, 4), relisting);
}

#[test]
fn all_faults_together_are_survived() {
    for seed in from(400_000, 12) {
        let decodable = Faults::seeded(seed).pages_of(PAGE).with(Fault::Malformed, 0.0);
        check(seed, &decodable.all(0.04));
    }
    for seed in from(500_000, 6) {
        check(seed, &Faults::seeded(seed).pages_of(PAGE).all(0.04));
    }
}
