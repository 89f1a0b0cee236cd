//! The bootstrap policy: the roles and bindings that a server has from the start.

use crate::step::{Scenario, Step, Tidy};

/// One list of each kind. What a user has made does not have the label.
pub(super) fn scenario() -> Scenario {
    let mut scenario = Scenario::new("policy", Tidy::default());
    for plural in ["clusterroles", "clusterrolebindings", "roles", "rolebindings"] {
        let group = "/apis/rbac.authorization.k8s.io/v1";
        let path = format!("{group}/{plural}?labelSelector=kubernetes.io/bootstrapping");
        scenario.add(Step::get(plural, &path));
    }
    scenario
}
