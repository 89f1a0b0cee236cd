//! Compaction of etcd, elected among all API servers by Kubernetes' own protocol.
//!
//! Everyone tries, once an interval, to count up the version of one key from the one that they
//! know, and to leave there the revision to compact to: the one that etcd was at an interval ago.
//! Whoever comes first compacts; the others learn the version, and try again after another
//! interval, so that somebody takes over when the first one is gone. See `compact.go` of
//! Kubernetes' `storage/etcd3`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::client::{COMPACT, Client, TXN};
use super::error::Failure;
use super::keys::{number, revision};
use super::wire::{
    CompactionRequest, CompactionResponse, Compare, Comparison, KeyValue, Operand, PutRequest,
    RangeRequest, Request, Response, Target, TxnRequest, TxnResponse,
};
use crate::Revision;

/// The key that Kubernetes' API servers use, outside of their own.
const KEY: Bytes = Bytes::from_static(b"compact_rev_key");

/// The revision that somebody is about to compact to, if this is how they say so.
pub(super) fn told(kv: &KeyValue) -> Option<Revision> {
    if kv.key != KEY {
        return None;
    }
    std::str::from_utf8(&kv.value).ok()?.parse().ok().map(Revision)
}

/// Compacts etcd; what is compacted already is fine.
pub(super) async fn compact(
    client: &Client,
    to: Revision,
    deadline: Instant,
) -> Result<(), Failure> {
    let request = CompactionRequest { revision: number(to) };
    match client.call::<_, CompactionResponse>(COMPACT, &request, deadline).await {
        Ok(_) | Err(Failure::Compacted) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// One of those who stand for election.
pub(super) struct Compactor {
    client: Arc<Client>,
    interval: Duration,
    timeout: Duration,
    /// The key's version that we know.
    version: i64,
    /// Where etcd was at the last election.
    revision: Revision,
}

/// How an election went.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// We are to compact to what we wrote.
    Won,
    /// Somebody else was first, or it was our first time and there is nothing to compact yet.
    Lost,
}

impl Compactor {
    pub(super) fn new(client: Arc<Client>, interval: Duration, timeout: Duration) -> Self {
        Self { client, interval, timeout, version: 0, revision: Revision(0) }
    }

    /// Stands for election for ever.
    pub(super) async fn run(mut self) {
        loop {
            sleep(self.interval).await;
            if let Err(failure) = self.round().await {
                tracing::warn!(?failure, "etcd compaction failed; retrying after the interval");
            }
        }
    }

    /// One election, and what follows from it.
    async fn round(&mut self) -> Result<(), Failure> {
        let to = self.revision;
        let elected = match self.elect().await {
            // Nobody can be elected now, and whoever compacts makes room.
            Err(Failure::Full(_)) => Outcome::Won,
            elected => elected?,
        };
        if elected == Outcome::Won && to > Revision(0) {
            compact(&self.client, to, Instant::now() + self.timeout).await?;
            tracing::info!(revision = %to, "etcd compacted");
        }
        Ok(())
    }

    async fn elect(&mut self) -> Result<Outcome, Failure> {
        let request = campaign(self.version, self.revision);
        let deadline = Instant::now() + self.timeout;
        let answer: TxnResponse = self.client.call(TXN, &request, deadline).await?;
        self.revision = revision(answer.header.unwrap_or_default().revision);
        if answer.succeeded {
            self.version += 1;
            return Ok(Outcome::Won);
        }
        let found = answer.responses.into_iter().find_map(|op| match op.response? {
            Response::Range(range) => range.kvs.into_iter().next(),
            _ => None,
        });
        self.version = found.map_or(0, |kv| kv.version);
        Ok(Outcome::Lost)
    }
}

/// Counts the version up if it is the one that we know; else tells it.
fn campaign(version: i64, to: Revision) -> TxnRequest {
    let compare = Compare {
        result: Comparison::Equal.into(),
        target: Target::Version.into(),
        key: KEY,
        operand: Some(Operand::Version(version)),
    };
    let value = to.to_string().into();
    let put = PutRequest { key: KEY, value, lease: 0, prev_kv: false };
    let get = RangeRequest { key: KEY, ..RangeRequest::default() };
    TxnRequest {
        compare: vec![compare],
        success: vec![Request::Put(put).into()],
        failure: vec![Request::Range(get).into()],
    }
}
