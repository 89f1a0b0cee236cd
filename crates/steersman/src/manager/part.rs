//! A part of the manager: some work, the group it belongs to, and when it has begun.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::Result;

/// A group of work. Groups start in this order, each when the one before has begun.
///
/// They stop as controller-runtime's do: [`Others`](Self::Others), then
/// [`LeaderElected`](Self::LeaderElected), then the rest from the last to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Servers of health and metrics: they show how the rest is doing, to the end.
    Servers,
    /// Webhooks: caches may not fill where objects cannot be converted.
    Webhooks,
    /// What fills caches.
    Caches,
    /// What runs on every replica.
    Others,
    /// What runs on the elected replica only.
    LeaderElected,
}

impl Group {
    pub(super) const START_ORDER: [Self; 5] =
        [Self::Servers, Self::Webhooks, Self::Caches, Self::Others, Self::LeaderElected];

    pub(super) const STOP_ORDER: [Self; 5] =
        [Self::Others, Self::LeaderElected, Self::Caches, Self::Webhooks, Self::Servers];
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Servers => "servers",
            Self::Webhooks => "webhooks",
            Self::Caches => "caches",
            Self::Others => "others",
            Self::LeaderElected => "leader-elected",
        })
    }
}

type Run = Box<dyn FnOnce(CancellationToken, Begun) -> BoxFuture<'static, Result<()>> + Send>;

/// Some work to be run in a group.
pub(super) struct Part {
    pub(super) name: Arc<str>,
    pub(super) group: Group,
    /// It begins when this group starts: its own, or an earlier one.
    pub(super) starts_with: Group,
    pub(super) run: Run,
}

impl Part {
    /// Work that counts as begun as soon as it waits for something.
    pub(super) fn new<Fut>(
        name: impl Into<Arc<str>>,
        group: Group,
        run: impl FnOnce(CancellationToken) -> Fut + Send + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        Self::that_reports(name, group, move |token, begun| async move {
            let mut work = pin!(run(token));
            if let Some(ended) = work.as_mut().now_or_never() {
                return ended;
            }
            drop(begun);
            work.await
        })
    }

    /// Work that reports itself when it has begun.
    pub(super) fn that_reports<Fut>(
        name: impl Into<Arc<str>>,
        group: Group,
        run: impl FnOnce(CancellationToken, Begun) -> Fut + Send + 'static,
    ) -> Self
    where
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let run: Run = Box::new(move |token, begun| run(token, begun).boxed());
        Self { name: name.into(), group, starts_with: group, run }
    }

    /// The same work, begun with an earlier group than the one it stops with.
    pub(super) fn starting_with(mut self, group: Group) -> Self {
        self.starts_with = group;
        self
    }
}

/// Held by a part until it has begun: the next group waits for that.
pub(super) struct Begun(watch::Sender<usize>);

impl Begun {
    /// One more that has yet to begin.
    pub(super) fn awaited(beginning: &watch::Sender<usize>) -> Self {
        beginning.send_modify(|count| *count += 1);
        Self(beginning.clone())
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
