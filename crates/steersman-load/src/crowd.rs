//! Many jobs, so many at once.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Lets jobs run side by side, up to a number, and waits for them at the end.
pub(crate) struct Crowd {
    places: Arc<Semaphore>,
    jobs: JoinSet<()>,
}

impl Crowd {
    pub(crate) fn of(at_once: u32) -> Self {
        Self { places: Arc::new(Semaphore::new(at_once as usize)), jobs: JoinSet::new() }
    }

    /// Starts a job as soon as there is a place for it; not at all once it is told to stop.
    pub(crate) async fn start(
        &mut self,
        stop: &CancellationToken,
        job: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        while self.jobs.try_join_next().is_some() {}
        let place = tokio::select! {
            biased;
            () = stop.cancelled() => return false,
            place = Arc::clone(&self.places).acquire_owned() => place,
        };
        let Ok(place) = place else { return false };
        self.jobs.spawn(async move {
            job.await;
            drop(place);
        });
        true
    }

    /// Waits for all of them.
    pub(crate) async fn end(mut self) {
        while self.jobs.join_next().await.is_some() {}
    }
}
