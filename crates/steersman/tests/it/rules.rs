//! Rules in CEL from their author's side: derived from types, refused with a reason, and priced.

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steersman::Result;
use steersman_testkit::{Cluster, RuleCost, RuleCosts};

/// A fleet whose rules stand on the whole, on a field, and on what may not change.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[kube(group = "rules.steersman.dev", version = "v1", kind = "Fleet", namespaced)]
#[x_kube(
    validation = ("self.boats.size() <= self.berths", "there are more boats than berths"),
    validation = Rule::new("self.harbour == oldSelf.harbour")
        .message("the harbour stays")
        .field_path(".harbour")
        .reason(Reason::FieldValueForbidden)
)]
struct FleetSpec {
    berths: u32,
    #[x_kube(validation = "self.startsWith('port-')")]
    #[schemars(length(max = 40))]
    harbour: String,
    #[schemars(length(max = 20))]
    boats: Vec<Boat>,
}

#[derive(Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[x_kube(validation = Rule::new("self.masts > 0")
    .message(Message::Expression("'a boat needs a mast' + (self.masts < 0 ? ' or two' : '')".into())))]
struct Boat {
    masts: i32,
}

fn fleet(berths: u32, harbour: &str, masts: &[i32]) -> Fleet {
    let boats = masts.iter().map(|masts| Boat { masts: *masts }).collect();
    let mut fleet = Fleet::new("argo", FleetSpec { berths, harbour: harbour.to_owned(), boats });
    fleet.metadata.namespace = Some("default".to_owned());
    fleet
}

async fn refusal(cluster: &Cluster, fleet: &Fleet) -> String {
    cluster.client().create(fleet).await.unwrap_err().to_string()
}

#[steersman::test(anywhere)]
async fn rules_that_are_derived_from_types_are_enforced(cluster: Cluster) -> Result<()> {
    cluster.install::<Fleet>().await?;
    for (wrong, expected) in [
        (fleet(1, "port-royal", &[1, 1]), "spec: Invalid value: there are more boats than berths"),
        (
            fleet(1, "royal", &[1]),
            "spec.harbour: Invalid value: \"royal\": failed rule: self.startsWith('port-')",
        ),
        (fleet(1, "port-royal", &[0]), "spec.boats[0]: Invalid value: a boat needs a mast"),
    ] {
        let why = refusal(&cluster, &wrong).await;
        assert!(why.contains(expected), "{why}");
    }
    let mut sound = fleet(2, "port-royal", &[1, 2]);
    sound.metadata.namespace = Some(cluster.namespace().to_owned());
    cluster.client().create(&sound).await?;
    let patch = kube::api::Patch::Merge(json!({"spec": {"harbour": "port-said"}}));
    let fleets: kube::Api<Fleet> =
        kube::Api::namespaced(cluster.client().kube().clone(), cluster.namespace());
    let why = fleets.patch("argo", &Default::default(), &patch).await.unwrap_err().to_string();
    assert!(why.contains("spec.harbour: Forbidden: the harbour stays"), "{why}");
    Ok(())
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[kube(group = "rules.steersman.dev", version = "v1", kind = "Wreck")]
struct WreckSpec {
    #[x_kube(validation = "self.mast > 0")]
    masts: i32,
}

#[steersman::test(anywhere)]
async fn a_rule_that_does_not_compile_is_told_with_its_place_and_the_reason(cluster: Cluster) {
    let why = cluster.install::<Wreck>().await.unwrap_err().to_string();
    for part in [
        "wrecks.rules.steersman.dev",
        "properties[spec].properties[masts].x-kubernetes-validations[0].rule",
        "self.mast > 0",
        "compilation failed: ERROR: <input>:1:5: type 'int' does not support field selection",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let why = RuleCosts::of(&Wreck::new("mary", WreckSpec { masts: 1 })).unwrap_err().to_string();
    assert!(why.contains("does not support field selection"), "{why}");
}

#[test]
fn a_rule_is_priced_on_an_object_and_on_the_largest_one() {
    let costs = |masts: &[i32]| RuleCosts::of(&fleet(20, "port-royal", masts)).unwrap();
    let [few, many] = [costs(&[1]), costs(&[1; 20])];
    let of = |costs: &RuleCosts, rule: &str| costs.rule(rule).unwrap().clone();
    assert_eq!(of(&few, "self.masts > 0").evaluations, 1);
    let on_boats = of(&many, "self.masts > 0");
    assert_eq!(on_boats.evaluations, 20);
    assert!(on_boats.estimated < RuleCost::ESTIMATED_MAX);
    assert!(many.actual() > few.actual() && many.actual() < RuleCost::ACTUAL_TOTAL_MAX);
    assert_eq!(many.estimated(), few.estimated());
    // Nothing is compared where there is nothing to compare with.
    let stays = "self.harbour == oldSelf.harbour";
    assert_eq!(of(&few, stays).evaluations, 0);
    let change = RuleCosts::of_change(&fleet(1, "port-royal", &[]), &fleet(2, "port-royal", &[]));
    assert_eq!(of(&change.unwrap(), stays).evaluations, 1);
    let shown = many.to_string();
    assert!(shown.contains("properties[spec]") && shown.contains("of 10000000"), "{shown}");
}

#[steersman::test(anywhere)]
async fn a_definition_whose_rules_could_cost_too_much_is_refused(cluster: Cluster) {
    let definition: Value = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "armadas.rules.steersman.dev"},
        "spec": {
            "group": "rules.steersman.dev", "scope": "Namespaced",
            "names": {"plural": "armadas", "kind": "Armada"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": {
                    "type": "object",
                    "x-kubernetes-validations": [
                        {"rule": "self.boats.all(a, self.boats.exists(b, a == b))"},
                    ],
                    "properties": {"boats": {"type": "array", "items": {"type": "string"}}},
                }}},
            }}],
        },
    });
    let why = cluster.define(&serde_json::from_value(definition).unwrap()).await.unwrap_err();
    let why = why.to_string();
    assert!(
        why.contains("estimated rule cost exceeds budget by factor of more than 100x"),
        "{why}"
    );
}
