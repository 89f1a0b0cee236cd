//! What `kubectl get pods` shows: the state of a pod in a word or two.

use jiff::Timestamp;
use serde_json::Value;

use crate::table::cells::{condition, items, number, or_none, text};
use crate::table::{Column, age, duration};

pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("Ready", |pod, _| state(pod).ready.into()),
        Column::text("Status", |pod, _| state(pod).reason.into()),
        Column::text("Restarts", restarts),
        age(),
        Column::text("IP", ip).wide(),
        Column::field("Node", "spec.nodeName", "<none>").wide(),
        Column::field("Nominated Node", "status.nominatedNodeName", "<none>").wide(),
        Column::text("Readiness Gates", readiness_gates).wide(),
    ]
}

/// What the containers of a pod add up to.
struct PodState {
    ready: String,
    reason: String,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

/// Sums up the containers: init containers first, and the main ones only once those are done.
fn state(pod: &Value) -> PodState {
    let status = &pod["status"];
    let sidecars = sidecars(pod);
    let mut tally = Tally {
        reason: initial_reason(pod),
        total: items(&pod["spec"]["containers"]).len() + sidecars.len(),
        ..Tally::default()
    };
    let initializing = tally.count_init(pod, &sidecars);
    if !initializing || condition(pod, "Initialized").is_some_and(|c| c["status"] == "True") {
        tally.forget_init();
        tally.count_containers(pod);
    }
    if !pod["metadata"]["deletionTimestamp"].is_null() {
        if status["reason"] == "NodeLost" {
            tally.reason = "Unknown".to_owned();
        } else if status["phase"] != "Succeeded" && status["phase"] != "Failed" {
            tally.reason = "Terminating".to_owned();
        }
    }
    PodState {
        ready: format!("{}/{}", tally.ready, tally.total),
        reason: tally.reason,
        restarts: tally.restarts,
        last_restart: tally.last_restart,
    }
}

fn initial_reason(pod: &Value) -> String {
    let status = &pod["status"];
    let gated = condition(pod, "PodScheduled").is_some_and(|c| c["reason"] == "SchedulingGated");
    match (gated, text(&status["reason"])) {
        (true, _) => "SchedulingGated".to_owned(),
        (false, "") => text(&status["phase"]).to_owned(),
        (false, reason) => reason.to_owned(),
    }
}

/// Init containers that keep running beside the main ones.
fn sidecars(pod: &Value) -> Vec<&str> {
    let init = items(&pod["spec"]["initContainers"]).iter();
    init.filter(|c| c["restartPolicy"] == "Always").map(|c| text(&c["name"])).collect()
}

#[derive(Default)]
struct Tally {
    reason: String,
    total: usize,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
    /// The restarts of sidecars alone: those of other init containers are forgotten once the
    /// pod is initialized.
    sidecar_restarts: i64,
    sidecar_last_restart: Option<Timestamp>,
}

impl Tally {
    /// Reads the init containers up to the first unfinished one; whether there is one.
    fn count_init(&mut self, pod: &Value, sidecars: &[&str]) -> bool {
        let all = items(&pod["spec"]["initContainers"]).len();
        for (i, status) in items(&pod["status"]["initContainerStatuses"]).iter().enumerate() {
            let sidecar = sidecars.contains(&text(&status["name"]));
            self.restarts += number(&status["restartCount"]);
            self.last_restart = self.last_restart.max(last_restart(status));
            if sidecar {
                self.sidecar_restarts += number(&status["restartCount"]);
                self.sidecar_last_restart = self.sidecar_last_restart.max(last_restart(status));
            }
            let state = &status["state"];
            let terminated = &state["terminated"];
            if !terminated.is_null() && number(&terminated["exitCode"]) == 0 {
                continue;
            }
            if sidecar && status["started"] == true {
                self.ready += usize::from(status["ready"] == true);
                continue;
            }
            let waiting = text(&state["waiting"]["reason"]);
            self.reason = if !terminated.is_null() {
                format!("Init:{}", end(terminated))
            } else if !waiting.is_empty() && waiting != "PodInitializing" {
                format!("Init:{waiting}")
            } else {
                format!("Init:{i}/{all}")
            };
            return true;
        }
        false
    }

    fn forget_init(&mut self) {
        self.restarts = self.sidecar_restarts;
        self.last_restart = self.sidecar_last_restart;
    }

    fn count_containers(&mut self, pod: &Value) {
        let mut running = false;
        let mut failure = None;
        for status in items(&pod["status"]["containerStatuses"]).iter().rev() {
            self.restarts += number(&status["restartCount"]);
            self.last_restart = self.last_restart.max(last_restart(status));
            let state = &status["state"];
            let waiting = text(&state["waiting"]["reason"]);
            if !waiting.is_empty() {
                self.reason = waiting.to_owned();
            } else if !state["terminated"].is_null() {
                self.reason = end(&state["terminated"]);
                if number(&state["terminated"]["exitCode"]) != 0 {
                    failure = Some(self.reason.clone());
                }
            } else if status["ready"] == true && !state["running"].is_null() {
                running = true;
                self.ready += 1;
            }
        }
        // One finished container does not finish the pod.
        if self.reason == "Completed" {
            let ready = condition(pod, "Ready").is_some_and(|c| c["status"] == "True");
            match (running, ready, failure) {
                (true, true, _) => self.reason = "Running".to_owned(),
                (_, _, Some(failure)) => self.reason = failure,
                (true, false, None) => self.reason = "NotReady".to_owned(),
                (false, _, None) => {}
            }
        }
    }
}

/// How a container ended: its reason, else its signal, else its exit code.
fn end(terminated: &Value) -> String {
    match (text(&terminated["reason"]), number(&terminated["signal"])) {
        ("", 0) => format!("ExitCode:{}", number(&terminated["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

fn last_restart(status: &Value) -> Option<Timestamp> {
    status["lastState"]["terminated"]["finishedAt"].as_str()?.parse().ok()
}

fn restarts(pod: &Value, now: Timestamp) -> Value {
    let state = state(pod);
    match state.last_restart {
        Some(last) if state.restarts != 0 => {
            let ago = duration::human(duration::between(last, now));
            format!("{} ({ago} ago)", state.restarts).into()
        }
        _ => state.restarts.to_string().into(),
    }
}

fn ip(pod: &Value, _: Timestamp) -> Value {
    or_none(text(&pod["status"]["podIPs"][0]["ip"]))
}

fn readiness_gates(pod: &Value, _: Timestamp) -> Value {
    let gates = items(&pod["spec"]["readinessGates"]);
    if gates.is_empty() {
        return "<none>".into();
    }
    let open = gates.iter().filter(|gate| {
        condition(pod, text(&gate["conditionType"])).is_some_and(|c| c["status"] == "True")
    });
    format!("{}/{}", open.count(), gates.len()).into()
}
