//! Which authority signs, which one will, and which ones are still trusted: decided here, without
//! asking anybody.
//!
//! An authority is announced before it signs: it is made when a third of its predecessor's life is
//! left, is trusted from then on, and signs when everybody has had the time to hear of it. Its
//! predecessor stays trusted until it expires. So there is no moment at which a replica shows a
//! certificate that the API server does not know yet, or no longer.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;

use crate::serve::{Authority, CertificateError, Trusted, Validity};

/// How long an authority is trusted before it signs: every replica has read the Secret by then,
/// every configuration has been written, every API server has heard of that.
const ANNOUNCED: Duration = Duration::from_secs(3600);
/// So long before an authority expires its successor signs, announced for long enough or not.
const LAST: Duration = Duration::from_secs(300);
/// Clocks may differ by this much: certificates count from so long before they were made.
pub(super) const SKEW: Duration = Duration::from_secs(3600);
/// How many authorities are trusted beside those that sign. There are more only if Secrets are
/// deleted again and again.
const FORMER_MAX: usize = 8;

/// Where the authorities are in the Secret. Those that are trusted are where cert-manager's
/// injector would look for them.
const CURRENT: [&str; 2] = ["tls.crt", "tls.key"];
const SUCCESSOR: [&str; 2] = ["next.crt", "next.key"];
const TRUSTED: &str = "ca.crt";

/// What a Secret holds.
pub(super) type Data = BTreeMap<String, ByteString>;

/// The authorities that replicas share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Succession {
    /// Signs. There is one once the Secret has been written.
    pub(super) current: Option<Authority>,
    /// Will sign.
    successor: Option<Authority>,
    /// Signed before.
    former: Vec<Trusted>,
}

impl Succession {
    /// What a Secret holds, as far as it makes sense.
    pub(super) fn read(data: &Data) -> Self {
        let authority = |[certificate, key]: [&str; 2]| {
            Authority::read(&data.get(certificate)?.0, &data.get(key)?.0).ok()
        };
        let bundle = data.get(TRUSTED).map(|bundle| bundle.0.as_slice());
        let mut read = Self {
            current: authority(CURRENT),
            successor: authority(SUCCESSOR),
            former: Trusted::read_all(bundle.unwrap_or_default()),
        };
        read.tidy();
        read
    }

    /// Writes it into the data of a Secret; tells whether that changed them. What else is there
    /// stays.
    pub(super) fn write(&self, data: &mut Data) -> bool {
        let before = data.clone();
        let parts = [(CURRENT, &self.current), (SUCCESSOR, &self.successor)];
        for ([certificate, key], authority) in parts {
            let Some(authority) = authority else {
                data.remove(certificate);
                data.remove(key);
                continue;
            };
            let pem = authority.certificate.pem.clone();
            data.insert(certificate.to_owned(), ByteString(pem.into_bytes()));
            data.insert(key.to_owned(), ByteString(authority.key.clone().into_bytes()));
        }
        let bundle: String = self.trusted().map(|trusted| trusted.pem.as_str()).collect();
        data.insert(TRUSTED.to_owned(), ByteString(bundle.into_bytes()));
        *data != before
    }

    /// Whom to trust: in an order that does not depend on who asks.
    pub(super) fn trusted(&self) -> impl Iterator<Item = &Trusted> {
        self.able().map(|authority| &authority.certificate).chain(&self.former)
    }

