//! What the server hands out to services: cluster addresses and node ports.
//!
//! Between the decision about a service and its write, [`Services::take`] fills in what the client
//! left to the server and takes it; the [`Reservation`] goes into the write, and is settled by its
//! outcome: a write that fails gives back what was taken, one that succeeds gives back what the
//! old version held and the new one does not. An address is taken by creating its `IPAddress`,
//! so the store decides who wins, and so it does with ports: all that are taken are one entry.
//! What a write that broke off leaves behind, [`repair()`] finds. A service that goes takes its
//! Endpoints along, too.

mod addresses;
mod families;
mod holdings;
mod ip_address;
mod ports;
mod repair;
mod reservation;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::Place;

use crate::state::Server;
use crate::state::effects::{Effects, Outcome, Taken, Write, Written};
use crate::status::Result;
use crate::write::delete::delete_object;
use crate::write::{DeleteOptions, Writer};

pub(crate) use repair::{repair, start_repairs};
use reservation::Reservation;

/// Services hold what is handed out.
pub(crate) struct Services;

impl Effects for Services {
    /// Fills in and takes what a new version of a service needs and `old` does not hold. A dry
    /// run fills in what could be had, and takes nothing.
    fn take<'a>(
        &'a self,
        write: Write<'a>,
        old: Option<&'a Value>,
        new: &'a mut Value,
    ) -> BoxFuture<'a, Result<Option<Box<dyn Taken>>>> {
        Box::pin(async move {
            if write.subresource == "status" {
                return Ok(None);
            }
            let mut reservation = Reservation::new(write.server, write.dry_run);
            if let Err(status) = fill(&mut reservation, old, new).await {
                reservation.give_back(Outcome::Failed).await;
                return Err(status);
            }
            Ok(Some(Box::new(reservation) as Box<dyn Taken>))
        })
    }

    fn release(&self, server: &Arc<Server>, service: &Value) -> Option<Box<dyn Taken>> {
        Some(Box::new(Reservation::of_removal(server, service)))
    }

    fn follow(&self, gone: bool) -> bool {
        gone
    }

    fn written<'a>(&'a self, written: Written<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if written.gone {
                remove_endpoints(written.server, place(written.object)).await;
            }
        })
    }
}

/// Removes the Endpoints of a service that is gone, so that the next one of its name does not
/// begin with them, however late the controller is.
async fn remove_endpoints(server: &Arc<Server>, place: Place<'_>) {
    let table = server.registry.table();
    let Some(endpoints) = table.get("", "v1", "endpoints") else { return };
    let writer = Writer::internal(server, endpoints);
    match delete_object(&writer, place, &DeleteOptions::default()).await {
        Err(error) if error.code != 404 => {
            let Place { namespace, name } = place;
            tracing::warn!(%error, namespace, name, "cannot delete the endpoints of a service");
        }
        _ => {}
    }
}

async fn fill(reservation: &mut Reservation, old: Option<&Value>, new: &mut Value) -> Result<()> {
    families::fill(&reservation.server.service_ranges, old, new)?;
    let nothing = Value::Null;
    let held = old.unwrap_or(&nothing);
    addresses::fill(reservation, held, new).await?;
    ports::fill(reservation, held, new).await?;
    reservation.free_all_but(held, new);
    Ok(())
}

/// The name and namespace of an object.
fn place(object: &Value) -> Place<'_> {
    Place { namespace: metadata::text(object, "namespace"), name: metadata::text(object, "name") }
}

/// A service that is invalid for one reason.
fn invalid(service: &Value, error: steersman_rules::field::FieldError) -> crate::status::Status {
    let name = metadata::text(service, "name");
    let what = steersman_rules::resource::Named { group: "", resource: "Service", name };
    crate::status::Status::invalid(what, &[error])
}
