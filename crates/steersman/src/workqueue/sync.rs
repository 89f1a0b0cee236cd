//! The lock of the queue: the standard one, which no panic poisons.
//!
//! Unit tests compile a lock that is either that one or shuttle's, so that the very code of the
//! queue runs under every schedule; programs never see the latter.

#[cfg(not(test))]
pub(super) use real::Mutex;
#[cfg(test)]
pub(super) use switched::Mutex;

mod real {
    use std::sync::{MutexGuard, PoisonError, TryLockError};

    /// How often a thread looks whether the lock is free before it sleeps, each time after twice
    /// as long: some microseconds in all. Whoever holds the lock needs a fraction of one.
    const ROUNDS: u32 = 8;

    #[derive(Debug, Default)]
    pub(in super::super) struct Mutex<T>(std::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in super::super) fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }

        pub(in super::super) fn lock(&self) -> MutexGuard<'_, T> {
            for round in 0..ROUNDS {
                if let Some(guard) = self.try_lock() {
                    return guard;
                }
                (0..1 << round).for_each(|_| std::hint::spin_loop());
            }
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
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
