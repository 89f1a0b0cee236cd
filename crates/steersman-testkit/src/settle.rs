//! Waiting until nothing can run any more at this moment of virtual time.
//!
//! The runtime of a test tells when no task can run, right before its clock would jump to the next
//! timer. Whoever waits for that is woken first, so that the clock stays where it is.

use std::cell::RefCell;

use tokio::runtime::Builder;
use tokio::sync::oneshot;

thread_local! {
    /// Who waits on the runtime of this thread.
    static WAITING: RefCell<Vec<oneshot::Sender<()>>> = const { RefCell::new(Vec::new()) };
}

/// Lets a runtime on one thread tell when nothing can run.
pub(crate) fn tell_when_idle(runtime: &mut Builder) {
    runtime.on_thread_park(|| {
        for waiting in WAITING.take() {
            let _ = waiting.send(()); // it may have given up
        }
    });
}

/// Waits until nothing can run any more. No time passes.
pub(crate) async fn settled() {
    let (tell, told) = oneshot::channel();
    WAITING.with_borrow_mut(|waiting| waiting.push(tell));
    let _ = told.await; // ends with the runtime at the latest
}
