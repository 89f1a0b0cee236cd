//! What a member knows of the group, and what follows from it: the protocol, without I/O.
//!
//! The rules are those of the [module above](super); the states of a claim are *target* (the
//! newest view), *publishing* (written, not yet confirmed) and *published*.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::time::Instant;

use super::lease::Sighting;
use super::ring::{Ring, View, hash_of};
use crate::object::ObjectKey;

/// How many lease durations a dead member's Lease stays before somebody deletes it.
const KEPT_DURATIONS: u32 = 3;

/// One member's knowledge of its group.
#[derive(Debug)]
pub(super) struct Membership {
    me: Arc<str>,
    peers: BTreeMap<Arc<str>, Peer>,
    /// The claim that the server has, if it has one of this term and no other.
    published: Option<View>,
    /// A claim that was sent and may or may not have arrived. Until it is confirmed, no other
    /// is made.
    publishing: Option<View>,
    /// Who lives, as far as this member knows.
    target: View,
}

/// Another member.
#[derive(Debug)]
struct Peer {
    seen: Sighting,
    /// When its Lease was first seen as it is. Never before it was written.
    since: Instant,
    /// Whether it may still act.
    alive: bool,
}

/// When a list of Leases was asked for and when it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) sent: Instant,
    pub(super) answered: Instant,
}

impl Membership {
    pub(super) fn new(me: Arc<str>) -> Self {
        let peers = BTreeMap::new();
        let target = View::default();
        Self { me, peers, published: None, publishing: None, target }
    }

    /// Whether a claim of this term is known to the server.
    pub(super) fn has_joined(&self) -> bool {
        self.published.is_some()
    }

    /// The claim to write now. `free` tells that no reconcile runs of a key that the newest view
    /// gives to others; only then can those be given up.
    pub(super) fn claim(&mut self, free: bool) -> View {
        let claim = match (&self.publishing, &self.published) {
            (Some(publishing), _) => publishing.clone(),
            (None, None) => View::default(), // who joins claims nothing before it has looked
            (None, Some(published)) if *published == self.target || !free => published.clone(),
            (None, Some(_)) => self.target.clone(),
        };
        if self.published.as_ref() != Some(&claim) {
            self.publishing = Some(claim.clone());
        }
        claim
    }

    /// The server has this claim.
    pub(super) fn confirmed(&mut self, claim: View) {
        self.publishing = None;
        self.published = Some(claim);
    }

    /// The time of the own Lease is over, or somebody deleted it.
    pub(super) fn lost(&mut self) {
        self.published = None;
        self.publishing = None;
        self.target = View::default();
    }

    /// Takes in the group's Leases. To be asked for after the last claim was confirmed.
    pub(super) fn observe(&mut self, leases: impl IntoIterator<Item = Sighting>, asked: Asked) {
        let mut present = BTreeSet::new();
        for seen in leases.into_iter().filter(|seen| seen.name != self.me) {
            present.insert(Arc::clone(&seen.name));
            let known = self.peers.get(&seen.name);
            let unchanged = known
                .filter(|peer| (&peer.seen.spec, &peer.seen.claim) == (&seen.spec, &seen.claim));
            let since = unchanged.map_or(asked.answered, |peer| peer.since);
            self.peers.insert(Arc::clone(&seen.name), Peer { seen, since, alive: true });
        }
        for peer in self.peers.values_mut() {
            // Counted to when the list was asked for: it shows nothing that was done later.
            let over = asked.sent >= peer.since + peer.seen.duration();
            peer.alive = !peer.seen.is_released() && !over;
        }
        self.peers.retain(|name, peer| peer.alive || present.contains(name));
        if self.publishing.is_none() && self.published.is_some() {
            let alive = self.peers.values().filter(|peer| peer.alive);
            let alive = alive.map(|peer| Arc::clone(&peer.seen.name));
            self.target = alive.chain([Arc::clone(&self.me)]).collect();
        }
    }

