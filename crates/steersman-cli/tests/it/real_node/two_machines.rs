//! Two machines with a network between them: two network namespaces, each with a containerd and an
//! agent of its own, so that each has its own addresses, bridge and Pods as a machine has.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;

use super::{Agent, invite, until, until_node_is_ready};
use crate::containerd::{Containerd, Room, subnet};
use crate::program::{Program, steersman};

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "ip {arguments}: {said}");
}

/// A bridge on this machine, to which others are connected. It goes with this.
struct Network {
    bridge: String,
    prefix: String,
    machines: Vec<String>,
}

impl Network {
    fn new() -> Self {
        let pid = std::process::id();
        let (bridge, prefix) = (format!("stn{pid:x}"), format!("10.199.{}", pid % 250));
        ip(&format!("link add {bridge} type bridge"));
        let network = Self { bridge, prefix, machines: Vec::new() };
        ip(&format!("addr add {}/24 dev {}", network.host(), network.bridge));
        ip(&format!("link set {} up", network.bridge));
        network
    }

    /// The address of this machine.
    fn host(&self) -> String {
        format!("{}.1", self.prefix)
    }

    /// The address of the machine of this number.
    fn address(&self, number: u32) -> String {
        format!("{}.{}", self.prefix, 10 + number)
    }

    /// Adds a machine, and says what its network namespace is called.
    fn add(&mut self, number: u32) -> String {
        let (name, outside) =
            (format!("{}m{number}", self.bridge), format!("{}v{number}", self.bridge));
        let (address, host) = (self.address(number), self.host());
        ip(&format!("netns add {name}"));
        self.machines.push(name.clone());
        ip(&format!("link add {outside} type veth peer name eth0 netns {name}"));
        ip(&format!("link set {outside} master {} up", self.bridge));
        for inside in
            ["link set lo up", "link set eth0 up", &format!("addr add {address}/24 dev eth0")]
        {
            ip(&format!("-n {name} {inside}"));
        }
        ip(&format!("-n {name} route add default via {host}"));
        ip(&format!("route add {} via {address}", subnet(number)));
        name
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let delete = |arguments: &[&str]| drop(Command::new("ip").args(arguments).status());
        for machine in &self.machines {
            delete(&["netns", "delete", machine]);
        }
        delete(&["link", "delete", &self.bridge]);
    }
}

/// The program inside a network namespace.
fn inside(netns: &str) -> Command {
    let program = steersman(&[]);
    let mut command = Command::new("nsenter");
    command.arg(format!("--net=/run/netns/{netns}")).arg(program.get_program()).arg("node");
    command
}

/// What a web server says.
fn ask(address: &str) -> Option<String> {
    let mut stream =
        TcpStream::connect_timeout(&format!("{address}:80").parse().ok()?, Duration::from_secs(1))
            .ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_set_has_a_pod_on_each_of_two_machines() {
    let mut network = Network::new();
    let program = Program::up_at(&network.host(), &["--nodes", "0"]);
    let words = invite(&program);
    let mut machines = Vec::new();
    for number in [1, 2] {
        let netns = network.add(number);
        let room = Room::of(Containerd::of_machine(number, &netns), &format!("machine-{number}"));
        let mut arguments: Vec<&str> = words[2..].iter().map(String::as_str).collect();
        let address = network.address(number);
        arguments.extend(["--node-ip", &address]);
        let agent = Agent::spawn(inside(&netns), &room, &arguments);
        machines.push((room, agent));
    }
    for (room, _) in &machines {
        until_node_is_ready(&program, &room.node).await;
    }
    let client = program.kube().await;
    let sets: Api<DaemonSet> = Api::default_namespaced(client.clone());
    sets.create(&PostParams::default(), &daemon_set()).await.unwrap();
    until("both Pods are available", async || {
        let status = sets.get("web").await.unwrap().status.unwrap_or_default();
        (status.desired_number_scheduled, status.number_available) == (2, Some(2))
    })
    .await;
    let pods: Api<Pod> = Api::default_namespaced(client);
    let mut found: Vec<(String, String, String)> = Vec::new();
    for pod in pods.list(&ListParams::default()).await.unwrap() {
        let (spec, status) = (pod.spec.unwrap(), pod.status.unwrap());
        found.push((spec.node_name.unwrap(), status.host_ip.unwrap(), status.pod_ip.unwrap()));
    }
    found.sort();
    for (number, (node, host, own)) in (1..).zip(&found) {
        assert_eq!((node, host), (&format!("machine-{number}"), &network.address(number)));
        let prefix = subnet(number).replace("0/24", "");
        assert!(own.starts_with(&prefix), "{own} is not of {prefix}");
        until(&format!("{own} answers"), async || {
            ask(own).is_some_and(|said| said.contains(node.as_str()))
        })
        .await;
    }
    sets.delete("web", &DeleteParams::foreground()).await.unwrap();
    until("all is gone", async || sets.get_opt("web").await.unwrap().is_none()).await;
    for (room, agent) in &mut machines {
        until("nothing is left", async || room.left().is_empty()).await;
        until("no address is left", async || room.containerd().left_addresses().is_empty()).await;
        agent.stop();
    }
}

/// A web server on every node that says where it is.
fn daemon_set() -> DaemonSet {
    let labels = json!({"app": "web"});
    let script = "mkdir /www; echo $NODE > /www/index.html; trap 'exit 0' TERM; \
                  httpd -f -p 80 -h /www & wait";
    let node = json!({"fieldRef": {"fieldPath": "spec.nodeName"}});
    let container = json!({
        "name": "main",
        "image": "localhost/busybox:1",
        "command": ["sh", "-c", script],
        "env": [{"name": "NODE", "valueFrom": node}],
        "readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1},
    });
    let spec = json!({
        "automountServiceAccountToken": false,
        "terminationGracePeriodSeconds": 2,
        "containers": [container],
    });
    let set = json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    });
    serde_json::from_value(set).unwrap()
}
