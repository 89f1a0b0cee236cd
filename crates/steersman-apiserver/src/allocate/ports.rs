//! The node ports of a service: those it names, and those it is given.
//!
//! Two ports of one service may share a node port if their protocols differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::reservation::Reservation;
use super::{invalid, items};
use crate::field::FieldError;
use crate::status::{Result, Status};
use crate::strategy::service::{has_node_ports, needs_health_check};

/// The ports that a service holds.
pub(super) fn held(spec: &Value) -> Vec<u16> {
    if !has_node_ports(spec) {
        return Vec::new();
    }
    let ports = items(&spec["ports"]).iter().map(|port| &port["nodePort"]);
    let all = ports.chain([&spec["healthCheckNodePort"]]).filter_map(Value::as_u64);
    let held: BTreeSet<u16> =
        all.filter(|port| *port > 0).filter_map(|port| u16::try_from(port).ok()).collect();
    held.into_iter().collect()
}

/// Takes the ports that a service needs: those it names, or some of the server's choice.
pub(super) fn fill(reservation: &mut Reservation, old: &Value, new: &mut Value) -> Result<()> {
    if !has_node_ports(&new["spec"]) {
        return Ok(());
    }
    let before = held(&old["spec"]);
    let mut errand = Errand { reservation, before, fresh: Vec::new() };
    errand.named(new)?;
    errand.unnamed(new, old.is_null())?;
    if needs_health_check(&new["spec"]) {
        errand.health_check(new)?;
    }
    Ok(())
}

/// One service's way to its ports.
struct Errand<'a> {
    reservation: &'a mut Reservation,
    /// What the service held before.
    before: Vec<u16>,
    /// What was taken for it, or would be but for the dry run.
    fresh: Vec<u16>,
}

impl Errand<'_> {
    /// Takes the ports that the service names.
    fn named(&mut self, service: &Value) -> Result<()> {
        for (i, port) in items(&service["spec"]["ports"]).iter().enumerate() {
            let Some(number) = node_port(port) else { continue };
            if let Err(why) = self.take(number) {
                let field = format!("spec.ports[{i}].nodePort");
                let error = FieldError::invalid(field, &number.into(), why);
                return Err(invalid(service, error));
            }
        }
        Ok(())
    }

    /// Gives the other ports one each; ports of a new service that differ in nothing but the
    /// protocol get the same.
    fn unnamed(&mut self, service: &mut Value, is_new: bool) -> Result<()> {
        let spec = &service["spec"];
        if spec["type"] == "LoadBalancer" && spec["allocateLoadBalancerNodePorts"] == false {
            return Ok(());
        }
        let mut shared: BTreeMap<i64, i64> = BTreeMap::new();
        if is_new {
            let named = items(&spec["ports"]).iter();
            shared =
                named.filter_map(|port| Some((port["port"].as_i64()?, node_port(port)?))).collect();
        }
        let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        let ports = ports.into_iter().flatten();
        for port in ports.filter(|port| port.is_object() && node_port(port).is_none()) {
            let number = port["port"].as_i64().unwrap_or(0);
            let known = shared.get(&number).copied().filter(|_| is_new);
            let chosen = match known {
                Some(known) => known,
                None => self.take_any()?,
            };
            shared.insert(number, chosen);
            port["nodePort"] = chosen.into();
        }
        Ok(())
    }

    fn health_check(&mut self, service: &mut Value) -> Result<()> {
        let given = service["spec"]["healthCheckNodePort"].as_i64().filter(|port| *port != 0);
        let port = match given {
            None => self.take_any()?,
            Some(given) => {
                self.take(given).map_err(|why| {
                    Status::internal(&format!(
                        "failed to allocate requested HealthCheck NodePort {given}: {why}"
                    ))
                })?;
                given
            }
        };
        service["spec"]["healthCheckNodePort"] = port.into();
        Ok(())
    }

    fn take(&mut self, number: i64) -> Result<(), &'static str> {
        let ours = |port: &u16| i64::from(*port) == number;
        if self.before.iter().chain(&self.fresh).any(ours) {
            return Ok(());
        }
        let reservation = &mut *self.reservation;
        let port = reservation.server.node_ports.take(number, reservation.dry_run)?;
        self.remember(port);
        Ok(())
    }

    fn take_any(&mut self) -> Result<i64> {
        let reservation = &mut *self.reservation;
        let server = &reservation.server;
        let port = server.node_ports.take_any(&server.random, &self.fresh, reservation.dry_run);
        let why = "failed to allocate a nodePort: range is full";
        let port = port.ok_or_else(|| Status::internal(why))?;
        self.remember(port);
        Ok(port.into())
    }

    fn remember(&mut self, port: u16) {
        self.fresh.push(port);
        self.reservation.taken.ports.push(port);
    }
}

fn node_port(port: &Value) -> Option<i64> {
    port["nodePort"].as_i64().filter(|number| *number != 0)
}
