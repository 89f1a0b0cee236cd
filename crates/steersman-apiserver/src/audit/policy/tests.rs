//! Rules and requests, by upstream's cases.

use crate::authz::{Attributes, Target};
use crate::user::User;

use super::{Level, Policy, Stage};

/// A rule by its name, in YAML.
fn rule(name: &str) -> &'static str {
    match name {
        "default" => "{level: Metadata}",
        "create" => "{level: Request, verbs: [create]}",
        "tims" => "{level: Metadata, users: [tim@k8s.io]}",
        "humans" => "{level: Metadata, userGroups: [humans]}",
        "serviceAccounts" => "{level: Request, userGroups: ['system:serviceaccounts']}",
        "getPods" => "{level: RequestResponse, verbs: [get], resources: [{resources: [pods]}]}",
        "getPodLogs" => "{level: Request, verbs: [get], resources: [{resources: [pods/log]}]}",
        "anything" => "{level: Request, verbs: [get], resources: [{resources: ['*']}]}",
        "anyLog" => "{level: Request, verbs: [get], resources: [{resources: ['*/log']}]}",
        "anyOfPods" => "{level: Request, verbs: [get], resources: [{resources: ['pods/*']}]}",
        "getClusterRoles" => {
            "{level: RequestResponse, verbs: [get], namespaces: [''], \
             resources: [{group: rbac.authorization.k8s.io, resources: [clusterroles]}]}"
        }
        "anyStatus" => {
            "{level: RequestResponse, verbs: [update], \
             resources: [{group: '*', resources: ['*/status']}]}"
        }
        "getLogs" => "{level: RequestResponse, verbs: [get], nonResourceURLs: ['/logs*']}",
        "getMetrics" => "{level: Request, verbs: [get], nonResourceURLs: ['/metrics']}",
        "clusterRoleEdit" => {
            "{level: Request, resources: [{group: rbac.authorization.k8s.io, \
             resources: [clusterroles], resourceNames: [edit]}]}"
        }
        "omitReceived" => "{level: Request, omitStages: [RequestReceived]}",
        "onlyPanic" => {
            "{level: Request, omitStages: [RequestReceived, ResponseStarted, ResponseComplete]}"
        }
        other => panic!("no rule {other}"),
    }
}

fn policy(stages: &str, rules: &[&str]) -> Policy {
    let rules: Vec<&str> = rules.iter().map(|name| rule(name)).collect();
    let rules = rules.join(", ");
    let text = format!(
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [{stages}]\nrules: [{rules}]\n"
    );
    Policy::parse(&text).unwrap()
}

/// What a request by its name asks for, and by whom.
fn request(name: &str) -> (Option<User>, &'static str, Target<'static>) {
    let tim = Some(User::known("tim@k8s.io", &["humans"]));
    let pod = |subresource| Target::Resource {
        group: "",
        resource: "pods",
        subresource,
        namespace: "default",
        name: "busybox",
    };
    let role = |subresource, name| Target::Resource {
        group: "rbac.authorization.k8s.io",
        resource: "clusterroles",
        subresource,
        namespace: "",
        name,
    };
    match name {
        "namespaced" => (tim, "get", pod("")),
        "cluster" => (tim, "get", role("", "edit")),
        "nonResource" => (tim, "get", Target::Path("/logs/kubelet.log")),
        "subresource" => (tim, "get", pod("log")),
        "unauthorized" => (None, "get", pod("")),
        "clusterRoleUpdate" => (tim, "update", role("status", "somerole")),
        other => panic!("no request {other}"),
    }
}

fn verdict(policy: &Policy, name: &str) -> super::Verdict {
    let (user, verb, target) = request(name);
    let nobody = User::default();
    policy.judge(user.as_ref(), &Attributes::new(user.as_ref().unwrap_or(&nobody), verb, target))
}

#[test]
fn the_first_rule_that_matches_decides_the_level() {
    use Level::{Metadata, None, Request, RequestResponse};
    let cases: &[(&str, Level, &[&str])] = &[
        ("namespaced", Metadata, &["default"]),
        ("namespaced", None, &["create"]),
        ("namespaced", Metadata, &["tims"]),
        ("namespaced", Metadata, &["humans"]),
        ("namespaced", None, &["serviceAccounts"]),
        ("namespaced", RequestResponse, &["getPods"]),
        ("namespaced", None, &["getClusterRoles"]),
        ("namespaced", None, &["getLogs"]),
        ("namespaced", None, &["getMetrics"]),
        ("namespaced", Metadata, &["getMetrics", "serviceAccounts", "default"]),
        ("namespaced", RequestResponse, &["getMetrics", "getPods", "default"]),
        ("namespaced", RequestResponse, &["getPodLogs", "getPods"]),
        ("cluster", Metadata, &["default"]),
        ("cluster", None, &["create"]),
        ("cluster", Metadata, &["tims"]),
        ("cluster", Metadata, &["humans"]),
        ("cluster", None, &["serviceAccounts"]),
        ("cluster", None, &["getPods"]),
        ("cluster", RequestResponse, &["getClusterRoles"]),
        ("cluster", Request, &["clusterRoleEdit", "getClusterRoles"]),
        ("cluster", None, &["getLogs"]),
        ("cluster", None, &["getMetrics"]),
        ("cluster", Metadata, &["getMetrics", "serviceAccounts", "default"]),
        ("cluster", RequestResponse, &["getMetrics", "getClusterRoles", "default"]),
        ("cluster", None, &["getPodLogs", "getPods"]),
        ("nonResource", Metadata, &["default"]),
        ("nonResource", None, &["create"]),
        ("nonResource", Metadata, &["tims"]),
        ("nonResource", Metadata, &["humans"]),
        ("nonResource", None, &["serviceAccounts"]),
        ("nonResource", None, &["getPods"]),
        ("nonResource", None, &["getClusterRoles"]),
        ("nonResource", RequestResponse, &["getLogs"]),
        ("nonResource", None, &["getMetrics"]),
        ("nonResource", Metadata, &["getMetrics", "serviceAccounts", "default"]),
        ("nonResource", RequestResponse, &["getLogs", "getClusterRoles", "default"]),
        ("nonResource", None, &["getPodLogs", "getPods"]),
        ("subresource", Request, &["getPodLogs", "getPods"]),
        ("subresource", None, &["getPods"]),
        ("subresource", Request, &["anything"]),
        ("subresource", Request, &["anyLog"]),
        ("subresource", Request, &["anyOfPods"]),
        ("unauthorized", None, &["tims"]),
        ("unauthorized", Metadata, &["tims", "default"]),
        ("unauthorized", None, &["humans"]),
        ("unauthorized", Metadata, &["humans", "default"]),
        ("clusterRoleUpdate", RequestResponse, &["anyStatus"]),
    ];
    for (name, level, rules) in cases {
        for stages in ["", "RequestReceived, ResponseStarted"] {
            let found = verdict(&policy(stages, rules), name);
            assert_eq!(found.level, *level, "{name} {rules:?}");
            let omits = found.omitted.contain(Stage::ResponseStarted);
            assert_eq!(omits, !stages.is_empty(), "{name} {rules:?}");
        }
    }
}

