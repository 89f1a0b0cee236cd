//! How much of the server a request takes: seats, and for how long.

use std::time::Duration;

/// How long a request is taken to be served before anybody knows.
pub(super) const SERVICE: Duration = Duration::from_millis(3);

/// Seats times time, in nanoseconds of one seat. What requests are estimated at is whole numbers,
/// whose sums are exact; meters are not, by less than a microsecond after a year of full seats.
pub(super) type SeatTime = f64;

/// Seats that are held for a while.
#[expect(clippy::cast_precision_loss, reason = "exact up to a hundred days")]
pub(super) fn seat_time(seats: u32, held: Duration) -> SeatTime {
    SeatTime::from(seats) * held.as_nanos() as SeatTime
}

/// What a request takes, as estimated before it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// Seats while it is served.
    pub(super) initial: u32,
    /// Seats after its answer: watchers still have to hear of what it did.
    pub(super) last: u32,
    /// For how long after its answer.
    pub(super) lasting: Duration,
}

impl Work {
    /// One seat, until it is answered.
    pub(crate) const ONE: Self = Self { initial: 1, last: 0, lasting: Duration::ZERO };

    /// This many seats, until it is answered.
    pub(super) fn seats(initial: u32) -> Self {
        Self { initial, ..Self::ONE }
    }

    /// The seats that it holds from its begin to its very end.
    pub(super) fn width(&self) -> u32 {
        self.initial.max(self.last)
    }

    /// All that it takes.
    pub(super) fn total(&self) -> SeatTime {
        seat_time(self.initial, SERVICE) + seat_time(self.last, self.lasting)
    }

    /// The same work on no more seats than there are: what comes after the answer takes longer.
    pub(super) fn within(self, limit: u32) -> Self {
        if self.last <= limit || limit == 0 {
            return self;
        }
        let lasting = self.lasting * self.last / limit;
        Self { last: limit, lasting, ..self }
    }
}
