//! helm, unmodified, against the program: the life of a release that has hooks, and of charts in
//! the style of those that many use.

use std::collections::BTreeSet;
use std::process::Output;

use crate::program::{Program, assert_contains, words};

const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/chart");

const CHARTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/charts");

/// Both outputs of a helm command line, and whether it succeeded.
fn helm(program: &Program, line: &str) -> (bool, String) {
    let line = line.replace("CHART", CHART);
    let found = program.client("helm").args(words(&line)).output();
    let Output { status, stdout, stderr } = found.expect("`cargo xtask test` installs helm");
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn says(program: &Program, line: &str, parts: &[&str]) -> String {
    let (success, printed) = helm(program, line);
    assert!(success, "helm {line}: {printed}");
    assert_contains(line, &printed, parts);
    printed
}

const COLOUR: &str =
    "get cm shop-settings -o jsonpath='{.data.colour}{.data.found}{.data.deployments}'";

#[test]
fn a_release_is_installed_upgraded_rolled_back_and_uninstalled() {
    let program = &Program::up(&[]);
    says(program, "lint CHART", &["0 chart(s) failed"]);
    says(program, "template shop CHART", &["kind: Deployment", "helm.sh/hook: pre-install"]);
    says(program, "install shop CHART --dry-run=server", &["pending-install", "found: default"]);
    says(program, "install shop CHART --wait --timeout=60s", &["deployed", "The shop is blue."]);
    program.says(COLOUR, &["bluedefaultserved"]);
    program.says("get deployment shop-web", &["2/2"]);
    program.says("get jobs", &["shop-pre-install", "Complete"]);
    says(program, "list", &["shop-1.2.3", "deployed"]);
    says(program, "status shop", &["v1/Deployment", "shop-web"]);
    says(program, "test shop --timeout=60s", &["Succeeded"]);

    says(
        program,
        "upgrade shop CHART --set=colour=red,replicas=1 --wait --timeout=60s",
        &["upgraded"],
    );
    program.says(COLOUR, &["red"]);
    program.says("get deployment shop-web", &["1/1"]);
    says(program, "history shop", &["superseded", "Upgrade complete"]);
    says(program, "get values shop", &["colour: red"]);
    says(program, "get manifest shop", &["kind: Service"]);
    says(program, "get hooks shop", &["pre-delete"]);
    says(program, "rollback shop 1 --wait --timeout=60s", &["Rollback was a success"]);
    program.says(COLOUR, &["blue"]);
    program.says("get jobs", &["shop-post-rollback", "Complete"]);
    says(program, "history shop -o json", &["\"Rollback to 1\""]);

    says(program, "uninstall shop --wait --timeout=60s", &["release \"shop\" uninstalled"]);
    let left = program.says("get deployments,services,cm,secrets -o name", &[]);
    assert!(!left.contains("shop"), "{left}");
    program.says("get jobs", &["shop-pre-delete"]);
}

#[test]
fn a_release_that_fails_is_rolled_back() {
    let program = &Program::up(&[]);
    says(program, "upgrade --install shop CHART --wait --timeout=60s", &["deployed"]);
    // No node has this label, so the new pods never start.
    let stuck = "upgrade shop CHART --set=colour=red,nodeSelector.at=sea \
                 --rollback-on-failure --timeout=5s";
    let (success, printed) = helm(program, stuck);
    assert!(!success, "{printed}");
    says(program, "history shop", &["failed", "Rollback to 1"]);
    says(program, "status shop", &["STATUS: deployed", "REVISION: 3"]);
    program.says(COLOUR, &["blue"]);
    program.says("rollout status deployment/shop-web --timeout=60s", &["rolled out"]);
}

#[test]
fn what_others_own_is_not_taken_over_by_a_release() {
    let program = &Program::up(&[]);
    program.says("create configmap shop-settings --from-literal=colour=green", &[]);
    let (success, printed) = helm(program, "install shop CHART");
    assert!(!success && printed.contains("invalid ownership metadata"), "{printed}");
    says(
        program,
        "install shop CHART --take-ownership --force-conflicts --wait --timeout=60s",
        &["deployed"],
    );
    program.says(COLOUR, &["blue"]);
    says(program, "install other CHART --set=replicas=0", &["deployed"]);
    says(program, "list -q", &["other\nshop"]);
    says(program, "uninstall other shop --no-hooks --keep-history", &["uninstalled"]);
    says(program, "list --uninstalled", &["shop"]);
}

/// A chart, with whether its Pods can be waited for: those with claims may have to wait for others.
struct Style {
    chart: &'static str,
    waits: &'static str,
    /// What an upgrade changes.
    set: &'static str,
    /// Where that shows, and how before and after.
    shown: &'static str,
    values: [&'static str; 2],
}

/// How often it is asked whether everything is gone.
const QUESTIONS_MAX: usize = 60;

const WAIT: &str = "--wait --timeout=60s";

const STYLES: [Style; 6] = [
    Style {
        chart: "ingress",
        waits: WAIT,
        set: "logLevel=debug,replicas=2",
        shown: "get cm ingress -o jsonpath={.data.log-level}",
        values: ["info", "debug"],
    },
    Style {
        chart: "database",
        waits: "",
        set: "replicas=1,password=second",
        shown: "get statefulset database -o jsonpath={.spec.replicas}",
        values: ["2", "1"],
    },
    Style {
        chart: "migration",
        waits: WAIT,
        set: "level=2",
        shown: "get cm migration -o jsonpath={.data.level}",
        values: ["1", "2"],
    },
    Style {
        chart: "operator",
        waits: WAIT,
        set: "instance=nightly",
        shown: "get backups.operator.example.com -o jsonpath={.items[*].metadata.name}",
        values: ["", "nightly"],
    },
    Style {
        chart: "agent",
        waits: WAIT,
        set: "interval=30s",
        shown: "get cm agent -o jsonpath={.data.interval}",
        values: ["15s", "30s"],
    },
    Style {
        chart: "web",
        waits: WAIT,
        set: "image=registry.example.com/web:2,maxReplicas=4",
        shown: "get hpa web -o jsonpath={.spec.maxReplicas}",
        values: ["3", "4"],
    },
];

/// The names of all objects but those that come and go by themselves.
fn everything(program: &Program) -> BTreeSet<String> {
    let kinds = program.says("api-resources --verbs=list,delete -o name", &[]);
    let passing = ["events", "events.events.k8s.io", "leases.coordination.k8s.io"];
    let kinds: Vec<&str> = kinds.lines().filter(|kind| !passing.contains(kind)).collect();
    let line = format!("get {} -A -o name --ignore-not-found", kinds.join(","));
    program.says(&line, &[]).lines().map(str::to_owned).collect()
}

/// The life of one release.
fn live(program: &Program, style: &Style) {
    let Style { chart, waits, set, shown, values } = style;
    let path = format!("{CHARTS}/{chart}");
    let shows = |value: &str| assert_eq!(program.says(shown, &[]), value, "{chart}");
    says(program, &format!("install {chart} {path} {waits}"), &["deployed"]);
    shows(values[0]);
    says(program, &format!("upgrade {chart} {path} --set={set} {waits}"), &["upgraded"]);
    shows(values[1]);
    says(program, &format!("rollback {chart} 1 {waits}"), &["Rollback was a success"]);
    shows(values[0]);
    says(program, &format!("uninstall {chart} {WAIT}"), &["uninstalled"]);
}

#[test]
fn charts_of_many_styles_come_change_and_go_and_leave_nothing_behind() {
    let program = &Program::up(&["--pod-termination=0", "--load-balancer-pool=10.200.0.0/24"]);
    let before = everything(program);
    std::thread::scope(|scope| {
        for style in &STYLES {
            scope.spawn(|| live(program, style));
        }
    });
    // Every question takes a while.
    let left = || everything(program).difference(&before).cloned().collect::<Vec<String>>();
    let mut tries = (0..QUESTIONS_MAX).map(|_| left());
    assert!(tries.any(|left| left.is_empty()), "left behind: {:?}", left());
}
