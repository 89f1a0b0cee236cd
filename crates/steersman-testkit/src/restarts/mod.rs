//! What a controller does when it is restarted at the worst moment.
//!
//! [`Restarts::check`] runs a scenario once undisturbed, and then again and again, each time with
//! one restart of the controller: right after each of its writes (the server has done it, the
//! controller does not learn of it), and right after parts of what it watches (it has received it,
//! and done nothing about it). The state at the end, the number of objects that the controller
//! created and the number of Pods that ever were must be the same every time.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use steersman::prelude::*;
//! use steersman_testkit::Restarts;
//!
//! /// Gives every ConfigMap with data a copy.
//! fn copies() -> Controller {
//!     async fn copy(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Next> {
//!         if map.data.is_some() && ctx.children::<ConfigMap>()?.is_empty() {
//!             let mut copy = ConfigMap { binary_data: None, ..ConfigMap::default() };
//!             copy.metadata.generate_name = Some("copy-".into());
//!             ctx.create(copy).await?;
//!         }
//!         Ok(Next::Settled)
//!     }
//!     Controller::of::<ConfigMap>().named("copies").owns::<ConfigMap>().reconcile(copy)
//! }
//!
//! # fn main() {
//! // In a function with #[test]:
//! Restarts::of(copies).check(async |cluster| {
//!     let mut map = ConfigMap::default();
//!     map.metadata.name = Some("original".into());
//!     map.data = Some([("a".to_owned(), "b".to_owned())].into());
//!     cluster.client().create(&map).await?;
//!     Ok(())
//! });
//! # }
//! ```

mod outcome;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman::informer::{Event, Informer};
use steersman::manager::{Manager, Running};
use steersman::{Controller, Result};

use crate::wire::{Point, Wire};
use crate::{Cluster, Controllers, Settings, run_with};
use outcome::Outcome;

/// How much virtual time passes after a scenario before its end state counts.
const QUIET: Duration = Duration::from_secs(60);
/// How many restarts after parts of watches there are, unless said otherwise.
const EVENTS_MAX: usize = 30;

/// Restarts of a controller, at every moment that matters.
pub struct Restarts {
    make: Vec<Box<dyn Fn() -> Controller>>,
    settings: Settings,
    events_max: usize,
}

impl Restarts {
    /// Of the controller that this makes, anew for every start. If it has the name of a built-in
    /// one, it runs in place of that.
    pub fn of(make: impl Fn() -> Controller + 'static) -> Self {
        let mut settings = Settings::default();
        let name = make().name().to_owned();
        if Controllers::names().any(|known| known == name) {
            let others = format!("*,-{name}").parse();
            settings.which = others.expect("it is the name of a built-in controller");
        }
        Self { make: vec![Box::new(make)], settings, events_max: EVENTS_MAX }
    }

    /// Together with this controller: both are one program, and restarted at once.
    #[must_use]
    pub fn beside(mut self, make: impl Fn() -> Controller + 'static) -> Self {
        self.make.push(Box::new(make));
        self
    }

