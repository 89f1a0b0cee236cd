//! The node ports of a service: those it names, and those it is given.
//!
//! Two ports of one service may share a node port if their protocols differ; of a new service, only
//! if their numbers do not.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::kinds::service::{has_node_ports, needs_health_check};

use super::invalid;
use super::reservation::Reservation;
use crate::document::items;
use crate::random::Random;
use crate::state::node_ports::Ports;
use crate::status::{Result, Status};

/// Takes the ports that a service needs: those it names, or some of the server's choice.
pub(super) async fn fill(
    reservation: &mut Reservation,
    old: &Value,
    new: &mut Value,
) -> Result<()> {
    if !has_node_ports(&new["spec"]) {
        return Ok(());
    }
    let server = std::sync::Arc::clone(&reservation.server);
    let take = |ports: &mut Ports| {
        let mut service = new.clone();
        let mut errand = Errand { ports, random: &server.random, fresh: Vec::new() };
        errand.run(old, &mut service)?;
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
    /// What was taken for the service.
    fresh: Vec<u16>,
}

impl Errand<'_> {
    fn run(&mut self, old: &Value, service: &mut Value) -> Result<()> {
        let spec = &service["spec"];
        let chooses =
            spec["type"] != "LoadBalancer" || spec["allocateLoadBalancerNodePorts"] != false;
        let shared = if old.is_null() {
            let named = named(service);
            self.take_for_new(service, &named, chooses)?;
            Some(named)
        } else {
            self.take_for_known(old, service)?;
            None
        };
        if chooses {
            self.choose(service, shared)?;
        }
        if needs_health_check(&service["spec"]) && !needs_health_check(&old["spec"]) {
            self.health_check(service)?;
        }
        Ok(())
    }

    /// Takes the node ports that a new service names. All ports of one number may have the one that
    /// is named first among them, and whatever is wrong with it is told of the first that gets it.
    fn take_for_new(
        &mut self,
        service: &Value,
        named: &BTreeMap<i64, i64>,
        chooses: bool,
    ) -> Result<()> {
        let mut seen = BTreeSet::new();
        for (i, port) in items(&service["spec"]["ports"]).iter().enumerate() {
            let own = node_port(port);
            if own.is_none() && !chooses {
                continue;
            }
            let shared = named.get(&number(port)).copied();
            let is_first = seen.insert(number(port));
            let wanted = if is_first { shared } else { own.filter(|_| own != shared) };
            if let Some(wanted) = wanted {
                self.take(service, i, wanted)?;
            }
        }
        Ok(())
    }

    /// Takes the node ports that a service names and did not have. Any of its ports may share them.
    fn take_for_known(&mut self, old: &Value, service: &Value) -> Result<()> {
        let before = items(&old["spec"]["ports"]).iter();
        let mut own: BTreeSet<i64> = before.filter_map(node_port).collect();
        for (i, port) in items(&service["spec"]["ports"]).iter().enumerate() {
            if let Some(wanted) = node_port(port).filter(|wanted| own.insert(*wanted)) {
                self.take(service, i, wanted)?;
            }
        }
        Ok(())
    }

    /// Takes the node port that one of the ports names.
    fn take(&mut self, service: &Value, i: usize, wanted: i64) -> Result<()> {
        let taken = self.ports.take(wanted).map_err(|why| {
            let field = format!("spec.ports[{i}].nodePort");
            invalid(service, FieldError::invalid(field, &wanted.into(), &why.to_string()))
        });
        self.fresh.push(taken?);
        Ok(())
    }

    /// Gives the other ports one each, or what is shared by ports of their number.
    fn choose(
        &mut self,
        service: &mut Value,
        mut shared: Option<BTreeMap<i64, i64>>,
    ) -> Result<()> {
        let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
        let ports = ports.into_iter().flatten();
        for port in ports.filter(|port| port.is_object() && node_port(port).is_none()) {
            let known = shared.as_ref().and_then(|shared| shared.get(&number(port)).copied());
            let chosen = match known {
                Some(known) => known,
                None => self.take_any("a nodePort")?.into(),
            };
            if let Some(shared) = &mut shared {
                shared.insert(number(port), chosen);
            }
            port["nodePort"] = chosen.into();
        }
        Ok(())
    }

    fn health_check(&mut self, service: &mut Value) -> Result<()> {
        let field = &mut service["spec"]["healthCheckNodePort"];
        if let Some(wanted) = field.as_i64().filter(|port| *port != 0) {
            let taken = self.ports.take(wanted).map_err(|why| {
                let what = format!("failed to allocate requested HealthCheck NodePort {wanted}");
                Status::internal(&format!("{what}: {why}"))
            });
            self.fresh.push(taken?);
        } else {
            *field = self.take_any("a HealthCheck NodePort 0")?.into();
        }
        Ok(())
    }

    fn take_any(&mut self, what: &str) -> Result<u16> {
        let why = || Status::internal(&format!("failed to allocate {what}: range is full"));
        let port = self.ports.take_any(self.random).ok_or_else(why)?;
        self.fresh.push(port);
        Ok(port)
    }
}

/// The node port that is named for each port number first.
fn named(service: &Value) -> BTreeMap<i64, i64> {
    let mut named = BTreeMap::new();
    for port in items(&service["spec"]["ports"]) {
        if let Some(wanted) = node_port(port) {
            named.entry(number(port)).or_insert(wanted);
        }
    }
    named
}

fn number(port: &Value) -> i64 {
    port["port"].as_i64().unwrap_or(0)
}

fn node_port(port: &Value) -> Option<i64> {
    port["nodePort"].as_i64().filter(|number| *number != 0)
}