#[test]
fn stages_are_omitted_by_the_policy_and_by_the_rule() {
    use Stage::{Panic, RequestReceived, ResponseComplete, ResponseStarted};
    let all = [RequestReceived, ResponseStarted, ResponseComplete, Panic];
    let cases: &[(&str, &[&str], [bool; 4])] = &[
        ("", &["default"], [false; 4]),
        ("", &["omitReceived", "getPods"], [true, false, false, false]),
        ("", &["onlyPanic", "getPods"], [true, true, true, false]),
        ("ResponseStarted", &["omitReceived"], [true, true, false, false]),
        ("RequestReceived, Panic", &["omitReceived"], [true, false, false, true]),
        ("RequestReceived", &["create"], [true, false, false, false]),
    ];
    for (stages, rules, expected) in cases {
        let found = verdict(&policy(stages, rules), "namespaced").omitted;
        assert_eq!(all.map(|stage| found.contain(stage)), *expected, "{stages} {rules:?}");
    }
}

#[test]
fn managed_fields_are_omitted_as_the_rule_says_else_as_the_policy_does() {
    for (policy, rule, expected) in [
        ("", "", false),
        ("omitManagedFields: true\n", "", true),
        ("omitManagedFields: true\n", ", omitManagedFields: false", false),
        ("", ", omitManagedFields: true", true),
    ] {
        let text = format!(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\n{policy}rules: [{{level: Request{rule}}}]\n"
        );
        let found = verdict(&Policy::parse(&text).unwrap(), "namespaced");
        assert_eq!(found.omit_managed_fields, expected, "{policy}{rule}");
    }
}

#[test]
fn paths_are_covered_by_themselves_and_by_what_ends_in_a_star() {
    for (url, path, expected) in [
        ("*", "/anything", true),
        ("/metrics", "/metrics", true),
        ("/metrics", "/metrics/x", false),
        ("/healthz*", "/healthz", true),
        ("/healthz*", "/healthz/ping", true),
        ("/healthz/*", "/healthz", false),
    ] {
        assert_eq!(super::covers(url, path), expected, "{url} {path}");
    }
}

#[test]
fn what_a_policy_may_not_say_is_told_in_the_words_of_kubernetes() {
    let levels = "supported values: \"None\", \"Metadata\", \"Request\", \"RequestResponse\"";
    let stages = "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic";
    let cases = [
        ("{}", "rules[0].level: Required value".to_owned()),
        ("{level: X}", format!("rules[0].level: Unsupported value: \"X\": {levels}")),
        (
            "{level: None, omitStages: [foo]}",
            format!("rules[0].omitStages[0]: Invalid value: \"foo\": {stages}"),
        ),
        (
            "{level: None, nonResourceURLs: [logs]}",
            "rules[0].nonResourceURLs[0]: Invalid value: \"logs\": non-resource URL rules must \
             begin with a '/' character"
                .to_owned(),
        ),
        (
            "{level: None, nonResourceURLs: ['/logs/*/x']}",
            "rules[0].nonResourceURLs[0]: Invalid value: \"/logs/*/x\": non-resource URL \
             wildcards '*' must be the final character of the rule"
                .to_owned(),
        ),
        (
            "{level: None, namespaces: [a], nonResourceURLs: ['/logs']}",
            "rules[0].nonResourceURLs: Invalid value: [\"/logs\"]: rules cannot apply to both \
             regular resources and non-resource URLs"
                .to_owned(),
        ),
        (
            "{level: None, resources: [{resourceNames: [a]}]}",
            "rules[0].resources.resourceNames: Invalid value: [\"a\"]: using resourceNames \
             requires at least one resource"
                .to_owned(),
        ),
    ];
    for (rule, expected) in cases {
        let text = format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{rule}]\n");
        assert_eq!(Policy::parse(&text).unwrap_err().to_string(), expected, "{rule}");
    }
    for (text, expected) in [
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\n", "loaded illegal policy with 0 rules"),
        (
            "apiVersion: audit.k8s.io/v2\nkind: Policy\n",
            "unknown group version field audit.k8s.io/v2, Kind=Policy in policy",
        ),
        ("rules: []", "unknown group version field /, Kind= in policy"),
    ] {
        assert_eq!(Policy::parse(text).unwrap_err().to_string(), expected);
    }
}
