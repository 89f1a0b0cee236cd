//! What an election and a shard group must be told before they can begin.

use std::time::Duration;

use super::JITTER;

/// The three durations of a Lease and its holder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// How long others wait after they last saw a renewal.
    pub(crate) lease_duration: Duration,
    /// How long after its last renewal the holder goes on.
    pub(crate) renew_deadline: Duration,
    /// How often the Lease is renewed, or tried for.
    pub(crate) retry_period: Duration,
}

/// Why a [`LeaderElection`](super::LeaderElection) or a [`Sharding`](crate::shard::Sharding)
/// cannot work as it was set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSettings {
    /// The durations make no sense together.
    #[error(
        "a lease needs lease duration > renew deadline > {JITTER} × retry period > 0, and a \
         second at least; they are {lease_duration:?}, {renew_deadline:?} and {retry_period:?}"
    )]
    Timing {
        /// How long others wait.
        lease_duration: Duration,
        /// How long the holder goes on.
        renew_deadline: Duration,
        /// How often it renews.
        retry_period: Duration,
    },
    /// The Leases of a group of shards cannot have that in their names or labels.
    #[error("shard leases cannot be called after the {what} {value:?}: {why}")]
    Unfit {
        /// What it is: `group` or `controller`.
        what: &'static str,
        /// What it is called.
        value: String,
        /// What the API server has against it.
        why: String,
    },
    /// Something has no name.
    #[error("lease without {0}: it is empty")]
    Empty(
        /// What has none: `namespace`, `name`, `group` or `identity`.
        &'static str,
    ),
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl Timing {
    /// How long a request for the Lease may take.
    pub(crate) fn request_timeout(self) -> Duration {
        (self.renew_deadline / 2).max(Duration::from_secs(1)).min(self.renew_deadline)
    }

    pub(crate) fn check(self) -> Result<(), InvalidSettings> {
        let Self { lease_duration, renew_deadline, retry_period } = self;
        let sensible = lease_duration > renew_deadline
            && renew_deadline > retry_period.mul_f64(JITTER)
            && !retry_period.is_zero()
            && lease_duration >= Duration::from_secs(1);
        if sensible {
            return Ok(());
        }
        Err(InvalidSettings::Timing { lease_duration, renew_deadline, retry_period })
    }
}

/// Refuses what has no name. A Lease without one cannot be written, and a holder without one
/// cannot be told from nobody.
pub(crate) fn check_names(names: &[(&'static str, &str)]) -> Result<(), InvalidSettings> {
    match names.iter().find(|(_, name)| name.is_empty()) {
        Some((what, _)) => Err(InvalidSettings::Empty(what)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_must_make_sense_together() {
        let seconds = Duration::from_secs;
        let timing = Timing::default();
        assert_eq!(timing.check(), Ok(()));
        for wrong in [
            Timing { lease_duration: seconds(10), ..timing },
            Timing { renew_deadline: seconds(2), ..timing },
            Timing { retry_period: Duration::ZERO, ..timing },
            Timing {
                lease_duration: Duration::from_millis(900),
                renew_deadline: Duration::from_millis(600),
                retry_period: Duration::from_millis(100),
            },
        ] {
            assert!(matches!(wrong.check(), Err(InvalidSettings::Timing { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn what_has_no_name_is_named() {
        assert_eq!(check_names(&[("name", "demo"), ("identity", "a")]), Ok(()));
        let nobody = check_names(&[("name", "demo"), ("identity", "")]);
        assert_eq!(nobody, Err(InvalidSettings::Empty("identity")));
    }
}
