//! What the API server wrote, in its order: the oracle's only source.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use steersman_store::{RangeRequest, Store, WatchRequest};
use steersman_testkit::Cluster;
use tokio_util::task::AbortOnDropHandle;

/// One write that matters to the oracle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Write {
    /// The Lease is held by this identity now.
    Holder(Option<String>),
    /// This identity did some work.
    Work(String),
}

/// Follows the server's store.
pub(super) struct WriteLog {
    writes: Arc<Mutex<Vec<Write>>>,
    _follows: AbortOnDropHandle<()>,
}

impl WriteLog {
    pub(super) async fn follow(cluster: &Cluster) -> Self {
        let store = cluster.inner().store().clone();
        let now = store.range(RangeRequest { limit: 1, ..RangeRequest::default() }).await.unwrap();
        let request = WatchRequest { prefix: "/registry/".into(), after: now.revision };
        let mut watch = store.watch(request).await.unwrap();
        let writes = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&writes);
        let follows = tokio::spawn(async move {
            loop {
                let events = watch.next().await.expect("nothing is compacted in so short a time");
                let read = events.iter().filter_map(|event| {
                    read(&event.key, event.current.as_ref().map(|entry| &entry.value[..]))
                });
                noted.lock().unwrap().extend(read);
            }
        });
        Self { writes, _follows: AbortOnDropHandle::new(follows) }
    }

    /// How much work has been done.
    pub(super) fn work(&self) -> usize {
        let writes = self.writes.lock().unwrap();
        writes.iter().filter(|write| matches!(write, Write::Work(_))).count()
    }

    /// How often somebody else took the Lease.
    pub(super) fn terms(&self) -> usize {
        let mut holders: Vec<String> = Vec::new();
        for write in &*self.writes.lock().unwrap() {
            if let Write::Holder(Some(holder)) = write
                && holders.last() != Some(holder)
            {
                holders.push(holder.clone());
            }
        }
        holders.len()
    }

    /// Fails if somebody worked who did not hold the Lease at that moment.
    pub(super) fn check(&self) {
        let writes = self.writes.lock().unwrap();
        let mut holder = None;
        for (number, write) in writes.iter().enumerate() {
            match write {
                Write::Holder(now) => holder.clone_from(now),
                Write::Work(by) => assert_eq!(
                    holder.as_ref(),
                    Some(by),
                    "worked without the lease; before that: {:?}",
                    &writes[number.saturating_sub(20)..=number]
                ),
            }
        }
    }
}

fn read(key: &str, value: Option<&[u8]>) -> Option<Write> {
    let object: Value = value.map_or(Value::Null, |value| serde_json::from_slice(value).unwrap());
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    match key {
        "/registry/leases/default/demo" => {
            Some(Write::Holder(text(&object["spec"]["holderIdentity"])))
        }
        "/registry/configmaps/default/work" => text(&object["data"]["by"]).map(Write::Work),
        _ => None,
    }
}
