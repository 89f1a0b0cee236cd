//! Ports of the machine that lead to Pods.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::containerd;
use crate::machine::{Machine, is_ready, phase, shell, spec};

/// A Pod that answers with a word at a port of the machine.
fn server(word: &str, port: u16) -> Value {
    let script = format!(
        "mkdir /tmp/www; echo {word} > /tmp/www/index.html; httpd -p 80 -h /tmp/www; \
         trap 'exit 0' TERM; while true; do sleep 0.1; done"
    );
    let mut pod = spec("Always", &json!([shell("main", &script)]));
    pod["containers"][0]["ports"] = json!([{"containerPort": 80, "hostPort": port}]);
    pod
}

/// What is answered at a port of the machine, if anybody is there.
fn answer(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    text.lines().last().map(str::to_owned)
}

/// What the kernel is told about a port of the machine.
fn rules(port: u16) -> Vec<String> {
    let rules = Command::new("iptables").args(["-t", "nat", "-S"]).output().expect("iptables");
    let rules = String::from_utf8_lossy(&rules.stdout).into_owned();
    let of_port = |rule: &&str| rule.split(' ').any(|word| word == port.to_string());
    rules.lines().filter(of_port).map(str::to_owned).collect()
}

fn unschedulable(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let no_ports = "didn't have free ports for the requested pod ports";
    conditions.into_iter().flatten().any(|it| {
        it.type_ == "PodScheduled"
            && it.status == "False"
            && it.message.as_ref().is_some_and(|message| message.contains(no_ports))
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_of_the_machine_leads_to_one_pod_until_that_is_gone() {
    let port = 20_000 + u16::try_from(std::process::id() % 10_000).expect("it is small");
    let machine = Machine::start_on(containerd::with_host_ports(), "ports", |_| {}).await;
    let answers = async |word: &str| {
        let what = format!("{word} answers");
        machine.until_true(&what, async || answer(port).as_deref() == Some(word)).await;
    };
    machine.run("first", server("first", port)).await;
    machine.until("first", is_ready).await;
    answers("first").await;
    assert!(!rules(port).is_empty());

    machine.run("next", server("next", port)).await;
    machine.until("next", unschedulable).await;
    let mut forced = server("forced", port);
    forced["nodeName"] = json!("ports");
    machine.run("forced", forced).await;
    let status = machine.until_phase("forced", "Failed").await.status.expect("a status");
    assert_eq!(status.reason.as_deref(), Some("NodePorts"));
    let why = "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the \
               requested pod ports";
    assert_eq!(status.message.as_deref(), Some(why));
    assert_eq!(answer(port).as_deref(), Some("first"));

    machine.delete("first", &DeleteParams::default()).await;
    machine.until("next", |pod| phase(pod) == "Running").await;
    answers("next").await;
    machine.delete("next", &DeleteParams::default()).await;
    machine.until_gone("next").await;
    assert_eq!(answer(port), None);
    assert_eq!(rules(port), Vec::<String>::new());
    machine.end().await;
}