    /// What is to be, after this was read, by a replica that remembers something. `make` makes an
    /// authority.
    pub(super) fn advanced(
        mut self,
        remembered: &Self,
        now: Timestamp,
        make: impl Fn() -> Result<Authority, CertificateError>,
    ) -> Result<Self, CertificateError> {
        self.drop_lapsed(now);
        let mut remembered = remembered.clone();
        remembered.drop_lapsed(now);
        // What this replica shows, or will show, stays trusted whatever another one wrote.
        self.former.extend(remembered.trusted().cloned());
        // Somebody deleted the Secret, or wrote nonsense: what replicas work with is put back.
        if self.current.is_none() {
            self.current = remembered.current;
            self.successor = self.successor.or(remembered.successor);
        }
        let lasts = |current: &Authority| later(now, LAST) < current.certificate.validity.until;
        let lasts = self.current.as_ref().is_some_and(lasts);
        let is_due = |successor: &mut Authority| !lasts || later(made(successor), ANNOUNCED) <= now;
        if let Some(successor) = self.successor.take_if(is_due) {
            let predecessor = self.current.replace(successor);
            self.former.extend(predecessor.map(|predecessor| predecessor.certificate));
        }
        match &self.current {
            None => self.current = Some(make()?),
            Some(current) if !current.certificate.validity.nears_its_end(now) => {}
            Some(_) if self.successor.is_some() => {}
            Some(_) => self.successor = Some(make()?),
        }
        self.tidy();
        Ok(self)
    }

    fn able(&self) -> impl Iterator<Item = &Authority> {
        self.current.iter().chain(&self.successor)
    }

    /// What has expired goes, and so does what a replica made whose clock is far ahead: nobody
    /// would trust what it signs.
    fn drop_lapsed(&mut self, now: Timestamp) {
        let can_sign = |authority: &Authority| {
            let Validity { from, until } = authority.certificate.validity;
            from <= later(now, SKEW) && now < until
        };
        self.current.take_if(|authority| !can_sign(authority));
        self.successor.take_if(|authority| !can_sign(authority));
        self.former.retain(|former| !is_over(former, now));
    }

    /// Leaves each former authority there once, the latest first.
    fn tidy(&mut self) {
        let mut former = std::mem::take(&mut self.former);
        former.retain(|old| self.able().all(|authority| authority.certificate != *old));
        self.former = tidied(former);
    }
}

/// Each once, the latest first, and not too many.
pub(super) fn tidied(trusted: Vec<Trusted>) -> Vec<Trusted> {
    let mut trusted = ordered(trusted);
    trusted.truncate(FORMER_MAX);
    trusted
}

/// Each once, the latest first.
pub(super) fn ordered(mut trusted: Vec<Trusted>) -> Vec<Trusted> {
    let order = |it: &Trusted| (std::cmp::Reverse(it.validity.from), it.pem.clone());
    trusted.sort_by_cached_key(order);
    trusted.dedup();
    trusted
}

/// Whether nobody trusts it any more, by whatever clock. Until then it stays: otherwise replicas
/// whose clocks differ would take it away and put it back in turns.
pub(super) fn is_over(trusted: &Trusted, now: Timestamp) -> bool {
    later(trusted.validity.until, SKEW) <= now
}

/// From now on, for a time.
pub(super) fn lasting(now: Timestamp, time: Duration) -> Validity {
    Validity { from: now.checked_sub(SKEW).unwrap_or(now), until: later(now, time) }
}

fn made(authority: &Authority) -> Timestamp {
    later(authority.certificate.validity.from, SKEW)
}

