//! Where a request gets its seats, waits for them, or is sent away: between [`crate::pipeline`],
//! which knows what is asked for, and [`crate::fairness`], which knows who is next.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use crate::authz::{Attributes, Target};
use crate::fairness::estimate::{self, Sort};
use crate::fairness::{Begun, Flow, Seat, Watched, Work};
use crate::lookup::{self, Stock};
use crate::request::Query;
use crate::state::Server;

/// How long an answer that is read piece by piece keeps its seats: what a client does not read
/// costs nothing, and who reads slowly must not keep others waiting.
const ANSWERING_MAX: Duration = Duration::from_secs(1);

/// What a request holds while it is served.
#[derive(Default)]
pub(crate) struct Turn {
    pub(crate) seat: Option<Seat>,
    /// How many objects it reads, of those that are counted.
    pub(crate) objects: u64,
    /// How many bytes these have, more or less.
    pub(crate) bytes: u64,
    /// That it watches, if it does.
    pub(crate) watched: Option<Watched>,
}

/// Gets seats for a request, and waits for them, but not longer than a quarter of the time that it
/// has. `version` is that of the resource it asks for. Fails with the seconds after which it should
/// come again.
pub(crate) async fn admit(
    server: &Server,
    flow: Option<Arc<Flow>>,
    asked: &Attributes<'_>,
    (version, query): (&str, &Query),
    deadline: Duration,
) -> Result<Turn, u64> {
    let Some(flow) = flow else { return Ok(Turn::default()) };
    let sort = Sort::of(asked, query);
    let (mut objects, mut bytes) = (0, 0);
    let work = match sort {
        Sort::Many(reach) => {
            let stock = Box::pin(stock(server, asked, version)).await;
            objects = reach.looked_at(stock.objects);
            bytes = objects.saturating_mul(stock.size);
            estimate::of_many(reach, stock, flow.width_max())
        }
        Sort::Write if !flow.is_exempt() => {
            estimate::of_write(server.fairness.watches.interested(asked), flow.width_max())
        }
        Sort::Write | Sort::Small => Work::ONE,
    };
    let seat = match flow.begin(asked, work) {
        Begun::Seated(seat) => Some(seat),
        Begun::Waiting(wait) => {
            let reads = matches!(asked.verb, "get" | "list" | "watch");
            let _waits = server.metrics.requests.wait(!reads);
            Box::pin(wait.seated(deadline / 4)).await
        }
        Begun::Refused => None,
    };
    if seat.is_none() {
        return Err(flow.refuse());
    }
    let watched = (asked.verb == "watch").then(|| server.fairness.watches.begin(asked)).flatten();
    Ok(Turn { seat, objects, bytes, watched })
}

/// How many objects there are where a request looks, as far as this server has heard, and how large
/// the first of them are.
async fn stock(server: &Server, asked: &Attributes<'_>, version: &str) -> Stock {
    let Target::Resource { group, resource, namespace, .. } = asked.target else {
        return Stock::default();
    };
    let table = server.registry.table();
    let Some(resource) = table.get(group, version, resource) else { return Stock::default() };
    let namespace = if resource.namespaced { namespace } else { "" };
    lookup::stock(&*server.store, resource.prefix(namespace)).await.unwrap_or_default()
}

/// Seats of a request that is being answered.
pub(crate) enum Answering {
    /// Nobody waits for them.
    Exempt(#[expect(dead_code, reason = "it is held")] Seat),
    /// They are free when this is dropped, or after a while.
    Limited(#[expect(dead_code, reason = "it is held")] AbortOnDropHandle<()>),
}

impl Answering {
    /// The seats, as long as the answer is being read.
    pub(crate) fn with(seat: Seat) -> Self {
        if seat.is_exempt() {
            return Self::Exempt(seat);
        }
        let free = async move {
            tokio::time::sleep(ANSWERING_MAX).await;
            drop(seat);
        };
        Self::Limited(AbortOnDropHandle::new(tokio::spawn(free)))
    }
}