    /// On a cluster of this kind; which built-in controllers run stays as it is.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = Settings { which: self.settings.which, ..settings };
        self
    }

    /// With at most so many restarts after parts of what it watches, spread evenly; there are
    /// thirty otherwise. After writes there is always one for each.
    #[must_use]
    pub fn events(mut self, most: usize) -> Self {
        self.events_max = most;
        self
    }

    /// Runs the scenario without and with restarts. Must not be called within a runtime.
    ///
    /// # Panics
    ///
    /// If the scenario fails, or comes to another end with a restart than without: then it says
    /// after what the controller was restarted, and what differs.
    #[expect(clippy::needless_pass_by_value, reason = "it is a closure, written in the call")]
    pub fn check(self, scenario: impl AsyncFn(&Cluster) -> Result<()>) {
        let (expected, wire) = self.run(Point::Never, &scenario);
        let writes = wire.writes();
        assert!(!writes.is_empty(), "the controller wrote nothing, so there is nothing to disturb");
        let mut restarted = 0;
        for (n, write) in (1..).zip(&writes) {
            let (found, wire) = self.run(Point::Write(n), &scenario);
            let what = format!("write {n} of {}: {write}", writes.len());
            restarted += usize::from(wire.is_cut());
            compare(&expected, &found, &what);
        }
        let events = wire.events();
        let parts = spread(events, self.events_max);
        for n in &parts {
            let (found, wire) = self.run(Point::Event(*n), &scenario);
            restarted += usize::from(wire.is_cut());
            compare(&expected, &found, &format!("part {n} of {events} of its watches"));
        }
        // A run may write a status less than another and never come to the last point.
        let runs = writes.len() + parts.len();
        assert!(2 * restarted >= runs, "of {runs} runs, only {restarted} came to their restart");
    }

    /// Runs the scenario with one restart.
    fn run(
        &self,
        point: Point,
        scenario: &impl AsyncFn(&Cluster) -> Result<()>,
    ) -> (Outcome, Wire) {
        let wire = Wire::new(point);
        let told = wire.clone();
        let outcome = run_with(self.settings, async |cluster| {
            let disturbed = self.keep_running(&cluster, &wire);
            let scenario = async {
                let seen = Seen::start(&cluster).await;
                scenario(&cluster).await?;
                cluster.advance(QUIET).await;
                outcome::of(&cluster, &wire, seen.count()).await
            };
            tokio::select! {
                outcome = scenario => outcome,
                () = disturbed => std::future::pending().await,
            }
        });
        let outcome = outcome.unwrap_or_else(|error| panic!("with a restart {point}: {error}"));
        (outcome, told)
    }

    /// Runs the controller, and once more when it has been cut off.
    async fn keep_running(&self, cluster: &Cluster, wire: &Wire) {
        let start = |wire: Wire| -> Running {
            let manager = Manager::new(cluster.client_through(&wire));
            cluster.start_apart(self.make.iter().map(|make| make()).fold(manager, Manager::with))
        };
        let first = start(wire.clone());
        wire.cut().await;
        drop(first);
        let _second = start(wire.renewed());
        std::future::pending::<()>().await;
    }
}

/// Fails unless both came to the same end.
fn compare(expected: &Outcome, found: &Outcome, what: &str) {
    if let Some(difference) = expected.difference(found) {
        panic!("restarted right after {what}\n{difference}");
    }
}

/// At most `most` numbers from 1 to `count`, spread evenly.
fn spread(count: usize, most: usize) -> Vec<usize> {
    let most = most.min(count);
    (1..=most).map(|n| n * count / most).collect()
}

/// All Pods that ever were.
struct Seen {
    uids: Arc<Mutex<BTreeSet<String>>>,
    _informer: Informer<Pod>,
}

impl Seen {
    async fn start(cluster: &Cluster) -> Self {
        let uids = Arc::new(Mutex::new(BTreeSet::new()));
        let informer = Informer::<Pod>::builder(cluster.client().kube().clone()).start();
        let noted = Arc::clone(&uids);
        let handler = informer.add_handler(move |event: &Event<Pod>| {
            let uid = event.object().object().and_then(|pod| pod.metadata.uid.clone());
            noted.lock().unwrap_or_else(PoisonError::into_inner).extend(uid);
        });
        handler.await.synced().await;
        Self { uids, _informer: informer }
    }

    fn count(&self) -> usize {
        self.uids.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn numbers_are_spread_from_the_first_part_to_the_last() {
        assert_eq!(spread(3, 30), [1, 2, 3]);
        assert_eq!(spread(100, 4), [25, 50, 75, 100]);
        assert_eq!(spread(0, 4), [] as [usize; 0]);
        assert_eq!(spread(5, 0), [] as [usize; 0]);
    }
}
