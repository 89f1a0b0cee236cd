//! What a candidate knows of the Lease and may do about it: decisions without I/O.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

/// One who competes for a Lease.
#[derive(Debug)]
pub(super) struct Candidate {
    namespace: String,
    name: String,
    identity: String,
    lease_duration: Duration,
    /// What the Lease is labelled with while it is held by this one.
    labels: BTreeMap<String, String>,
    observed: Option<Observed>,
}

/// The Lease as it was last seen.
#[derive(Debug)]
struct Observed {
    lease: Lease,
    /// When its record was first seen as it is. Never before its holder wrote it.
    since: Instant,
}

/// What to do about the Lease that was read.
#[derive(Debug, PartialEq)]
pub(super) enum Decision {
    /// There is none: make it.
    Create(Lease),
    /// It is ours already, or free: write this, if nobody changed it since.
    Replace(Lease),
    /// Somebody else holds it.
    Held,
}

/// The present, on both clocks.
#[derive(Clone, Debug)]
pub(super) struct Now {
    /// What decides.
    pub(super) instant: Instant,
    /// What is written for people to read.
    pub(super) timestamp: MicroTime,
}

impl Candidate {
    pub(super) fn new(namespace: &str, name: &str, identity: &str, duration: Duration) -> Self {
        let namespace = namespace.to_owned();
        let name = name.to_owned();
        let identity = identity.to_owned();
        let labels = BTreeMap::new();
        Self { namespace, name, identity, lease_duration: duration, labels, observed: None }
    }

    /// The same, who labels the Lease.
    pub(super) fn labelling(self, labels: &BTreeMap<String, String>) -> Self {
        Self { labels: labels.clone(), ..self }
    }

    /// The Lease as it was last seen.
    pub(super) fn lease(&self) -> Option<&Lease> {
        self.observed.as_ref().map(|observed| &observed.lease)
    }

    /// Who holds the Lease, as far as is known.
    pub(super) fn holder(&self) -> Option<&str> {
        let spec = self.observed.as_ref()?.spec()?;
        spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// Whether the Lease is ours, as far as is known.
    pub(super) fn holds(&self) -> bool {
        self.holder() == Some(&self.identity)
    }

    /// How often the Lease has changed hands.
    pub(super) fn transitions(&self) -> i32 {
        let spec = self.observed.as_ref().and_then(Observed::spec);
        spec.and_then(|spec| spec.lease_transitions).unwrap_or(0)
    }

    /// The holder's next renewal, on the assumption that the Lease is as it was last seen.
    pub(super) fn renewal(&self, now: &Now) -> Option<Lease> {
        let observed = self.observed.as_ref().filter(|_| self.holds())?;
        observed.is_valid(now.instant).then(|| self.claim(observed.lease.clone(), now))
    }

    /// Decides what to do about the Lease as it was read just now.
    pub(super) fn decide(&mut self, found: Option<Lease>, now: &Now) -> Decision {
        let Some(found) = found else { return self.absent(now) };
        self.observe(found, now.instant);
        let held = self.holder().is_some() && !self.holds();
        match &self.observed {
            Some(observed) if !(held && observed.is_valid(now.instant)) => {
                Decision::Replace(self.claim(observed.lease.clone(), now))
            }
            _ => Decision::Held,
        }
    }

    /// Notes the Lease as it was read, or as the server says that it was written.
    pub(super) fn observe(&mut self, lease: Lease, now: Instant) {
        let known = self.observed.as_ref().filter(|observed| observed.lease.spec == lease.spec);
        let since = known.map_or(now, |observed| observed.since);
        self.observed = Some(Observed { lease, since });
    }

    /// The Lease as its holder gives it back: free for everybody at once.
    pub(super) fn released(&self, mut lease: Lease, now: &Now) -> Lease {
        let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
        lease.spec = Some(LeaseSpec {
            lease_duration_seconds: Some(1),
            lease_transitions: transitions,
            renew_time: Some(now.timestamp.clone()),
            acquire_time: Some(now.timestamp.clone()),
            ..LeaseSpec::default()
        });
        lease
    }

    /// Somebody deleted the Lease. Its last known holder does not know that yet.
    fn absent(&mut self, now: &Now) -> Decision {
        let held = self.holder().is_some() && !self.holds();
        if held && self.observed.as_ref().is_some_and(|observed| observed.is_valid(now.instant)) {
            return Decision::Held;
        }
        let mut lease = Lease::default();
        lease.metadata.namespace = Some(self.namespace.clone());
        lease.metadata.name = Some(self.name.clone());
        lease.spec = self.observed.as_ref().and_then(Observed::spec).cloned();
        Decision::Create(self.claim(lease, now))
    }

    /// The Lease, held by us.
    fn claim(&self, mut lease: Lease, now: &Now) -> Lease {
        let before = lease.spec.take();
        let mut spec = before.clone().unwrap_or_default();
        let seconds = self.lease_duration.as_millis().div_ceil(1000);
        spec.lease_duration_seconds = Some(i32::try_from(seconds).unwrap_or(i32::MAX));
        spec.renew_time = Some(now.timestamp.clone());
        if spec.holder_identity.as_ref() != Some(&self.identity) {
            spec.holder_identity = Some(self.identity.clone());
            spec.acquire_time = Some(now.timestamp.clone());
            spec.lease_transitions = Some(
                before.map_or(0, |spec| spec.lease_transitions.unwrap_or(0).saturating_add(1)),
            );
        }
        lease.spec = Some(spec);
        if !self.labels.is_empty() {
            let labels = self.labels.clone();
            lease.metadata.labels.get_or_insert_default().extend(labels);
        }
        lease
    }
}

impl Observed {
    fn spec(&self) -> Option<&LeaseSpec> {
        self.lease.spec.as_ref()
    }

