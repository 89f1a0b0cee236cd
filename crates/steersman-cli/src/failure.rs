//! What went wrong, in one line, with what to do about it.

use std::error::Error;

use steersman_cluster::StartError;
use steersman_cluster::disk::OpenError;

/// An error and what lies behind it.
pub(crate) fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let reason = error.to_string();
        // Some say what is behind them by themselves.
        if !text.ends_with(&reason) {
            text = format!("{text}: {reason}");
        }
        source = error.source();
    }
    text
}

/// Why a cluster could not be started.
pub(crate) fn of_start(error: &StartError) -> String {
    match error {
        StartError::Disk(error @ OpenError::Locked { .. }) => {
            format!("{error} (--data-dir DIR; --memory starts a cluster that is kept nowhere)")
        }
        StartError::Disk(error) => told(error),
        error => told(error),
    }
}
