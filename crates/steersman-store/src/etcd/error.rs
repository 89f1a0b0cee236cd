//! What went wrong with a request to etcd, and what that means for the caller.
//!
//! The one question that matters for a write is whether it may have happened. etcd's errors are
//! known by their texts: several share a gRPC code and differ in just that.

use tonic::{Code, Status};

use crate::StoreError;

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It was certainly not done; another member, or a later attempt, may do it.
    NotDone(String),
    /// It may or may not have been done.
    Lost(String),
    /// The token is no longer known; it was not done.
    TokenExpired(String),
    /// The lease of a put is gone; it was not done.
    LeaseGone,
    /// The revision asked for is no longer there.
    Compacted,
    /// The revision asked for has not come yet.
    Future,
    /// There is no room; it was not done.
    Full(String),
    /// It would be refused again.
    Refused(String),
}

/// A part of a text, and what the text says.
type Text = (&'static str, fn(String) -> Failure);

/// etcd's texts. The first that matches counts.
const TEXTS: [Text; 21] = [
    ("required revision has been compacted", |_| Failure::Compacted),
    ("is a future revision", |_| Failure::Future),
    ("requested lease not found", |_| Failure::LeaseGone),
    ("database space exceeded", |text| {
        let what = "compact its history, defragment its members and disarm the alarm, or raise \
                    --quota-backend-bytes";
        Failure::Full(format!("etcd has reached its quota ({text}): {what}"))
    }),
    ("request is too large", Failure::Refused),
    ("message larger than max", Failure::Refused),
    ("invalid auth token", Failure::TokenExpired),
    ("revision of auth store is old", Failure::TokenExpired),
    ("user name is empty", |text| {
        Failure::Refused(format!("etcd wants a user and a password ({text})"))
    }),
    ("authentication failed", |text| {
        Failure::Refused(format!("etcd does not accept the user or the password ({text})"))
    }),
    ("permission denied", |text| {
        Failure::Refused(format!(
            "etcd's user may not do this ({text}): it needs to read and write all keys"
        ))
    }),
    // Answered before anything is proposed.
    ("too many requests", Failure::NotDone),
    ("no leader", Failure::NotDone),
    ("not capable", Failure::NotDone),
    ("unhealthy cluster", Failure::NotDone),
    ("raft proposal dropped", Failure::NotDone),
    // Answered while a proposal may be on its way.
    ("request timed out", Failure::Lost),
    ("leader changed", Failure::Lost),
    ("server stopped", Failure::Lost),
    ("context deadline exceeded", Failure::Lost),
    ("context canceled", Failure::Lost),
];

impl Failure {
    /// What an answer of etcd, or the lack of one, means.
    pub(super) fn of(status: &Status) -> Self {
        let text = describe(status);
        if never_sent(status) {
            return Self::NotDone(text);
        }
        let known = TEXTS.iter().find(|(part, _)| status.message().contains(part));
        if let Some((_, failure)) = known {
            return failure(text);
        }
        match status.code() {
            Code::InvalidArgument
            | Code::PermissionDenied
            | Code::Unauthenticated
            | Code::FailedPrecondition
            | Code::Unimplemented
            | Code::NotFound => Self::Refused(text),
            _ => Self::Lost(text),
        }
    }
}

/// The error of a write; that of a read is never [`StoreError::Unknown`].
impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotDone(reason) | Failure::TokenExpired(reason) => {
                Self::Unavailable { reason }
            }
            Failure::Lost(reason) => Self::Unknown { reason },
            Failure::Full(reason) => Self::Full { reason },
            Failure::Refused(reason) => Self::Refused { reason },
            Failure::LeaseGone => {
                Self::Unavailable { reason: "leases vanish as soon as they are granted".into() }
            }
            Failure::Compacted => Self::Refused { reason: "the revision is compacted".into() },
            Failure::Future => Self::Refused { reason: "the revision is in the future".into() },
        }
    }
}

/// The error of a request that changes nothing, or nothing more when it is repeated.
pub(super) fn of_read(failure: Failure) -> StoreError {
    match failure.into() {
        StoreError::Unknown { reason } => StoreError::Unavailable { reason },
        error => error,
    }
}

/// Whether the request never left this process: there was no connection, or it ended before the
/// request's turn came.
fn never_sent(status: &Status) -> bool {
    causes(status).any(|cause| {
        let canceled = cause.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_canceled);
        canceled || cause.is::<tonic::ConnectError>()
    })
}

/// The message, and for errors of the transport what lies beneath.
fn describe(status: &Status) -> String {
    match causes(status).last() {
        Some(last) => format!("{}: {last}", status.message()),
        None if status.message().is_empty() => status.code().to_string(),
        None => status.message().to_owned(),
    }
}

fn causes(status: &Status) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(std::error::Error::source(status), |error| error.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: Code, text: &str) -> Failure {
        Failure::of(&Status::new(code, text))
    }

    #[test]
    fn only_what_was_certainly_not_proposed_counts_as_not_done() {
        let not_done = |text| matches!(of(Code::Unavailable, text), Failure::NotDone(_));
        assert!(not_done("etcdserver: no leader"));
        assert!(not_done("etcdserver: too many requests"));
        assert!(!not_done("etcdserver: request timed out"));
        assert!(!not_done(
            "etcdserver: request timed out, possibly due to previous leader failure"
        ));
        assert!(!not_done("etcdserver: leader changed"));
        assert!(!not_done("error reading a body from connection"));
    }

    #[test]
    fn a_connection_that_was_refused_means_that_nothing_was_sent() {
        let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let status = Status::from_error(Box::new(tonic::ConnectError(refused.into())));
        let Failure::NotDone(text) = Failure::of(&status) else { panic!("{status:?}") };
        assert!(text.contains("connection refused"), "{text}");
    }

    #[test]
    fn a_full_etcd_says_what_to_do() {
        let full = of(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded");
        let error = StoreError::from(full).to_string();
        assert!(error.contains("the store is full") && error.contains("defragment"), "{error}");
    }

    #[test]
    fn an_answer_that_a_read_did_not_get_makes_the_store_unavailable() {
        let lost = of(Code::Unknown, "h2 protocol error");
        assert!(matches!(of_read(lost.clone()), StoreError::Unavailable { .. }));
        assert!(matches!(lost.into(), StoreError::Unknown { .. }));
    }
}
