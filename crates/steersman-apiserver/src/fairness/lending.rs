//! Seats of requests that wait for somebody else, such as a webhook.
//!
//! A request says with [`serving`] whose seats it has, and whoever calls somebody on its way, at
//! whatever depth, says with [`elsewhere`] that nothing is done here meanwhile. What a level makes of
//! it is in [`super::queues`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::level::{Level, Seat};

tokio::task_local! {
    static LENDER: Option<Lender>;
}

/// The seats of a request, to be lent.
#[derive(Clone, Debug)]
pub(crate) struct Lender {
    level: Arc<Level>,
    seats: u32,
    /// For how many others it waits.
    waits: Arc<AtomicU32>,
}

impl Lender {
    /// What can be lent of a seat; nothing, if nobody has to wait for it.
    pub(crate) fn of(seat: &Seat) -> Option<Self> {
        let (level, seats) = seat.lendable()?;
        Some(Self { level: Arc::clone(level), seats, waits: Arc::default() })
    }
}

/// Seats that are lent until this is dropped.
#[derive(Debug)]
pub(crate) struct Lent(Lender);

impl Drop for Lent {
    fn drop(&mut self) {
        let Lender { level, seats, waits } = &self.0;
        if waits.fetch_sub(1, Ordering::Relaxed) == 1 {
            level.take_back(*seats);
        }
    }
}

/// Works with the seats of a request.
pub(crate) async fn serving<F: Future>(lender: Option<Lender>, work: Pin<&mut F>) -> F::Output {
    match lender {
        Some(_) => LENDER.scope(lender, work).await,
        None => work.await,
    }
}

/// Says that this request waits for somebody else, as long as the guard is held. A request that
/// waits for several at once lends its seats once.
pub(crate) fn elsewhere() -> Option<Lent> {
    let lender = LENDER.try_with(Clone::clone).ok().flatten()?;
    if lender.waits.fetch_add(1, Ordering::Relaxed) == 0 {
        lender.level.lend(lender.seats);
    }
    Some(Lent(lender))
}
