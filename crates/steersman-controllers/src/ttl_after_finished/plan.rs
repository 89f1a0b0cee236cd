//! When a Job has been finished for long enough.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::Job;

use crate::job::finished;

/// When a Job is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// It asks for no end, has not finished, or is being deleted already.
    Never,
    /// After this time.
    In(Duration),
    /// Now, and since this time.
    Since(Timestamp),
}

/// When a Job is deleted.
pub(super) fn expiry(job: &Job, now: Timestamp) -> Expiry {
    let asked = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished);
    let since = finished(job).and_then(|condition| condition.last_transition_time.as_ref());
    let (Some(seconds), Some(since)) = (asked, since) else { return Expiry::Never };
    if job.metadata.deletion_timestamp.is_some() {
        return Expiry::Never;
    }
    let Ok(end) = since.0.checked_add(SignedDuration::from_secs(seconds.into())) else {
        return Expiry::Never;
    };
    match Duration::try_from(end.duration_since(now)) {
        Ok(left) if !left.is_zero() => Expiry::In(left),
        _ => Expiry::Since(end),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_expires_so_long_after_it_finished() {
        let job = |ttl: Option<i32>, type_: &str| -> Job {
            let finished = json!({
                "type": type_, "status": "True", "lastTransitionTime": "2030-01-01T12:00:00Z",
            });
            let job = json!({
                "spec": {"ttlSecondsAfterFinished": ttl, "template": {}},
                "status": {"conditions": [finished]},
            });
            serde_json::from_value(job).unwrap()
        };
        let noon: Timestamp = "2030-01-01T12:00:00Z".parse().unwrap();
        let at = |seconds: i64| noon + SignedDuration::from_secs(seconds);
        let after = |job: &Job, seconds: i64| expiry(job, at(seconds));
        for type_ in ["Complete", "Failed"] {
            let job = job(Some(60), type_);
            assert_eq!(after(&job, 0), Expiry::In(Duration::from_secs(60)));
            assert_eq!(after(&job, 60), Expiry::Since(at(60)));
            assert_eq!(after(&job, 70), Expiry::Since(at(60)));
        }
        assert_eq!(after(&job(Some(0), "Complete"), 0), Expiry::Since(noon));
        assert_eq!(after(&job(None, "Complete"), 60), Expiry::Never);
        assert_eq!(after(&job(Some(60), "Suspended"), 60), Expiry::Never);
        let mut going = job(Some(0), "Complete");
        going.metadata.deletion_timestamp = Some(steersman::clock::now_time());
        assert_eq!(after(&going, 0), Expiry::Never);
    }
}