    /// Which keys this member may reconcile, by what was last observed.
    pub(super) fn rule(&self) -> Rule {
        let mut claims = BTreeMap::<&View, Vec<Arc<str>>>::new();
        for peer in self.peers.values().filter(|peer| peer.alive) {
            claims.entry(&peer.seen.claim).or_default().push(Arc::clone(&peer.seen.name));
        }
        let claims = claims.into_iter().filter(|(view, _)| !view.members().is_empty());
        Rule {
            me: Arc::clone(&self.me),
            published: Ring::new(self.published.clone().unwrap_or_default()),
            target: Ring::new(self.target.clone()),
            claims: claims.map(|(view, by)| (Ring::new(view.clone()), by)).collect(),
        }
    }

    /// Whether the newest view has yet to be published.
    pub(super) fn must_publish(&self) -> bool {
        self.published.as_ref() != Some(&self.target)
    }

    /// Whether all live members claim by the same view.
    pub(super) fn is_settled(&self) -> bool {
        let alive = self.peers.values().filter(|peer| peer.alive);
        !self.must_publish() && alive.into_iter().all(|peer| peer.seen.claim == self.target)
    }

    /// The newest view.
    pub(super) fn target(&self) -> &View {
        &self.target
    }

    /// The Leases of members that left or died long ago, with the version to be deleted.
    pub(super) fn garbage(&self, now: Instant) -> Vec<(Arc<str>, Option<String>)> {
        let old = |peer: &&Peer| now >= peer.since + peer.seen.duration() * KEPT_DURATIONS;
        let dead = self.peers.values().filter(|peer| !peer.alive).filter(old);
        dead.map(|peer| (Arc::clone(&peer.seen.name), peer.seen.version.clone())).collect()
    }

    /// That Lease has been deleted.
    pub(super) fn forget(&mut self, name: &str) {
        self.peers.remove(name);
    }
}

/// Which keys a member may reconcile.
pub(super) struct Rule {
    me: Arc<str>,
    published: Ring,
    target: Ring,
    /// What others claim: the views, and who claims by each.
    claims: Vec<(Ring, Vec<Arc<str>>)>,
}

impl Rule {
    pub(super) fn admits(&self, key: &ObjectKey) -> bool {
        let hash = hash_of(key);
        let mine = |ring: &Ring| ring.owner(hash) == Some(&self.me);
        let claimed = |(ring, by): &(Ring, Vec<Arc<str>>)| {
            ring.owner(hash).is_some_and(|owner| by.contains(owner))
        };
        mine(&self.published) && mine(&self.target) && !self.claims.iter().any(claimed)
    }

