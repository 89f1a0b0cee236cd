//! What is asked of the committer, by stores and by what expires.

use tokio::sync::oneshot;

use crate::{Revision, StoreError, WriteRequest, Written};

/// Where a decision goes to. Whoever asked may have given up.
pub(super) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// What is asked of the committer.
pub(super) enum Request {
    Write(WriteRequest, Answer<Written>),
    /// Record that nothing before a revision is kept. The index forgets it afterwards.
    Compact(Revision, Answer<()>),
    /// Take what has been sent until now, and end.
    Close,
}
