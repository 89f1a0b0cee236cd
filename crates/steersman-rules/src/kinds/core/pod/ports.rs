//! Ports of a pod that get in each other's way: what is valid, but hardly meant.

use std::collections::HashMap;

use steersman_values::quoted;

use super::context::each_container;
use crate::rules::at::At;

/// Clashes need two ports; and nobody has so many that all pairs would be a burden.
const COMPARED: std::ops::RangeInclusive<usize> = 2..=256;

/// The warnings about the ports of all containers.
pub(super) fn warn(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let mut count = 0;
    each_container(spec, |container| count += container.at("ports").len());
    if count == 0 {
        return;
    }
    let mut all: Vec<Port> = Vec::new();
    each_container(spec, |container| {
        for port in container.each("ports") {
            if port.at("hostPort").number_or_zero() == 0 && !port.at("hostIP").text().is_empty() {
                let path = port.path();
                warnings.push(format!("{path}: hostIP set without hostPort: {}", shown(&port)));
            }
            if COMPARED.contains(&count) {
                let port = Port::of(&port);
                warnings.extend(all.iter().filter_map(|other| port.clash(other)));
                all.push(port);
            }
        }
    });
    names(spec, warnings);
}

/// A port with all its fields, as Go shows it.
fn shown(port: &At<'_, '_>) -> String {
    let text = |key: &str| port.at(key).text();
    let number = |key: &str| port.at(key).number_or_zero();
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        text("name"),
        number("hostPort"),
        number("containerPort"),
        text("protocol"),
        text("hostIP")
    )
}

/// Of several ports with one name, only the first is found by it.
fn names(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let mut seen: HashMap<&str, String> = HashMap::new();
    each_container(spec, |container| {
        for port in container.each("ports") {
            let name = port.at("name").text();
            if name.is_empty() {
                continue;
            }
            match seen.get(name) {
                Some(first) => warnings.push(format!(
                    "{}: duplicate port name {} with {first}, services and probes that select \
                     ports by name will use {first}",
                    port.path(),
                    quoted(name)
                )),
                None => drop(seen.insert(name, port.path())),
            }
        }
    });
}

/// One port of one container, as far as it can clash with others.
struct Port {
    path: String,
    container: (i64, String),
    host: (i64, String),
}

impl Port {
    fn of(port: &At<'_, '_>) -> Self {
        let number = |key: &str| port.at(key).number_or_zero();
        let text = |key: &str| port.at(key).text().to_owned();
        Self {
            path: port.path(),
            container: (number("containerPort"), text("protocol")),
            host: (number("hostPort"), text("hostIP")),
        }
    }

    /// The warning about two ports of which both cannot be meant.
    fn clash(&self, other: &Self) -> Option<String> {
        let ambiguous =
            self.host.0 == other.host.0 && self.host.1.is_empty() != other.host.1.is_empty();
        let how = match (self.host.0, other.host.0) {
            _ if self.container != other.container => return None,
            _ if self.host == other.host => "duplicate",
            (0, _) | (_, 0) => "overlapping",
            _ if ambiguous => "dangerously ambiguous",
            _ => return None,
        };
        Some(format!("{}: {how} port definition with {}", self.path, other.path))
    }
}
