//! etcd itself: a process of its own ([`process`]), asked over gRPC with as little in between as
//! possible, so that it is etcd that is measured.
//!
//! [`Client`] is a [`Store`], so that everything measures it as it measures ours. It gives etcd
//! the cheapest request for each operation: a put, not a transaction, and no previous value.

mod messages;
mod process;
mod watch;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt};
use http::uri::PathAndQuery;
use prost::Message;
use steersman_store::{
    Entry, RangeRequest, RangeResponse, Revision, Store, StoreError, Watch, WatchRequest,
    WriteRequest, Written,
};
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};

use self::messages::{HeaderResponse, KeyValue};
pub(crate) use self::process::{Process, version};

/// Connections that the requests take in turns. One is a little slower than a few, more are not
/// faster.
const CONNECTIONS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(60);

/// A client of one etcd.
pub(crate) struct Client {
    channels: Vec<Channel>,
    turn: AtomicUsize,
    /// Whether reads are answered from what the member has, without asking for agreement.
    serializable: bool,
}

impl Client {
    pub(crate) async fn connect(endpoint: &str, serializable: bool) -> Result<Self, String> {
        let endpoint =
            Endpoint::from_shared(endpoint.to_owned()).map_err(|error| error.to_string())?;
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            let connected = endpoint.clone().tcp_nodelay(true).connect().await;
            channels.push(connected.map_err(|error| error.to_string())?);
        }
        Ok(Self { channels, turn: AtomicUsize::new(0), serializable })
    }

    /// Gives space that compaction freed back to the file system.
    pub(crate) async fn defragment(&self) -> Result<(), StoreError> {
        let path = "/etcdserverpb.Maintenance/Defragment";
        let _: HeaderResponse = self.ask(path, messages::DefragmentRequest {}).await?;
        Ok(())
    }

    fn grpc(&self) -> Grpc<Channel> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % self.channels.len();
        Grpc::new(self.channels[turn].clone()).max_decoding_message_size(usize::MAX)
    }

    async fn ask<Q, A>(&self, path: &'static str, question: Q) -> Result<A, StoreError>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let mut grpc = self.grpc();
        grpc.ready().await.map_err(failed)?;
        let codec = tonic_prost::ProstCodec::default();
        let path = PathAndQuery::from_static(path);
        let answer = grpc.unary(tonic::Request::new(question), path, codec);
        let answer = tokio::time::timeout(PATIENCE, answer).await.map_err(failed)?;
        answer.map(tonic::Response::into_inner).map_err(failed)
    }

    async fn ask_range(
        &self,
        question: messages::RangeRequest,
    ) -> Result<RangeResponse, StoreError> {
        let answer: messages::RangeResponse = self.ask("/etcdserverpb.KV/Range", question).await?;
        Ok(RangeResponse {
            entries: answer.kvs.into_iter().map(entry).collect::<Result<_, _>>()?,
            revision: revision(answer.header),
            more: answer.more,
            remaining: None,
        })
    }
}

impl Store for Client {
    fn get(&self, key: &str) -> BoxFuture<'_, Result<Option<Entry>, StoreError>> {
        let question = messages::RangeRequest {
            key: Bytes::copy_from_slice(key.as_bytes()),
            serializable: self.serializable,
            ..Default::default()
        };
        self.ask_range(question).map(|answer| Ok(answer?.entries.pop())).boxed()
    }

    fn range(&self, request: RangeRequest) -> BoxFuture<'_, Result<RangeResponse, StoreError>> {
        let range_end = behind(&request.prefix);
        let question = messages::RangeRequest {
            key: request.start.unwrap_or(request.prefix).into(),
            range_end,
            limit: i64::try_from(request.limit).unwrap_or(i64::MAX),
            revision: request.at.map_or(0, |at| at.0.cast_signed()),
            serializable: self.serializable,
        };
        self.ask_range(question).boxed()
    }

    /// Puts, whatever is expected: the benchmark expects nothing.
    fn write(&self, request: WriteRequest) -> BoxFuture<'_, Result<Written, StoreError>> {
        let question = messages::PutRequest {
            key: Bytes::copy_from_slice(request.key.as_bytes()),
            value: request.value.unwrap_or_default(),
        };
        async move {
            let answer: HeaderResponse = self.ask("/etcdserverpb.KV/Put", question).await?;
            Ok(Written { revision: revision(answer.header), previous: None })
        }
        .boxed()
    }

    fn watch(&self, request: WatchRequest) -> BoxFuture<'_, Result<Box<dyn Watch>, StoreError>> {
        async move { watch::start(self.grpc(), &request).await }.boxed()
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), StoreError>> {
        let revision = revision.0.cast_signed();
        let question = messages::CompactionRequest { revision, physical: true };
        async move {
            let _: HeaderResponse = self.ask("/etcdserverpb.KV/Compact", question).await?;
            Ok(())
        }
        .boxed()
    }
}

fn entry(pair: KeyValue) -> Result<Entry, StoreError> {
    Ok(Entry {
        key: std::str::from_utf8(&pair.key).map_err(failed)?.into(),
        value: pair.value,
        created: Revision(pair.create_revision.cast_unsigned()),
        modified: Revision(pair.mod_revision.cast_unsigned()),
    })
}

fn revision(header: Option<messages::ResponseHeader>) -> Revision {
    Revision(header.map_or(0, |header| header.revision.cast_unsigned()))
}

/// The first key behind all that start with a prefix, which ends with a slash here.
fn behind(prefix: &str) -> Bytes {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end.into()
}

fn failed(error: impl std::fmt::Display) -> StoreError {
    StoreError::Unavailable { reason: error.to_string() }
}
