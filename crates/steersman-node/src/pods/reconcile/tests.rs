//! What a worker makes of a runtime that does not do at once what it is told.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{Stream, stream};
use http::{Request, Response};
use kube::client::Body;
use steersman::events::Recorder;
use steersman::{Metrics, ObjectKey};

use super::super::tests::{at, condition, exited, pod, runs, seen, status, with};
use super::*;
use crate::families::IpFamilies;
use crate::runtime::{Change, Evicted, Ledger, Observation, Resized};

/// A runtime that never comes to start anything.
struct Waits {
    seen: Observation,
    /// How often it was to.
    asked: AtomicUsize,
}

impl ContainerRuntime for Waits {
    fn ledger(&self) -> Option<Arc<dyn Ledger>> {
        None
    }

    fn refuses(&self, _: &Pod) -> Option<Rejection> {
        None
    }

    fn evicted(&self, _: &Pod) -> Option<Evicted> {
        None
    }

    async fn observe(&self, _: &Pod, _: Timestamp) -> Result<Observation> {
        Ok(self.seen.clone())
    }

    fn takes_time(&self) -> bool {
        true
    }

    async fn start(&self, _: &Pod, _: &Start, _: &Client, _: Timestamp) -> Result<Outcome> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(Outcome::Waiting)
    }

    async fn missing_secrets(&self, _: &Pod, _: &Client) -> Vec<String> {
        Vec::new()
    }

    fn ends(&self, _: &str) {}

    async fn stop(&self, _: &Pod, _: &[String], _: Timestamp) -> Result<()> {
        Ok(())
    }

    async fn resize(&self, _: &Pod, changes: &[Change]) -> Result<Resized> {
        Ok(Resized { done: changes.len(), error: None })
    }

    async fn wind_down(&self, _: &Pod) -> Result<bool> {
        Ok(true)
    }

    fn forget(&self, _: &str) {}

    fn changes(&self) -> impl Stream<Item = ObjectKey> + Send + 'static {
        stream::pending()
    }
}

/// A client that nobody asks for anything.
fn client() -> Client {
    let nobody = tower::service_fn(async |_: Request<Body>| {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    });
    Client::new(kube::Client::new(nobody, "default"), "steersman")
}

fn machine() -> Machine {
    Machine::simulated("node-0".into(), 0, BTreeMap::new(), IpFamilies::default())
}

#[tokio::test]
async fn a_pod_whose_start_has_to_wait_is_looked_at_to_the_end_each_time() {
    let pod = with(pod(), "Always");
    let ended = seen([exited("setup", 0, 0), runs("proxy"), exited("main", 1, 5)]).now;
    for seen in [Observation::default(), ended] {
        let machines = Arc::new([("node-0".to_owned(), machine())].into());
        let worker = PodWorker::new(machines, Waits { seen, asked: AtomicUsize::new(0) });
        let (recorder, _broadcaster) = Recorder::new(client(), &Metrics::default());
        let machine = machine();
        let teller = Teller::new(&pod, &machine, &recorder);
        for look in 1..=SAME_MAX + 2 {
            let (observed, plan) =
                worker.settle(&pod, &teller, &client(), at(6)).await.expect("it is reported");
            assert_eq!(plan.actions, []);
            assert_eq!(worker.runtime.asked.load(Ordering::SeqCst), look, "once for each look");
            assert_eq!(condition(&status(&pod, &observed, 6), "Ready").status, "False");
        }
    }
}
