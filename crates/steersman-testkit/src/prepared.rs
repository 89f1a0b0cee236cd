//! A cluster that is prepared once, and forked for every test that wants it.

use jiff::Timestamp;
use steersman::clock;
use steersman_cluster::MemoryStore;

use crate::run::Origin;
use crate::test::untyped;
use crate::{Cluster, Settings, run, run_with};

/// A cluster that is prepared once, and forked for every test that wants it. Tests see nothing
/// of each other, may run at the same time, and begin at the moment when it was ready.
///
/// ```
/// use std::sync::LazyLock;
///
/// use k8s_openapi::api::core::v1::Namespace;
/// use steersman_testkit::{Prepared, Settings};
///
/// static SHOP: LazyLock<Prepared> = LazyLock::new(|| {
///     Prepared::new(Settings::default(), async |cluster| {
///         let mut shop = Namespace::default();
///         shop.metadata.name = Some("shop".into());
///         cluster.client().create(&shop).await.unwrap();
///     })
/// });
///
/// # fn main() {
/// // In any number of functions with #[test]:
/// SHOP.run(async |cluster| {
///     cluster.eventually("shop", |_: &Namespace| true).await.unwrap();
/// });
/// # }
/// ```
pub struct Prepared {
    settings: Settings,
    store: MemoryStore,
    ready: Timestamp,
}

impl Prepared {
    /// Starts a cluster of this kind and prepares it. Must not be called within a runtime.
    ///
    /// # Panics
    ///
    /// If the cluster cannot be started, or is not ready within the [limit](Settings::limit).
    pub fn new(settings: Settings, prepare: impl AsyncFnOnce(&Cluster)) -> Self {
        let settings = Settings { anywhere: false, ..settings };
        run_with(settings, async |cluster| {
            prepare(&cluster).await;
            let store = cluster.inner().store().memory().expect("tests run in memory").fork();
            Self { settings, store, ready: clock::now() }
        })
    }

    /// Runs a test with a fork of the cluster.
    ///
    /// # Panics
    ///
    /// If the fork cannot be started, or the test has not ended within the
    /// [limit](Settings::limit), counted from its own beginning.
    pub fn run<R>(&self, test: impl AsyncFnOnce(Cluster) -> R) -> R {
        // What is random must not come out again as it did before.
        let settings = Settings { seed: !self.settings.seed, ..self.settings };
        let prepared = Some(self.store.clone());
        let origin = Origin { settings, prepared, start: self.ready };
        untyped(|cluster| test(cluster), |test| run::run_on(origin, test))
    }
}
