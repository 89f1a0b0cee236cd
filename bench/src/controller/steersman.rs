//! Steersman's controller, as its users have it.

use std::sync::Arc;
use std::time::Duration;

use steersman::manager::Running;
use steersman::prelude::*;

use super::tally::{Tally, Verdict};
use super::widget::Widget;

/// Starts a controller of Widgets.
pub(super) fn start(client: kube::Client, workers: usize, tally: &Arc<Tally>) -> Running {
    let tally = Arc::clone(tally);
    let reconcile = move |widget: Arc<Widget>, ctx: Context<Widget>| {
        let tally = Arc::clone(&tally);
        async move {
            match tally.judge(&widget) {
                Verdict::Done => Ok(Next::Settled),
                Verdict::Again => Ok(Next::After(Duration::ZERO)),
                Verdict::Write(status) => {
                    ctx.status(status);
                    Ok(Next::Settled)
                }
            }
        }
    };
    let controller = Controller::of::<Widget>().concurrency(workers).reconcile(reconcile);
    Manager::new(client).with(controller).start()
}