    /// Whether both admit the same keys.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let claims = |rule: &Self| -> Vec<(View, Vec<Arc<str>>)> {
            rule.claims.iter().map(|(ring, by)| (ring.view().clone(), by.clone())).collect()
        };
        self.published.view() == other.published.view()
            && self.target.view() == other.target.view()
            && claims(self) == claims(other)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::coordination::v1::LeaseSpec;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

    use super::*;

    fn view(text: &str) -> View {
        View::parse(text)
    }

    /// The Lease of a member, in its n-th renewal.
    fn lease(name: &str, claim: &str, renewal: i64) -> Sighting {
        let spec = LeaseSpec {
            holder_identity: Some(name.into()),
            lease_duration_seconds: Some(15),
            renew_time: Some(MicroTime(jiff::Timestamp::from_second(renewal).unwrap())),
            ..LeaseSpec::default()
        };
        Sighting { name: name.into(), version: None, spec, claim: view(claim) }
    }

    /// Asked and answered so many seconds after the start.
    fn asked(start: Instant, sent: u64, answered: u64) -> Asked {
        let at = |seconds| start + Duration::from_secs(seconds);
        Asked { sent: at(sent), answered: at(answered) }
    }

    /// A member that has published this claim.
    fn member(name: &str, claim: &str) -> Membership {
        let mut member = Membership::new(name.into());
        assert_eq!(member.claim(true), View::default(), "it first claims nothing");
        member.confirmed(view(claim));
        member
    }

    fn admitted(member: &Membership) -> usize {
        let rule = member.rule();
        let keys = (0..100).map(|number| ObjectKey::named(format!("key-{number}")));
        keys.filter(|key| rule.admits(key)).count()
    }

    #[tokio::test]
    async fn who_joins_waits_until_others_have_given_keys_up() {
        let start = Instant::now();
        let mut a = member("a", "a");
        let mut b = member("b", "");
        a.observe([], asked(start, 0, 0));
        assert_eq!(admitted(&a), 100);

        b.observe([lease("a", "a", 1)], asked(start, 1, 1));
        let claim = b.claim(true);
        assert_eq!(claim, view("a,b"));
        b.confirmed(claim);
        b.observe([lease("a", "a", 1)], asked(start, 1, 1));
        assert_eq!(admitted(&b), 0, "a still claims everything");

        a.observe([lease("b", "a,b", 1)], asked(start, 2, 2));
        let kept = admitted(&a);
        assert!(kept > 20 && kept < 80, "{kept}");
        assert_eq!(a.claim(false), view("a"), "a reconcile of a key that moves still runs");
        let claim = a.claim(true);
        a.confirmed(claim);
        b.observe([lease("a", "a,b", 2)], asked(start, 3, 3));
        assert_eq!(admitted(&a) + admitted(&b), 100);
        assert!(b.is_settled());
    }

    #[tokio::test]
    async fn a_member_is_dead_only_by_a_list_that_was_asked_for_after_its_time() {
        let start = Instant::now();
        let mut b = member("b", "a,b");
        b.observe([lease("a", "a,b", 1)], asked(start, 0, 1));
        // It may have been renewed while the answer was under way.
        b.observe([lease("a", "a,b", 1)], asked(start, 15, 40));
        assert_eq!(b.target(), &view("a,b"));
        b.observe([lease("a", "a,b", 1)], asked(start, 16, 16));
        assert_eq!(b.target(), &view("b"));
        assert!(admitted(&b) < 80, "what it takes over is claimed first");
        let claim = b.claim(true);
        b.confirmed(claim);
        b.observe([lease("a", "a,b", 1)], asked(start, 17, 17));
        assert_eq!(admitted(&b), 100);
        assert!(b.garbage(start + Duration::from_secs(40)).is_empty());
        assert_eq!(b.garbage(start + Duration::from_secs(46)).len(), 1);
    }

    #[tokio::test]
    async fn a_deleted_lease_counts_until_its_time_is_over_and_a_released_one_not_at_all() {
        let start = Instant::now();
        let mut c = member("c", "");
        let mut released = lease("b", "", 1);
        released.spec.holder_identity = None;
        c.observe([lease("a", "a", 1), released], asked(start, 0, 0));
        assert_eq!(c.target(), &view("a,c"));
        c.observe([], asked(start, 14, 14));
        assert_eq!(c.target(), &view("a,c"));
        c.observe([], asked(start, 15, 15));
        assert_eq!(c.target(), &view("c"));
    }

    #[tokio::test]
    async fn a_claim_whose_fate_is_unknown_is_not_changed() {
        let start = Instant::now();
        let mut a = member("a", "a");
        a.observe([lease("b", "", 1)], asked(start, 0, 0));
        assert_eq!(a.claim(true), view("a,b"));
        a.observe([lease("b", "", 1), lease("c", "", 1)], asked(start, 1, 1));
        assert_eq!(a.claim(true), view("a,b"), "it may have arrived");
        a.confirmed(view("a,b"));
        a.observe([lease("b", "", 1), lease("c", "", 1)], asked(start, 2, 2));
        assert_eq!(a.claim(true), view("a,b,c"));
    }

    #[tokio::test]
    async fn who_lost_its_lease_claims_nothing_when_it_comes_back() {
        let mut a = member("a", "a,b");
        a.lost();
        assert_eq!((a.claim(true), admitted(&a)), (View::default(), 0));
    }
}
