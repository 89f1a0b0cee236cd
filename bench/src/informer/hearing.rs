//! Handlers that count what they hear and note how late it was.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use crate::processes::wire::{Phase, nanoseconds};

/// How many handlers listen.
const HANDLERS: usize = 4;

/// Hears the mark of a Pod that was written; see [`Phase::mark`].
pub(crate) type Handler = Box<dyn FnMut(&str) + Send>;

/// Waits until all handlers have heard enough.
pub(crate) struct Hearing {
    finished: mpsc::Receiver<Phase>,
    latencies: Arc<Mutex<Vec<u64>>>,
}

/// One handler's memory.
struct Ear {
    expected: usize,
    heard: usize,
    latencies: Vec<u64>,
    all_latencies: Arc<Mutex<Vec<u64>>>,
    finished: mpsc::Sender<Phase>,
}

/// Handlers that each expect so many writes of each phase, and whom to ask about them.
pub(crate) fn handlers(expected: usize) -> (Vec<Handler>, Hearing) {
    let (finished, receiver) = mpsc::channel(2 * HANDLERS);
    let latencies = Arc::new(Mutex::new(Vec::new()));
    let handler = |_| -> Handler {
        let mut ear = Ear {
            expected,
            heard: 0,
            latencies: Vec::with_capacity(expected),
            all_latencies: Arc::clone(&latencies),
            finished: finished.clone(),
        };
        Box::new(move |mark| ear.hear(mark))
    };
    let handlers = (0..HANDLERS).map(handler).collect();
    (handlers, Hearing { finished: receiver, latencies })
}

impl Ear {
    fn hear(&mut self, mark: &str) {
        let Some((phase, at)) = Phase::parse(mark) else { return };
        self.heard += 1;
        self.latencies.push(nanoseconds().saturating_sub(at));
        if self.heard == self.expected {
            let mut all = self.all_latencies.lock().unwrap_or_else(PoisonError::into_inner);
            all.append(&mut self.latencies);
            self.heard = 0;
            // There is room for both phases of every handler.
            let _ = self.finished.try_send(phase);
        }
    }
}

impl Hearing {
    /// Waits until every handler has heard of a phase; gives the latencies of all in order.
    pub(crate) async fn finish(&mut self, phase: Phase) -> Result<Vec<u64>, String> {
        for _ in 0..HANDLERS {
            let finished = self.finished.recv().await.ok_or("the handlers are gone")?;
            if finished != phase {
                return Err(format!("a handler heard of {finished:?} during {phase:?}"));
            }
        }
        let mut latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
        let mut latencies = std::mem::take(&mut *latencies);
        latencies.sort_unstable();
        Ok(latencies)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_phase_is_finished_when_every_handler_heard_of_every_write() {
        let (mut handlers, mut hearing) = handlers(2);
        for handler in &mut handlers {
            handler("0");
            handler(&Phase::Burst.mark(1));
        }
        assert!(hearing.finished.try_recv().is_err());
        for handler in &mut handlers {
            handler(&Phase::Burst.mark(2));
        }
        let latencies = hearing.finish(Phase::Burst).await.unwrap();
        assert_eq!(latencies.len(), 2 * HANDLERS);
    }
}
