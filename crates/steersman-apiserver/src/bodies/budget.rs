//! How many bytes of bodies are held at once: in all, and of one user.
//!
//! Users share a fixed number of counters by a hash of their names, so that to count takes neither a
//! lock nor memory. Two who share one share its bytes as well; who they are nobody can choose, for
//! the hash differs with each start. Who finds no room waits a while for others to be done, and is
//! then told to come again.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use tokio::sync::Notify;

use crate::status::{Result, Status};

/// How many bytes of bodies are held at once. What a body is read into takes several times as much.
const ALL: usize = 128 * 1024 * 1024;

/// How many of them one user may send: five of the largest.
const SHARE: usize = ALL / 8;

/// How many counters users share.
const SHARES: usize = 256;

/// How long to wait for room.
const PATIENCE: Duration = Duration::from_secs(5);

/// A body without a declared length takes room by so much at a time.
const STEP: usize = 64 * 1024;

/// The bytes that are held.
#[derive(Debug)]
pub(crate) struct Bodies {
    all: AtomicUsize,
    shares: Box<[AtomicUsize]>,
    hasher: RandomState,
    /// How many wait for room; nobody else is told that there is some.
    waiting: AtomicUsize,
    freed: Notify,
}

impl Default for Bodies {
    fn default() -> Self {
        Self {
            all: AtomicUsize::new(0),
            shares: (0..SHARES).map(|_| AtomicUsize::new(0)).collect(),
            hasher: RandomState::new(),
            waiting: AtomicUsize::new(0),
            freed: Notify::new(),
        }
    }
}

impl Bodies {
    /// How many bytes are held.
    pub(crate) fn held(&self) -> usize {
        self.all.load(SeqCst)
    }

    /// Room for a body of a user, none so far.
    pub(crate) fn room(&self, user: &str) -> Room<'_> {
        let hash = self.hasher.hash_one(user) as usize;
        Room { bodies: self, share: &self.shares[hash % self.shares.len()], bytes: 0 }
    }

    /// Takes bytes, unless that would be too many.
    fn take(&self, share: &AtomicUsize, bytes: usize) -> bool {
        if !add(share, bytes, SHARE) {
            return false;
        }
        let taken = add(&self.all, bytes, ALL);
        if !taken {
            share.fetch_sub(bytes, SeqCst);
        }
        taken
    }

    async fn wait(&self, share: &AtomicUsize, bytes: usize) {
        let _waiting = Waiting::new(&self.waiting);
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // From here on nothing that becomes free is missed.
            freed.as_mut().enable();
            if self.take(share, bytes) {
                return;
            }
            freed.await;
        }
    }
}

fn add(counter: &AtomicUsize, bytes: usize, max: usize) -> bool {
    let sum = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= max);
    counter.fetch_update(SeqCst, SeqCst, sum).is_ok()
}

/// One who waits, for as long as this is there.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// The room of one body, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    bodies: &'a Bodies,
    share: &'a AtomicUsize,
    bytes: usize,
}

impl Room<'_> {
    /// Makes sure that there is room for so many bytes.
    pub(super) async fn grow_to(&mut self, bytes: usize) -> Result<()> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else {
            return Ok(());
        };
        // What grew once will grow again.
        let more = if self.bytes == 0 { more } else { more.next_multiple_of(STEP) };
        if !self.bodies.take(self.share, more) {
            let waited = tokio::time::timeout(PATIENCE, self.bodies.wait(self.share, more)).await;
            waited.map_err(|_| Status::too_many_requests())?;
        }
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        self.share.fetch_sub(self.bytes, SeqCst);
        self.bodies.all.fetch_sub(self.bytes, SeqCst);
        if self.bodies.waiting.load(SeqCst) > 0 {
            self.bodies.freed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// A user with another share than `a`.
    fn other(bodies: &Bodies) -> String {
        let a = bodies.room("a");
        let differs = |name: &String| !std::ptr::eq(bodies.room(name).share, a.share);
        (0..).map(|n| format!("b{n}")).find(differs).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_user_does_not_take_the_room_of_others() {
        let bodies = Bodies::default();
        let mut hog = bodies.room("a");
        hog.grow_to(SHARE).await.unwrap();
        let start = Instant::now();
        let refused = bodies.room("a").grow_to(1).await.unwrap_err();
        assert_eq!((refused.code, start.elapsed()), (429, PATIENCE));
        bodies.room(&other(&bodies)).grow_to(SHARE).await.unwrap();
        drop(hog);
        bodies.room("a").grow_to(SHARE).await.unwrap();
        assert_eq!(bodies.held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_let_in_when_another_is_done() {
        let bodies = Bodies::default();
        let mut first = bodies.room("a");
        first.grow_to(SHARE).await.unwrap();
        let mut second = bodies.room("a");
        let waits = second.grow_to(SHARE);
        let ends = async {
            tokio::task::yield_now().await;
            drop(first);
        };
        let (waited, ()) = tokio::join!(waits, ends);
        waited.unwrap();
        assert_eq!(bodies.held(), SHARE);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_granted_is_not_held() {
        let bodies = Bodies::default();
        let mut held = Vec::new();
        for name in (0..).map(|n| format!("user-{n}")) {
            let mut room = bodies.room(&name);
            // Some share a counter that is full already.
            if bodies.take(room.share, SHARE) {
                room.bytes = SHARE;
                held.push(room);
            }
            if bodies.held() == ALL {
                break;
            }
        }
        let free = (0..).map(|n| format!("late-{n}"));
        let mut free = free.map(|name| bodies.room(&name)).filter(|r| r.share.load(SeqCst) == 0);
        let mut late = free.next().unwrap();
        assert_eq!(late.grow_to(1).await.unwrap_err().code, 429);
        assert_eq!(late.share.load(SeqCst), 0);
        drop((held, late));
        assert_eq!(bodies.held(), 0);
    }

    #[tokio::test]
    async fn a_body_of_unknown_length_takes_room_in_steps() {
        let bodies = Bodies::default();
        let mut room = bodies.room("a");
        room.grow_to(100).await.unwrap();
        assert_eq!(bodies.held(), 100);
        room.grow_to(101).await.unwrap();
        room.grow_to(STEP).await.unwrap();
        assert_eq!(bodies.held(), 100 + STEP);
    }
}
