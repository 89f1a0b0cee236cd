//! Policies whose expressions do not fit the kinds that they are about.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::Patch;
use serde_json::{Value, json};
use steersman::Result;
use steersman_testkit::Cluster;

use crate::objects::object;

/// A policy about resources of a group: the expressions of its validations.
fn policy(name: &str, [group, resource]: [&str; 2], expressions: &[&str]) -> Value {
    let validations: Vec<Value> =
        expressions.iter().map(|expression| json!({ "expression": expression })).collect();
    json!({"metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": [{
            "apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"],
            "resources": [resource],
        }]},
        "validations": validations,
    }})
}

/// What is told of a policy once its generation is checked: the fields, and what is wrong in each.
async fn checked(cluster: &Cluster, name: &str, generation: i64) -> Result<Vec<(String, String)>> {
    let observed = |policy: &ValidatingAdmissionPolicy| {
        policy.status.as_ref().and_then(|status| status.observed_generation)
    };
    cluster.eventually(name, |policy| observed(policy) == Some(generation)).await?;
    let policy: Option<ValidatingAdmissionPolicy> = cluster.client().get(name).await?;
    let status = policy.and_then(|policy| policy.status);
    let type_checking = status.and_then(|status| status.type_checking);
    let type_checking = type_checking.expect("a policy that is checked says so");
    let warnings = type_checking.expression_warnings.unwrap_or_default();
    Ok(warnings.into_iter().map(|told| (told.field_ref, told.warning)).collect())
}

/// A kind with an integer, `size`.
fn boxes() -> CustomResourceDefinition {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
    }});
    object(json!({
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        },
    }))
}

#[steersman::test]
async fn a_policy_tells_which_expressions_do_not_fit_its_kinds(cluster: Cluster) -> Result<()> {
    let client = cluster.client();
    let create = async |policy: Value| {
        client.create::<ValidatingAdmissionPolicy>(&object(policy)).await.map(drop)
    };
    let wrong = "object.replicas > 1";
    let right = "object.spec.replicas > 1 && \
                 object.spec.template.spec.containers.all(c, has(c.image)) && \
                 object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')";
    create(policy("replicas", ["apps", "deployments"], &[right, wrong])).await?;
    let warning = "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n \
                   | object.replicas > 1\n | ......^\n";
    let told = checked(&cluster, "replicas", 1).await?;
    assert_eq!(told, [("spec.validations[1].expression".to_owned(), warning.to_owned())]);

    let corrected = json!({"spec": {"validations": [{"expression": right}]}});
    client.patch::<ValidatingAdmissionPolicy, _>("replicas", &Patch::Merge(corrected)).await?;
    assert_eq!(checked(&cluster, "replicas", 2).await?, []);
    let stored: ValidatingAdmissionPolicy = client.get("replicas").await?.unwrap();
    let managers = stored.metadata.managed_fields.unwrap_or_default();
    let writer = managers.iter().find(|entry| entry.subresource.as_deref() == Some("status"));
    let writer = writer.and_then(|entry| entry.manager.as_deref());
    assert_eq!(writer, Some("validatingadmissionpolicy-status"));

    // Which kinds are meant is not looked up, so nothing is checked.
    create(policy("everything", ["*", "*"], &[wrong])).await?;
    assert_eq!(checked(&cluster, "everything", 1).await?, []);

    // Custom kinds, as objects and as parameters.
    client.create(&boxes()).await?;
    let established = |definition: &CustomResourceDefinition| {
        json!(definition.status).to_string().contains("Established")
    };
    cluster.eventually("boxes.example.com", established).await?;
    let expressions = ["object.spec.size < params.spec.size", "object.spec.width < params.max"];
    let mut sizes = policy("sizes", ["example.com", "boxes"], &expressions);
    sizes["spec"]["paramKind"] = json!({"apiVersion": "example.com/v1", "kind": "Box"});
    create(sizes).await?;
    let told = checked(&cluster, "sizes", 1).await?;
    assert_eq!(told.len(), 1, "{told:?}");
    let (field, warning) = &told[0];
    assert_eq!(field, "spec.validations[1].expression");
    assert!(warning.starts_with("example.com/v1, Kind=Box: ERROR: <input>:1:12: "), "{warning}");
    for field in ["undefined field 'width'", "undefined field 'max'"] {
        assert!(warning.contains(field), "{warning}");
    }
    Ok(())
}
