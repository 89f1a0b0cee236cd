//! The lock of the queue: the standard one, which no panic poisons.
//!
//! Unit tests compile a lock that is either that one or shuttle's, so that the very code of the
//! queue runs under every schedule; programs never see the latter.

#[cfg(not(test))]
pub(super) use real::Mutex;
#[cfg(test)]
pub(super) use switched::Mutex;

mod real {
    use std::sync::{MutexGuard, PoisonError};

    #[derive(Debug, Default)]
    pub(in super::super) struct Mutex<T>(std::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in super::super) fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }

        pub(in super::super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
