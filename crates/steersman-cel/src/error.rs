//! Why an expression has no value.

use std::borrow::Cow;

/// Why an evaluation ended without a value. Prints cel-go's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind of end it was.
    pub kind: ErrorKind,
    message: Cow<'static, str>,
}

/// How an evaluation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The expression has no value for this data; `&&` and `||` may absorb it.
    Evaluation,
    /// It cost more than it was allowed to.
    CostLimit,
    /// Whoever asked for it no longer wants it.
    Cancelled,
}

impl Error {
    /// The expression has no value, for a reason.
    pub fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: ErrorKind::Evaluation, message: message.into() }
    }

    pub(crate) fn cost_limit() -> Self {
        let message = Cow::Borrowed("operation cancelled: actual cost limit exceeded");
        Self { kind: ErrorKind::CostLimit, message }
    }

    pub(crate) fn cancelled() -> Self {
        Self { kind: ErrorKind::Cancelled, message: Cow::Borrowed("operation interrupted") }
    }

    pub(crate) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }

    /// Whether the evaluation must end, whatever stands around the failed part.
    pub(crate) fn is_final(&self) -> bool {
        self.kind != ErrorKind::Evaluation
    }
}
