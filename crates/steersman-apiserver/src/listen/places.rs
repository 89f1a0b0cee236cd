//! Who may stay connected, and who goes when somebody else comes.
//!
//! A connection is a stranger's until something that it shows is good: a certificate when it begins,
//! or a token with a request. Strangers have few of the places, those of one address half of these,
//! and no user has more than half of all. Nobody waits for a place: who comes takes that of the one
//! who has asked for nothing for the longest time, a stranger's before a user's. Only where all are
//! busy is somebody turned away.
//!
//! Requests only touch the numbers of their own connection; the lock is for those who come and go.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::upgrade::Stay;

/// How many requests a stranger may have under way. What strangers may ask for is answered at once.
const STRANGERS_REQUESTS_MAX: usize = 32;

/// A stranger that has asked for nothing for so long goes.
const STRANGER_IDLE: Duration = Duration::from_secs(30);

/// A user that has asked for nothing for so long, and waits for nothing, goes; Kubernetes' time.
const USER_IDLE: Duration = Duration::from_secs(90);

/// For so long nobody is disturbed who is shaking hands.
const UNDISTURBED: Duration = Duration::from_secs(2);

/// How long a client may take to say goodbye.
const LINGER: Duration = Duration::from_millis(200);

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) all: usize,
    pub(super) strangers: usize,
    /// Strangers of one address.
    pub(super) address: usize,
    /// Connections of all users: the rest is for strangers, as whom users come.
    pub(super) users: usize,
    /// Connections of one user.
    pub(super) user: usize,
}

impl Limits {
    /// The shares of so many places.
    pub(super) fn of(all: usize) -> Self {
        let part = |share: usize| (all / share).max(1);
        Self { all, strangers: part(8), address: part(16), users: all - part(16), user: part(2) }
    }
}

/// All connections.
#[derive(Debug)]
pub(super) struct Places {
    limits: Limits,
    /// Counts those who come, and so tells who was there before whom.
    arrivals: AtomicU64,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    places: BTreeMap<u64, Arc<Place>>,
    strangers: usize,
    /// Strangers by address.
    addresses: HashMap<IpAddr, usize>,
    /// Connections by user.
    users: HashMap<Arc<str>, usize>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Place {
    all: Arc<Places>,
    number: u64,
    address: IpAddr,
    came: Instant,
    /// Whose it is; a stranger's if nobody's. Set once, under the lock of [`Places::taken`].
    user: Mutex<Option<Arc<str>>>,
    is_known: AtomicBool,
    has_shaken_hands: AtomicBool,
    /// Requests that are not answered to the end, and those of them whose answer goes on.
    under_way: AtomicUsize,
    lasting: AtomicUsize,
    /// How many requests there were.
    asked: AtomicU64,
    /// When something was asked for or answered last, in milliseconds since it came.
    touched: AtomicU64,
    /// Whether the connection is over, or has become something else than one of requests.
    has_left: AtomicBool,
    /// How many speak something else on it, who keep the place.
    stays: AtomicUsize,
    /// Who had come last when something was asked for last.
    last: AtomicU64,
    leave: CancellationToken,
}

impl Places {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, arrivals: AtomicU64::new(0), taken: Mutex::default() })
    }

    /// A place for somebody who comes from an address, if there is one.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Arc<Place>> {
        let number = self.arrivals.fetch_add(1, Relaxed) + 1;
        let mut taken = self.taken();
        let of_address = taken.addresses.get(&address).copied().unwrap_or(0);
        let from = (of_address >= self.limits.address).then_some(address);
        if from.is_some() || taken.strangers >= self.limits.strangers {
            taken.clear(|place| !place.is_known() && from.is_none_or(|from| place.address == from));
        } else if taken.places.len() >= self.limits.all {
            taken.clear(|_| true);
        }
        let of_address = taken.addresses.get(&address).copied().unwrap_or(0);
        if of_address >= self.limits.address
            || taken.strangers >= self.limits.strangers
            || taken.places.len() >= self.limits.all
        {
            return None;
        }
        let place = Arc::new(Place {
            all: Arc::clone(self),
            number,
            address,
            came: Instant::now(),
            user: Mutex::default(),
            is_known: AtomicBool::new(false),
            has_shaken_hands: AtomicBool::new(false),
            under_way: AtomicUsize::new(0),
            lasting: AtomicUsize::new(0),
            asked: AtomicU64::new(0),
            touched: AtomicU64::new(0),
            has_left: AtomicBool::new(false),
            stays: AtomicUsize::new(0),
            last: AtomicU64::new(number),
            leave: CancellationToken::new(),
        });
        taken.strangers += 1;
        *taken.addresses.entry(address).or_default() += 1;
        taken.places.insert(number, Arc::clone(&place));
        Some(place)
    }

    /// Sends some of those away who do nothing, because files are short.
    pub(super) fn make_room(&self) {
        self.taken().clear(|_| true);
    }

    /// How many are there.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.taken().places.len()
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Sends away who has been idle for the longest time, of those that may be: some at once, so
    /// that not everybody who comes has to look at all who are there.
    fn clear(&mut self, may_go: impl Fn(&Place) -> bool) {
        let ranks = self.places.values().filter(|place| may_go(place));
        let mut ranks: Vec<_> =
            ranks.filter_map(|place| Some((place.rank()?, place.number))).collect();
        ranks.sort_unstable();
        ranks.truncate(self.places.len() / 64 + 1);
        for (_, number) in ranks {
            if let Some(place) = self.remove(number) {
                place.leave.cancel();
            }
        }
    }

    /// Gives a place back, unless that was done.
    fn remove(&mut self, number: u64) -> Option<Arc<Place>> {
        let place = self.places.remove(&number)?;
        match place.user() {
            Some(user) => lower(&mut self.users, &user),
            None => {
                self.strangers -= 1;
                lower(&mut self.addresses, &place.address);
            }
        }
        Some(place)
    }
}

