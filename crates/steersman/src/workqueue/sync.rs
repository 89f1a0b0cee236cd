//! The lock of the queue: the standard one, which no panic poisons.
//!
//! Unit tests compile a lock that is either that one or shuttle's, so that the very code of the
//! queue runs under every schedule; programs never see the latter.

#[cfg(not(test))]
pub(super) use real::Mutex;
#[cfg(test)]
pub(super) use switched::Mutex;

mod real {
    use std::ops::Range;
    use std::sync::{MutexGuard, PoisonError, TryLockError};

    use super::super::crowd::Crowd;

    /// How long a thread waits before it looks again whether the lock is free, in powers of two, until
    /// it sleeps: some microseconds in all. Whoever holds the lock needs a fraction of one.
    const ROUNDS: Range<u32> = 0..8;

    /// The same if the lock is [crowded](Crowd): some tens of microseconds at first.
    const CROWDED_ROUNDS: Range<u32> = 11..14;

    #[derive(Debug, Default)]
    pub(in super::super) struct Mutex<T> {
        value: std::sync::Mutex<T>,
        crowd: Crowd,
    }

    impl<T> Mutex<T> {
        pub(in super::super) fn new(value: T) -> Self {
            Self { value: std::sync::Mutex::new(value), crowd: Crowd::default() }
        }

        #[inline]
        pub(in super::super) fn lock(&self) -> MutexGuard<'_, T> {
            let Some(guard) = self.try_lock() else { return self.lock_taken() };
            self.crowd.passed();
            guard
        }

        #[cold]
        fn lock_taken(&self) -> MutexGuard<'_, T> {
            let meeting = self.crowd.meet();
            let rounds = if meeting.crowded { CROWDED_ROUNDS } else { ROUNDS };
            let guard = self.spin(rounds);
            let guard =
                guard.unwrap_or_else(|| self.value.lock().unwrap_or_else(PoisonError::into_inner));
            self.crowd.passed_after(meeting);
            guard
        }

        fn spin(&self, mut rounds: Range<u32>) -> Option<MutexGuard<'_, T>> {
            rounds.find_map(|round| {
                (0..1 << round).for_each(|_| std::hint::spin_loop());
                self.try_lock()
            })
        }

        fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.value.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        }
    }
}

#[cfg(test)]
mod switched {
    use std::ops::{Deref, DerefMut};

    use super::super::tests::simulation;
    use super::real;

    #[derive(Debug)]
    pub(in super::super) enum Mutex<T> {
        Real(real::Mutex<T>),
        Scheduled(shuttle::sync::Mutex<T>),
    }

    pub(in super::super) enum Guard<'a, T> {
        Real(std::sync::MutexGuard<'a, T>),
        Scheduled(shuttle::sync::MutexGuard<'a, T>),
    }

    impl<T> Mutex<T> {
        pub(in super::super) fn new(value: T) -> Self {
            match simulation::now() {
                Some(_) => Self::Scheduled(shuttle::sync::Mutex::new(value)),
                None => Self::Real(real::Mutex::new(value)),
            }
        }

        pub(in super::super) fn lock(&self) -> Guard<'_, T> {
            match self {
                Self::Real(mutex) => Guard::Real(mutex.lock()),
                Self::Scheduled(mutex) => Guard::Scheduled(mutex.lock().unwrap()),
            }
        }
    }

    impl<T> Deref for Guard<'_, T> {
        type Target = T;

        fn deref(&self) -> &T {
            match self {
                Self::Real(guard) => guard,
                Self::Scheduled(guard) => guard,
            }
        }
    }

    impl<T> DerefMut for Guard<'_, T> {
        fn deref_mut(&mut self) -> &mut T {
            match self {
                Self::Real(guard) => guard,
                Self::Scheduled(guard) => guard,
            }
        }
    }
}
