//! A watch of etcd: one gRPC stream each.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt};
use futures::stream;
use http::uri::PathAndQuery;
use steersman_store::{Event, Revision, StoreError, Watch, WatchRequest};
use tonic::Streaming;
use tonic::client::Grpc;
use tonic::transport::Channel;

use super::messages::{self, WatchCreateRequest, WatchResponse};
use super::{behind, entry, failed, revision};

struct Changes {
    answers: Streaming<WatchResponse>,
    /// Answers that came before it was said that the watch is there.
    early: VecDeque<WatchResponse>,
    delivered: Revision,
}

/// Returns once etcd says that the watch is there.
pub(super) async fn start(
    mut grpc: Grpc<Channel>,
    request: &WatchRequest,
) -> Result<Box<dyn Watch>, StoreError> {
    let create = messages::WatchRequest {
        create_request: Some(WatchCreateRequest {
            key: request.prefix.clone().into(),
            range_end: behind(&request.prefix),
            start_revision: request.after.0.cast_signed() + 1,
        }),
    };
    // The stream stays open, which keeps the watch alive.
    let questions = stream::iter([create]).chain(stream::pending());
    grpc.ready().await.map_err(failed)?;
    let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
    let codec = tonic_prost::ProstCodec::default();
    let answers = grpc.streaming(tonic::Request::new(questions), path, codec).await;
    let answers = answers.map_err(failed)?.into_inner();
    let mut changes = Changes { answers, early: VecDeque::new(), delivered: request.after };
    loop {
        let answer = changes.hear().await?;
        if answer.created {
            return Ok(Box::new(changes));
        }
        changes.early.push_back(answer);
    }
}

impl Changes {
    async fn hear(&mut self) -> Result<WatchResponse, StoreError> {
        let answer = self.answers.message().await.map_err(failed)?;
        let answer = answer.ok_or_else(|| failed("the watch ended"))?;
        if answer.canceled { Err(failed("the watch was cancelled")) } else { Ok(answer) }
    }
}

impl Watch for Changes {
    fn next(&mut self) -> BoxFuture<'_, Result<Vec<Arc<Event>>, StoreError>> {
        async move {
            loop {
                let answer = match self.early.pop_front() {
                    Some(answer) => answer,
                    None => self.hear().await?,
                };
                self.delivered = revision(answer.header);
                if !answer.events.is_empty() {
                    return answer.events.into_iter().map(event).collect();
                }
            }
        }
        .boxed()
    }

    fn delivered(&mut self) -> Revision {
        self.delivered
    }
}

fn event(event: messages::Event) -> Result<Arc<Event>, StoreError> {
    let current = entry(event.kv.unwrap_or_default())?;
    let revision = current.modified;
    let key = Arc::clone(&current.key);
    Ok(Arc::new(Event { revision, key, current: Some(current), previous: None }))
}