/// Counts one less, and forgets what is nothing.
fn lower<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Place {
    /// Notes that the client has shaken hands.
    pub(super) fn shook_hands(&self) {
        self.has_shaken_hands.store(true, Relaxed);
    }

    /// Whether it is known whose this is.
    pub(super) fn is_known(&self) -> bool {
        self.is_known.load(Relaxed)
    }

    fn user(&self) -> Option<Arc<str>> {
        self.user.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes whose this is, the first time that it shows. Who has too many connections gives up
    /// another, or this one once it is done.
    pub(super) fn know(&self, name: &str) {
        if self.is_known() {
            return;
        }
        let limits = self.all.limits;
        let mut taken = self.all.taken();
        // It may have been told to go meanwhile.
        if self.is_known() || !taken.places.contains_key(&self.number) {
            return;
        }
        let of = |taken: &Taken| taken.users.get(name).copied().unwrap_or(0);
        if of(&taken) >= limits.user {
            taken.clear(|place| place.user().is_some_and(|user| *user == *name));
        } else if taken.places.len() - taken.strangers >= limits.users {
            taken.clear(Self::is_known);
        }
        if of(&taken) >= limits.user || taken.places.len() - taken.strangers >= limits.users {
            taken.remove(self.number);
            return self.leave.cancel();
        }
        let user: Arc<str> = name.into();
        taken.strangers -= 1;
        lower(&mut taken.addresses, &self.address);
        *taken.users.entry(Arc::clone(&user)).or_default() += 1;
        *self.user.lock().unwrap_or_else(PoisonError::into_inner) = Some(user);
        self.is_known.store(true, Relaxed);
    }

    /// A request begins.
    pub(super) fn asked(self: &Arc<Self>) -> UnderWay {
        self.under_way.fetch_add(1, Relaxed);
        self.asked.fetch_add(1, Relaxed);
        self.touch();
        UnderWay { place: Arc::clone(self), lasts: false }
    }

    /// Something happened, so this one is not idle.
    fn touch(&self) {
        let passed = u64::try_from(self.came.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.touched.store(passed, Relaxed);
        self.last.store(self.all.arrivals.load(Relaxed), Relaxed);
    }

    /// How many requests there were, unless one is under way or none can come.
    pub(super) fn awaits_request(&self) -> Option<u64> {
        let awaits = self.under_way.load(Relaxed) == 0 && !self.has_left.load(Relaxed);
        awaits.then(|| self.asked.load(Relaxed))
    }

    /// A request turned out to be nobody's: who makes too many of them at once goes. Watches are
    /// something else, where strangers may have any.
    pub(super) fn asked_by_nobody(&self) {
        let waiting = self.under_way.load(Relaxed).saturating_sub(self.lasting.load(Relaxed));
        if !self.is_known() && waiting > STRANGERS_REQUESTS_MAX {
            self.all.taken().remove(self.number);
            self.leave.cancel();
        }
    }

    /// Waits until this one has to go, because it does nothing or another needs the place.
    pub(super) async fn over(&self) {
        self.leave.run_until_cancelled(self.idle()).await;
    }

    /// Waits until another needs the place.
    pub(super) async fn taken_away(&self) {
        self.leave.cancelled().await;
    }

    /// Waits until nothing has happened for too long. Strangers are only looked at now and then.
    async fn idle(&self) {
        loop {
            let before = self.asked.load(Relaxed);
            if !self.is_known() {
                tokio::time::sleep(STRANGER_IDLE).await;
                if self.asked.load(Relaxed) == before && self.is_idle() {
                    return;
                }
                continue;
            }
            let left = self.idle_left();
            if left.is_zero() && self.is_idle() {
                return;
            }
            // Who waits for an answer has all the time again once it is there.
            tokio::time::sleep(if left.is_zero() { USER_IDLE } else { left }).await;
        }
    }

    /// For how long a user may still do nothing.
    fn idle_left(&self) -> Duration {
        let touched = Duration::from_millis(self.touched.load(Relaxed));
        USER_IDLE.saturating_sub(self.came.elapsed().saturating_sub(touched))
    }

    /// Waits until nothing is under way. Who has been told to go then has had time to do so.
    pub(super) async fn quiet(&self) {
        loop {
            tokio::time::sleep(LINGER).await;
            if self.under_way.load(Relaxed) == 0 {
                return;
            }
        }
    }

    /// Whether nothing goes on. A stranger may not even leave an answer unread, as a user may who is
    /// slow.
    fn is_idle(&self) -> bool {
        match self.is_known() {
            true => self.under_way.load(Relaxed) == 0,
            false => self.lasting.load(Relaxed) == 0,
        }
    }

    /// In which order those go who may: strangers first, and who did nothing before who did.
    fn rank(&self) -> Option<(bool, bool, u64)> {
        let is_busy = self.under_way.load(Relaxed) > 0;
        let begins = !self.has_shaken_hands.load(Relaxed) && self.came.elapsed() < UNDISTURBED;
        let stays = begins || (self.is_known() && is_busy);
        (!stays).then(|| (self.is_known(), is_busy, self.last.load(Relaxed)))
    }

    /// No request comes any more: gives the place back, unless something else is spoken there.
    pub(super) fn left(&self) {
        self.has_left.store(true, SeqCst);
        self.give_back();
    }

    fn give_back(&self) {
        if self.has_left.load(SeqCst) && self.stays.load(SeqCst) == 0 {
            self.all.taken().remove(self.number);
        }
    }

    /// Keeps the place for whoever goes on to speak another protocol.
    pub(super) fn stay(self: &Arc<Self>) -> Stay {
        self.stays.fetch_add(1, SeqCst);
        let staying = Staying { under_way: Some(self.asked().lasting()), place: Arc::clone(self) };
        Stay::new(staying, self.leave.clone())
    }
}

/// Somebody who speaks, or may come to speak, another protocol than HTTP.
struct Staying {
    under_way: Option<UnderWay>,
    place: Arc<Place>,
}

impl Drop for Staying {
    fn drop(&mut self) {
        self.under_way = None;
        self.place.stays.fetch_sub(1, SeqCst);
        self.place.give_back();
    }
}

/// A request, until its answer is sent.
#[derive(Debug)]
pub(super) struct UnderWay {
    place: Arc<Place>,
    lasts: bool,
}

impl UnderWay {
    /// The answer goes on until one side ends it.
    #[must_use]
    pub(super) fn lasting(mut self) -> Self {
        self.place.lasting.fetch_add(1, Relaxed);
        self.lasts = true;
        self
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.place.under_way.fetch_sub(1, Relaxed);
        if self.lasts {
            self.place.lasting.fetch_sub(1, Relaxed);
        }
        self.place.touch();
    }
}

#[cfg(test)]
mod tests;
