//! Discovery and OpenAPI documents.

use std::collections::BTreeSet;

use super::kinds::Kind;
use crate::step::{Scenario, Step, Subject, Tidy};

/// Aggregated discovery, in its versions, and forms that it does not have.
const FORMS: [(&str, &str); 6] = [
    ("plain", "application/json"),
    ("v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    ("v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"),
    (
        "client-go",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
         application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
    ),
    ("v7", "application/json;g=apidiscovery.k8s.io;v=v7;as=APIGroupDiscoveryList"),
    ("protobuf", "application/vnd.kubernetes.protobuf"),
];

pub(super) fn scenarios(kinds: &[Kind]) -> Vec<Scenario> {
    vec![discovery(kinds), openapi(kinds)]
}

fn discovery(kinds: &[Kind]) -> Scenario {
    let mut scenario = Scenario::new("discovery", Tidy::default());
    let mut paths: BTreeSet<String> = BTreeSet::new();
    for kind in kinds {
        let group = &kind.resource.group;
        let version = &kind.resource.version;
        if !group.is_empty() {
            paths.insert(format!("/apis/{group}"));
            paths.insert(format!("/apis/{group}/{version}"));
        }
    }
    paths.insert("/api/v1".into());
    for path in paths {
        for (id, accept) in [FORMS[0], ("yaml", "application/yaml")] {
            let step = Step::get(format!("{id} {path}"), &path).accept(accept);
            scenario.add(step.subject(Subject::Discovery));
        }
    }
    for path in ["/api", "/apis"] {
        for (id, accept) in FORMS {
            let step = Step::get(format!("{id} {path}"), path).accept(accept);
            scenario.add(step.subject(Subject::Discovery));
        }
    }
    scenario.add(Step::get("version", "/version").subject(Subject::Discovery));
    scenario
}

fn openapi(kinds: &[Kind]) -> Scenario {
    let mut scenario = Scenario::new("openapi", Tidy::default());
    scenario.add(Step::get("v2", "/openapi/v2").subject(Subject::OpenApi));
    scenario.add(Step::get("v3", "/openapi/v3").subject(Subject::OpenApi));
    let mut paths: BTreeSet<String> = ["api", "apis", "version", "api/v1"].map(String::from).into();
    for kind in kinds.iter().filter(|kind| !kind.resource.group.is_empty()) {
        let group = &kind.resource.group;
        let version = &kind.resource.version;
        paths.insert(format!("apis/{group}"));
        paths.insert(format!("apis/{group}/{version}"));
    }
    for path in paths {
        let step = Step::get(format!("v3 {path}"), &format!("/openapi/v3/{path}"));
        scenario.add(step.subject(Subject::OpenApi));
    }
    scenario.add(Step::get("v3 odd", "/openapi/v3/apis/odd/v1"));
    scenario
}
