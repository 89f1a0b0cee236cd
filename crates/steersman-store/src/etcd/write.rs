//! A write: one transaction that compares the key's revision and says what it found otherwise.

use bytes::Bytes;
use tokio::time::Instant;

use super::Core;
use super::client::{CAS, TXN};
use super::error::Failure;
use super::keys::{Keys, number, revision};
use super::wire::{
    Compare, Comparison, DeleteRangeRequest, KeyValue, Operand, PutRequest, RangeRequest, Request,
    Response, Target, TxnRequest, TxnResponse,
};
use crate::{Entry, Expected, Revision, StoreError, WriteRequest, Written};

/// How often a lease may vanish between its grant and its use.
const LEASES_MAX: usize = 3;

impl Core {
    /// Writes, and settles what became of it if etcd does not say.
    pub(super) async fn write(&self, request: WriteRequest) -> Result<Written, StoreError> {
        let key = self.keys.in_etcd(&request.key).ok_or_else(|| self.foreign(&request.key))?;
        if is_hopeless(&request) {
            let found = self.fresh_get(&request.key).await?;
            request.check(found.map(|entry| entry.modified))?;
        }
        let deadline = self.deadline();
        // Another's write may have come first, but then the comparison fails.
        let previous = self
            .index
            .get(&request.key)
            .filter(|entry| request.expected == Expected::Modified(entry.modified));
        let answer = match self.attempt(&key, &request, previous.is_some(), deadline).await {
            Err(Failure::Lost(reason)) => self.settle(&key, &request, reason, deadline).await?,
            answer => answer?,
        };
        self.progress.note(revision(answer.header.unwrap_or_default().revision));
        outcome(&self.keys, &request, answer, previous)
    }

    /// One transaction, with a lease if the key is to go.
    pub(super) async fn attempt(
        &self,
        key: &Bytes,
        request: &WriteRequest,
        previous_known: bool,
        deadline: Instant,
    ) -> Result<TxnResponse, Failure> {
        for _ in 0..LEASES_MAX {
            let lease = match request.ttl.filter(|_| request.value.is_some()) {
                Some(ttl) => self.leases.get(&self.client, ttl, deadline).await.map_err(unsent)?,
                None => 0,
            };
            let txn = transaction(key, request, lease, !previous_known);
            let method = match request.expected {
                Expected::Modified(_) => CAS,
                Expected::Absent | Expected::Any => TXN,
            };
            match self.client.call(method, &txn, deadline).await {
                Err(Failure::LeaseGone) => self.leases.forget(lease).await,
                answer => return answer,
            }
        }
        Err(Failure::LeaseGone)
    }

    fn foreign(&self, key: &str) -> StoreError {
        StoreError::Refused { reason: format!("{key} is not among this store's keys") }
    }
}

/// Nothing was written yet, whatever became of the lease.
fn unsent(failure: Failure) -> Failure {
    match failure {
        Failure::Lost(reason) => Failure::NotDone(reason),
        failure => failure,
    }
}

/// Whether no key can be as the request wants it; etcd would take zero for "absent".
fn is_hopeless(request: &WriteRequest) -> bool {
    match request.expected {
        Expected::Modified(modified) => modified == Revision(0),
        Expected::Absent => request.value.is_none(),
        Expected::Any => false,
    }
}

fn transaction(key: &Bytes, request: &WriteRequest, lease: i64, prev_kv: bool) -> TxnRequest {
    let key = Bytes::clone(key);
    let step = match &request.value {
        Some(value) => {
            let key = key.clone();
            let value = value.clone();
            Request::Put(PutRequest { key, value, lease, prev_kv })
        }
        None => Request::DeleteRange(DeleteRangeRequest { key: key.clone(), prev_kv }),
    };
    let found = RangeRequest { key: key.clone(), keys_only: true, ..RangeRequest::default() };
    TxnRequest {
        compare: comparison(key, request).into_iter().collect(),
        success: vec![step.into()],
        failure: vec![Request::Range(found).into()],
    }
}

/// What must hold of the key; nothing for a put that does not care.
fn comparison(key: Bytes, request: &WriteRequest) -> Option<Compare> {
    let (result, modified) = match request.expected {
        Expected::Modified(revision) => (Comparison::Equal, number(revision)),
        Expected::Absent => (Comparison::Equal, 0),
        Expected::Any if request.value.is_none() => (Comparison::Greater, 0),
        Expected::Any => return None,
    };
    Some(Compare {
        result: result.into(),
        target: Target::ModRevision.into(),
        key,
        operand: Some(Operand::ModRevision(modified)),
    })
}

/// What a transaction has done.
fn outcome(
    keys: &Keys,
    request: &WriteRequest,
    answer: TxnResponse,
    known: Option<Entry>,
) -> Result<Written, StoreError> {
    let found = answer.responses.into_iter().find_map(|op| match op.response? {
        Response::Put(put) => put.prev_kv,
        Response::DeleteRange(deleted) => deleted.prev_kvs.into_iter().next(),
        Response::Range(range) => range.kvs.into_iter().next(),
    });
    if answer.succeeded {
        let revision = revision(answer.header.unwrap_or_default().revision);
        let previous = known.or_else(|| found.and_then(|kv| keys.entry(kv)));
        return Ok(Written { revision, previous });
    }
    let key = request.key.clone();
    let expected = request.expected;
    let found = found.map(|kv: KeyValue| revision(kv.mod_revision));
    Err(StoreError::Conflict { key, expected, found })
}
