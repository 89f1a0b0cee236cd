//! Reads everything the store has in etcd, at one revision, page by page.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::client::{Client, RANGE};
use super::error::Failure;
use super::keys::{Keys, number, revision};
use super::wire::{RangeRequest, RangeResponse, WatchCreateRequest, WatchRequest};
use crate::{Entry, Revision};

/// How long one page may take.
const PAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// How large a page should be. Large answers hold etcd up, small ones cost round trips.
const PAGE_BYTES: usize = 4 * 1024 * 1024;
/// Keys of the first page, when nothing is known of their size, and of any.
const PAGE_KEYS: (usize, usize) = (200, 20_000);

/// Everything at a revision, ordered by key.
pub(super) async fn load(
    client: &Client,
    keys: &Keys,
    at: Revision,
) -> Result<Vec<Entry>, Failure> {
    let range = keys.range();
    let mut start = range.key;
    let mut limit = PAGE_KEYS.0;
    let mut entries = Vec::new();
    loop {
        let request = RangeRequest {
            key: start.clone(),
            range_end: range.end.clone(),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            revision: number(at),
            ..RangeRequest::default()
        };
        let deadline = Instant::now() + PAGE_TIMEOUT;
        let page: RangeResponse = client.call(RANGE, &request, deadline).await?;
        limit = next_limit(limit, &page);
        let last = page.kvs.last().map(|kv| [&kv.key[..], b"\0"].concat());
        entries.extend(page.kvs.into_iter().filter_map(|kv| keys.entry(kv)));
        match last {
            Some(last) if page.more => start = last.into(),
            _ => return Ok(entries),
        }
    }
}

/// How many keys like those of this page make a good one. Grows slowly: what follows may be larger.
fn next_limit(limit: usize, page: &RangeResponse) -> usize {
    let bytes: usize = page.kvs.iter().map(|kv| kv.key.len() + kv.value.len()).sum();
    let one = (bytes / page.kvs.len().max(1)).max(1);
    (PAGE_BYTES / one).clamp(10, PAGE_KEYS.1).min(limit * 4)
}

/// The oldest revision that can be read and is at most `history` before `current`.
pub(super) async fn oldest(
    client: &Client,
    current: Revision,
    history: u64,
) -> Result<Revision, Failure> {
    let wanted = Revision(current.0.saturating_sub(history).max(1));
    let request = RangeRequest {
        key: Bytes::from_static(b"\0"),
        revision: number(wanted),
        count_only: true,
        ..RangeRequest::default()
    };
    let deadline = Instant::now() + PAGE_TIMEOUT;
    match client.call::<_, RangeResponse>(RANGE, &request, deadline).await {
        Ok(_) => Ok(wanted),
        Err(Failure::Compacted) => compacted(client, deadline).await,
        Err(failure) => Err(failure),
    }
}

/// The revision to which etcd is compacted, if it is: a watch from the beginning is told.
async fn compacted(client: &Client, deadline: Instant) -> Result<Revision, Failure> {
    let key = Bytes::from_static(b"\0");
    let create = WatchCreateRequest { key, start_revision: 1, ..WatchCreateRequest::default() };
    let (_, watch) = client.watch(WatchRequest { create: Some(create) }, deadline).await;
    let mut watch = watch?;
    let told = async {
        loop {
            let answer = watch.next().await?;
            if answer.compact_revision > 0 {
                return Ok(revision(answer.compact_revision));
            }
            if answer.canceled {
                return Err(Failure::NotDone(answer.cancel_reason));
            }
        }
    };
    let late = || Failure::NotDone("etcd does not say what it has compacted".into());
    tokio::time::timeout_at(deadline, told).await.map_err(|_| late())?
}

#[cfg(test)]
mod tests {
    use super::super::wire::KeyValue;
    use super::*;

    fn page(keys: usize, size: usize) -> RangeResponse {
        let kv = KeyValue { value: vec![0; size], ..KeyValue::default() };
        RangeResponse { kvs: vec![kv; keys], ..RangeResponse::default() }
    }

    #[test]
    fn pages_of_large_values_have_few_keys_and_none_is_empty() {
        assert_eq!(next_limit(200, &page(200, 100)), 800);
        assert_eq!(next_limit(200, &page(200, 1_000_000)), 10);
        assert_eq!(next_limit(200, &page(0, 0)), 800);
        assert_eq!(next_limit(20_000, &page(1, 0)), 20_000);
    }
}