    /// Whether its holder's time may not be over: it is the time that the holder wrote into it,
    /// counted from when this candidate first saw that.
    fn is_valid(&self, now: Instant) -> bool {
        let seconds = self.spec().and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
        let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        now < self.since + duration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(identity: &str) -> Candidate {
        Candidate::new("kube-system", "demo", identity, Duration::from_secs(15))
    }

    /// So many seconds after the start, with a wall clock that may be wrong.
    fn at(start: Instant, seconds: u64, timestamp: &str) -> Now {
        let timestamp = MicroTime(timestamp.parse().unwrap());
        Now { instant: start + Duration::from_secs(seconds), timestamp }
    }

    fn noon(start: Instant, seconds: u64) -> Now {
        at(start, seconds, "2030-01-01T12:00:00Z")
    }

    /// The Lease as the other holds it.
    fn held_by(identity: &str, start: Instant, timestamp: &str) -> Lease {
        match candidate(identity).decide(None, &at(start, 0, timestamp)) {
            Decision::Create(lease) => lease,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_first_candidate_creates_the_lease_as_its_holder() {
        let start = Instant::now();
        let spec = held_by("a", start, "2030-01-01T12:00:00Z").spec.unwrap();
        assert_eq!(spec.holder_identity.as_deref(), Some("a"));
        assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
        assert_eq!(spec.acquire_time, spec.renew_time);
    }

    #[tokio::test]
    async fn anothers_lease_is_taken_only_after_its_duration_without_a_change() {
        let start = Instant::now();
        let mut b = candidate("b");
        let lease = held_by("a", start, "2030-01-01T12:00:00Z");
        assert_eq!(b.decide(Some(lease.clone()), &noon(start, 5)), Decision::Held);
        assert_eq!(b.decide(Some(lease.clone()), &noon(start, 19)), Decision::Held);
        let mut renewed = lease.clone();
        renewed.spec.as_mut().unwrap().renew_time = Some(noon(start, 0).timestamp);
        renewed.spec.as_mut().unwrap().lease_transitions = Some(7);
        assert_eq!(b.decide(Some(renewed.clone()), &noon(start, 19)), Decision::Held);
        assert_eq!(b.decide(Some(renewed.clone()), &noon(start, 33)), Decision::Held);
        let Decision::Replace(taken) = b.decide(Some(renewed), &noon(start, 34)) else {
            panic!("it has expired");
        };
        let spec = taken.spec.unwrap();
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("b"), Some(8)));
    }

    #[tokio::test]
    async fn clocks_that_are_wrong_change_nothing() {
        for timestamp in ["1999-01-01T00:00:00Z", "2099-01-01T00:00:00Z"] {
            let start = Instant::now();
            let mut b = candidate("b");
            let lease = held_by("a", start, timestamp);
            assert_eq!(b.decide(Some(lease.clone()), &noon(start, 0)), Decision::Held);
            assert_eq!(b.decide(Some(lease.clone()), &noon(start, 14)), Decision::Held);
            assert!(matches!(b.decide(Some(lease), &noon(start, 15)), Decision::Replace(_)));
        }
    }

    #[tokio::test]
    async fn a_lease_that_was_given_back_is_free_at_once() {
        let start = Instant::now();
        let a = candidate("a");
        let lease = held_by("a", start, "2030-01-01T12:00:00Z");
        let released = a.released(lease, &noon(start, 1));
        let mut b = candidate("b");
        let Decision::Replace(taken) = b.decide(Some(released), &noon(start, 1)) else {
            panic!("it is free");
        };
        assert_eq!(taken.spec.unwrap().lease_transitions, Some(1));
    }

    #[tokio::test]
    async fn a_deleted_lease_is_not_taken_while_its_holder_may_act() {
        let start = Instant::now();
        let mut b = candidate("b");
        b.decide(Some(held_by("a", start, "2030-01-01T12:00:00Z")), &noon(start, 0));
        assert_eq!(b.decide(None, &noon(start, 14)), Decision::Held);
        let Decision::Create(lease) = b.decide(None, &noon(start, 15)) else {
            panic!("it has expired");
        };
        assert_eq!(lease.spec.unwrap().lease_transitions, Some(1), "epochs go on");
    }

    fn labels(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[tokio::test]
    async fn who_holds_the_lease_labels_it_and_leaves_other_labels_alone() {
        let start = Instant::now();
        let zone = labels(&[("zone", "b")]);
        let mut b = candidate("b").labelling(&zone);
        let mut lease = held_by("a", start, "2030-01-01T12:00:00Z");
        lease.metadata.labels = Some(labels(&[("zone", "a"), ("team", "x")]));
        b.decide(Some(lease.clone()), &noon(start, 0));
        let Decision::Replace(taken) = b.decide(Some(lease), &noon(start, 15)) else {
            panic!("it has expired");
        };
        assert_eq!(taken.metadata.labels, Some(labels(&[("zone", "b"), ("team", "x")])));
        let mut first = candidate("b").labelling(&zone);
        let Decision::Create(made) = first.decide(None, &noon(start, 0)) else {
            panic!("there is none");
        };
        assert_eq!(made.metadata.labels, Some(zone));
    }

    #[tokio::test]
    async fn a_renewal_keeps_what_belongs_to_the_term() {
        let start = Instant::now();
        let mut a = candidate("a");
        let lease = held_by("a", start, "2030-01-01T12:00:00Z");
        a.observe(lease.clone(), start);
        let renewed = a.renewal(&at(start, 2, "2030-01-01T12:00:02Z")).unwrap();
        let old = lease.spec.unwrap();
        let new = renewed.spec.unwrap();
        assert_eq!((&old.acquire_time, old.lease_transitions), (&new.acquire_time, Some(0)));
        assert_ne!(old.renew_time, new.renew_time);
        assert_eq!(a.renewal(&noon(start, 15)), None, "its time is over: look first");
    }
}