/// So much later, or at the end of time: a certificate may say anything.
fn later(moment: Timestamp, time: Duration) -> Timestamp {
    moment.checked_add(time).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn day(number: u32) -> Timestamp {
        "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + DAY * number
    }

    /// What follows on a day, in a cluster where authorities last for 90 days.
    fn on(stored: &Succession, remembered: &Succession, now: Timestamp) -> Succession {
        let make = || Authority::make("ca", lasting(now, DAY * 90));
        stored.clone().advanced(remembered, now, make).unwrap()
    }

    fn nothing() -> Succession {
        Succession::default()
    }

    fn signer(succession: &Succession) -> &Trusted {
        &succession.current.as_ref().unwrap().certificate
    }

    #[test]
    fn a_successor_is_trusted_before_it_signs_and_its_predecessor_afterwards() {
        let first = on(&nothing(), &nothing(), day(0));
        assert_eq!(on(&first, &first, day(50)), first, "nothing to do");
        let announced = on(&first, &first, day(61));
        assert_eq!(signer(&announced), signer(&first));
        assert_eq!(announced.trusted().count(), 2);
        let soon = day(61) + ANNOUNCED / 2;
        assert_eq!(on(&announced, &announced, soon), announced, "not everybody has heard of it");
        let second = on(&announced, &announced, day(61) + ANNOUNCED);
        assert_eq!(Some(signer(&second)), announced.trusted().nth(1));
        assert!(second.trusted().any(|trusted| trusted == signer(&first)));
        let later = on(&second, &second, day(91));
        assert_eq!(later.trusted().collect::<Vec<_>>(), [signer(&second)], "the first has expired");
    }

    #[test]
    fn what_a_replica_remembers_is_put_back_when_the_secret_is_gone() {
        let first = on(&nothing(), &nothing(), day(0));
        let announced = on(&first, &first, day(61));
        assert_eq!(on(&nothing(), &announced, day(61)), announced);
        assert_ne!(signer(&on(&nothing(), &nothing(), day(61))), signer(&first), "nobody knows it");
    }

    #[test]
    fn what_a_replica_shows_stays_trusted_whatever_another_one_wrote() {
        let shown = on(&nothing(), &nothing(), day(0));
        let written = on(&nothing(), &nothing(), day(1));
        let seen = on(&written, &shown, day(1));
        assert_eq!(signer(&seen), signer(&written));
        assert!(seen.trusted().any(|trusted| trusted == signer(&shown)));
    }

    #[test]
    fn what_a_clock_far_ahead_made_does_not_sign() {
        let future = on(&nothing(), &nothing(), day(30));
        assert_ne!(signer(&on(&future, &nothing(), day(0))), signer(&future));
        let end = Validity { from: Timestamp::MAX, until: Timestamp::MAX };
        let odd = Succession {
            successor: Some(Authority::make("ca", end).unwrap()),
            ..on(&nothing(), &nothing(), day(0))
        };
        assert_eq!(on(&odd, &nothing(), day(0)).trusted().count(), 1, "and takes nothing down");
    }

    #[test]
    fn who_was_away_for_long_begins_anew() {
        let first = on(&nothing(), &nothing(), day(0));
        let announced = on(&first, &first, day(61));
        let successor = on(&announced, &nothing(), day(100));
        assert_eq!(Some(signer(&successor)), announced.trusted().nth(1), "it has not expired");
        let late = day(90) - LAST / 2;
        let late = on(&on(&first, &nothing(), late), &nothing(), late + LAST / 4);
        assert_ne!(signer(&late), signer(&first), "there is no time to announce its successor");
        let anew = on(&announced, &nothing(), day(200));
        assert_eq!(anew.trusted().count(), 1);
        assert!(announced.trusted().all(|trusted| trusted != signer(&anew)));
    }

    #[test]
    fn a_secret_is_read_as_it_was_written_and_damage_costs_no_more_than_it_hit() {
        let first = on(&nothing(), &nothing(), day(0));
        let announced = on(&first, &first, day(61));
        let second = on(&announced, &announced, day(62));
        for succession in [first, announced.clone(), second] {
            let mut data = Data::from([("theirs".to_owned(), ByteString(vec![1]))]);
            assert!(succession.write(&mut data));
            assert!(!succession.write(&mut data), "it is written already");
            assert_eq!(Succession::read(&data), succession);
            assert_eq!(data["theirs"].0, [1]);
        }
        let mut data = Data::new();
        announced.write(&mut data);
        data.insert("tls.key".to_owned(), ByteString(b"nonsense".to_vec()));
        let read = Succession::read(&data);
        assert_eq!((&read.current, &read.successor), (&None, &announced.successor));
        assert_eq!(on(&read, &announced, day(61)), announced, "a replica knows the key");
        let restarted = on(&read, &nothing(), day(61));
        assert_eq!(Some(signer(&restarted)), announced.trusted().nth(1), "else the next one signs");
        assert!(restarted.trusted().any(|trusted| trusted == signer(&announced)));
    }
}
