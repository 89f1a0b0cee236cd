//! The node ports of a service: those it names, and those it is given.
//!
//! Two ports of one service may share a node port if their protocols differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::kinds::service::{has_node_ports, needs_health_check};

use super::invalid;
use super::reservation::Reservation;
use crate::document::items;
use crate::random::Random;
use crate::state::node_ports::{PortError, Ports};
use crate::status::{Result, Status};

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
pub(super) async fn fill(
    reservation: &mut Reservation,
    old: &Value,
    new: &mut Value,
) -> Result<()> {
    if !has_node_ports(&new["spec"]) {
        return Ok(());
    }
    let before = held(&old["spec"]);
    let server = std::sync::Arc::clone(&reservation.server);
    let take = |ports: &mut Ports| {
        let mut service = new.clone();
        let fresh = Vec::new();
        let mut errand = Errand { ports, random: &server.random, before: &before, fresh };
        errand.run(&mut service, old.is_null())?;
        Ok((service, errand.fresh))
    };
    let dry_run = reservation.dry_run;
    let (service, fresh) = server.node_ports.change(&*server.store, dry_run, take).await?;
    *new = service;
    reservation.taken.ports.extend(fresh);
    Ok(())
}

/// One service's way to its ports.
struct Errand<'a> {
    /// What is taken, by whomever.
    ports: &'a mut Ports,
    random: &'a Random,
    /// What the service held before.
    before: &'a [u16],
    /// What was taken for it.
    fresh: Vec<u16>,
}

impl Errand<'_> {
    fn run(&mut self, service: &mut Value, is_new: bool) -> Result<()> {
        self.named(service)?;
        self.unnamed(service, is_new)?;
        if needs_health_check(&service["spec"]) {
            self.health_check(service)?;
        }
        Ok(())
    }

    /// Takes the ports that the service names.
    fn named(&mut self, service: &Value) -> Result<()> {
        for (i, port) in items(&service["spec"]["ports"]).iter().enumerate() {
            let Some(number) = node_port(port) else { continue };
            if let Err(why) = self.take(number) {
                let field = format!("spec.ports[{i}].nodePort");
                let error = FieldError::invalid(field, &number.into(), &why.to_string());
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

    fn take(&mut self, number: i64) -> Result<(), PortError> {
        let ours = |port: &u16| i64::from(*port) == number;
        if self.before.iter().chain(&self.fresh).any(ours) {
            return Ok(());
        }
        let port = self.ports.take(number)?;
        self.fresh.push(port);
        Ok(())
    }

    fn take_any(&mut self) -> Result<i64> {
        let why = "failed to allocate a nodePort: range is full";
        let port = self.ports.take_any(self.random).ok_or_else(|| Status::internal(why))?;
        self.fresh.push(port);
        Ok(port.into())
    }
}

fn node_port(port: &Value) -> Option<i64> {
    port["nodePort"].as_i64().filter(|number| *number != 0)
}
