//! What the server says of a definition: its names, whether it is served, what it was stored as.

use serde_json::{Value, json};

use crate::api::{Api, seconds_pass};
use crate::apply::apply;
use crate::crd::{DEFINITIONS, WIDGETS, condition, definition, until_gone, widget};

/// A definition of the same group with these names.
fn named(plural: &str, names: &Value) -> Value {
    let mut other = definition();
    other["metadata"]["name"] = format!("{plural}.example.com").into();
    other["spec"]["names"] = names.clone();
    other["spec"]["names"]["plural"] = plural.into();
    other
}

fn kinds(definition: &Value) -> Vec<&str> {
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    conditions.iter().map(|condition| condition["type"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn conditions_have_kubernetes_order_reasons_and_messages() {
    let api = Api::start().await;
    let created = api.post(DEFINITIONS, &definition()).await.ok();
    assert_eq!(kinds(&created), ["NamesAccepted", "Established"]);
    for (kind, reason, message) in [
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    ] {
        let found = condition(&created, kind);
        assert_eq!((&found["status"], &found["reason"]), (&json!("True"), &json!(reason)));
        assert_eq!(found["message"], message);
        assert_eq!(found["lastTransitionTime"], "2025-01-01T00:00:00Z");
    }
}

#[tokio::test(start_paused = true)]
async fn the_server_owns_what_it_says_and_who_applies_something_else_conflicts_with_it() {
    let api = Api::start().await;
    let created = api.post(DEFINITIONS, &definition()).await.ok();
    let managers = created["metadata"]["managedFields"].as_array().unwrap();
    let own = managers.iter().find(|entry| entry["manager"] == "kube-apiserver").unwrap();
    assert_eq!((&own["operation"], &own["subresource"]), (&json!("Update"), &json!("status")));
    let status = &own["fieldsV1"]["f:status"];
    assert_eq!(status["f:acceptedNames"]["f:plural"], json!({}));
    let established = &status["f:conditions"]["k:{\"type\":\"Established\"}"];
    assert_eq!((&established["."], &established["f:status"]), (&json!({}), &json!({})));
    assert!(status["f:storedVersions"].is_null());

    seconds_pass(2).await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let labelled = json!({"metadata": {"labels": {"a": "b"}}});
    let changed = api.merge(&path, &labelled).await.ok();
    let kept = changed["metadata"]["managedFields"].as_array().unwrap();
    assert!(kept.contains(own), "{kept:?}");

    let condition = json!({
        "type": "Established", "status": "False", "reason": "Mine", "message": "m",
        "lastTransitionTime": "2025-01-01T00:00:00Z",
    });
    let applied = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"}, "status": {"conditions": [condition]},
    });
    let status = apply(&api, &format!("{path}/status"), "me", &applied).await.refused(409);
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("\"kube-apiserver\""), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_in_a_group_of_the_community_tells_of_its_approval() {
    let api = Api::start().await;
    let of = |annotation: &str| {
        let mut protected = definition();
        protected["metadata"]["name"] = "widgets.x-k8s.k8s.io".into();
        protected["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": annotation});
        protected["spec"]["group"] = "x-k8s.k8s.io".into();
        protected
    };
    let why = "see https://github.com/kubernetes/enhancements/pull/1111";
    let must = "protected groups must have approval annotation \"api-approved.kubernetes.io\"";
    for (given, expected) in [
        ("", format!("Required value: {must}, {why}")),
        (
            "sure",
            format!(
                "Invalid value: \"sure\": {must} with either a URL or a reason starting with \
                 \"unapproved\", {why}"
            ),
        ),
    ] {
        let status = api.post(DEFINITIONS, &of(given)).await.refused(422);
        let message = status["message"].as_str().unwrap();
        let field = "metadata.annotations[api-approved.kubernetes.io]";
        assert!(message.ends_with(&format!("{field}: {expected}")), "{message}");
    }
    let created = api.post(DEFINITIONS, &of("unapproved, a test")).await.ok();
    let kind = "KubernetesAPIApprovalPolicyConformant";
    assert_eq!(kinds(&created), [kind, "NamesAccepted", "Established"]);
    let told = condition(&created, kind);
    assert_eq!(
        (&told["status"], &told["reason"]),
        (&json!("False"), &json!("UnapprovedAnnotation"))
    );
    assert_eq!(told["message"], "not approved: \"unapproved, a test\"");
    let path = format!("{DEFINITIONS}/widgets.x-k8s.k8s.io");
    let approved = json!({"metadata": {"annotations": {
        "api-approved.kubernetes.io": "https://example.com/1",
    }}});
    let changed = api.merge(&path, &approved).await.ok();
    let told = condition(&changed, kind);
    assert_eq!((&told["status"], &told["reason"]), (&json!("True"), &json!("ApprovedAnnotation")));
    assert_eq!(told["message"], "approved in https://example.com/1");
    let missing = json!({"metadata": {"annotations": null}});
    api.merge(&path, &missing).await.refused(422);
}

#[tokio::test(start_paused = true)]
async fn each_name_is_given_or_refused_by_itself_and_the_last_conflict_is_told() {
    let api = Api::start().await;
    let mut first = definition();
    first["spec"]["names"]["shortNames"] = json!(["wd", "wi"]);
    api.post(DEFINITIONS, &first).await.ok();
    for (plural, names, reason, message, accepted) in [
        (
            "gadgets",
            json!({"kind": "Widget"}),
            "ListKindConflict",
            "\"WidgetList\" is already in use",
            json!({"plural": "gadgets", "kind": ""}),
        ),
        (
            "things",
            json!({"kind": "Thing", "singular": "widget", "categories": ["all"]}),
            "SingularConflict",
            "\"widget\" is already in use",
            json!({
                "plural": "things", "kind": "Thing", "listKind": "ThingList", "categories": ["all"],
            }),
        ),
        (
            "items",
            json!({"kind": "Item", "shortNames": ["wd", "it", "wi"]}),
            "ShortNamesConflict",
            "[\"wd\" is already in use, \"wi\" is already in use]",
            json!({"plural": "items", "singular": "item", "kind": "Item", "listKind": "ItemList"}),
        ),
    ] {
        let mut other = named(plural, &names);
        if plural == "gadgets" {
            other["spec"]["names"]["singular"] = "widget".into();
        }
        let created = api.post(DEFINITIONS, &other).await.ok();
        let told = condition(&created, "NamesAccepted");
        assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!(reason)));
        assert_eq!(told["message"], message);
        assert_eq!(created["status"]["acceptedNames"], accepted, "{plural}");
        let told = condition(&created, "Established");
        assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("NotAccepted")));
        assert_eq!(told["message"], "not all names are accepted");
        api.get(&format!("/apis/example.com/v1/namespaces/default/{plural}")).await.no_page();
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_its_owner_gives_up_goes_to_who_waits_for_it() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    let waiting = named("gadgets", &json!({"kind": "Gadget", "shortNames": ["wd"]}));
    api.post(DEFINITIONS, &waiting).await.ok();
    let gadgets = "/apis/example.com/v1/namespaces/default/gadgets";
    api.get(gadgets).await.no_page();
    let mut events = api.watch(&format!("{DEFINITIONS}?watch=1")).await;
    events.brief().await;
    events.brief().await;
    let change = json!({"spec": {"names": {"shortNames": ["other"]}}});
    api.merge(&format!("{DEFINITIONS}/widgets.example.com"), &change).await.ok();
    assert_eq!(events.brief().await.1, "widgets.example.com");
    let given = events.next().await.unwrap();
    assert_eq!(given["object"]["metadata"]["name"], "gadgets.example.com");
    assert_eq!(given["object"]["status"]["acceptedNames"]["shortNames"], json!(["wd"]));
    assert_eq!(condition(&given["object"], "NamesAccepted")["status"], "True");
    assert_eq!(condition(&given["object"], "Established")["status"], "True");
    api.get(gadgets).await.ok();
}

#[tokio::test(start_paused = true)]
async fn what_is_served_keeps_its_names_until_it_gets_others() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    let others = named("gadgets", &json!({"kind": "Gadget", "shortNames": ["gd"]}));
    api.post(DEFINITIONS, &others).await.ok();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let change = json!({"spec": {"names": {"shortNames": ["gd"], "categories": ["mine"]}}});
    let changed = api.merge(&path, &change).await.ok();
    assert_eq!(condition(&changed, "NamesAccepted")["reason"], "ShortNamesConflict");
    assert_eq!(condition(&changed, "Established")["status"], "True");
    assert_eq!(changed["status"]["acceptedNames"]["shortNames"], json!(["wd"]));
    let resources = api.get("/apis/example.com/v1").await.ok();
    let served = resources["resources"].as_array().unwrap();
    let widgets = served.iter().find(|resource| resource["name"] == "widgets").unwrap();
    assert_eq!(widgets["shortNames"], json!(["wd"]));
    assert_eq!(widgets["categories"], json!(["mine"]));
    api.get(WIDGETS).await.ok();
    api.delete(&format!("{DEFINITIONS}/gadgets.example.com")).await.ok();
    until_gone(&api, "gadgets.example.com").await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let settled = api.get(&path).await.ok();
    assert_eq!(settled["status"]["acceptedNames"]["shortNames"], json!(["gd"]));
    assert_eq!(condition(&settled, "NamesAccepted")["status"], "True");
}

#[tokio::test(start_paused = true)]
async fn a_definition_waits_for_the_authority_of_its_webhook() {
    let api = Api::start().await;
    let mut early = definition();
    let webhook = |bundle: &str| {
        json!({"strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://convert.test/", "caBundle": bundle},
        }})
    };
    // A line break, as some generators write it for others to replace.
    early["spec"]["conversion"] = webhook("Cg==");
    let created = api.post(DEFINITIONS, &early).await.ok();
    assert_eq!(condition(&created, "NamesAccepted")["status"], "True");
    let told = condition(&created, "Established");
    assert_eq!((&told["status"], &told["reason"]), (&json!("False"), &json!("InvalidCABundle")));
    assert_eq!(told["message"], "The conversion webhook CABundle is invalid");
    api.get(WIDGETS).await.no_page();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let established = api.merge(&path, &json!({"spec": {"conversion": webhook("")}})).await.ok();
    assert_eq!(condition(&established, "Established")["status"], "True");
    let broken = json!({"spec": {"conversion": webhook("Cg==")}});
    let status = api.merge(&path, &broken).await.refused(422);
    assert_eq!(
        status["message"],
        "CustomResourceDefinition.apiextensions.k8s.io \"widgets.example.com\" is invalid: \
         spec.conversion.webhookClientConfig.caBundle: Invalid value: \"Cg==\": unable to load root \
         certificates: unable to parse bytes as PEM block"
    );
}

#[tokio::test(start_paused = true)]
async fn a_version_leaves_only_when_nothing_is_stored_in_it() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let mut changed = api.get(&path).await.ok();
    changed["spec"]["versions"][0]["storage"] = false.into();
    changed["spec"]["versions"][1]["storage"] = true.into();
    let mut changed = api.put(&path, &changed).await.ok();
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(changed["metadata"]["generation"], 2);
    // What is there stays as it is until it is written again; all versions show it.
    let v2 = "/apis/example.com/v2/namespaces/default/widgets/a";
    assert_eq!(api.get(v2).await.ok()["apiVersion"], "example.com/v2");
    changed["spec"]["versions"].as_array_mut().unwrap().remove(0);
    let status = api.put(&path, &changed).await.refused(422);
    assert_eq!(
        status["message"],
        "CustomResourceDefinition.apiextensions.k8s.io \"widgets.example.com\" is invalid: \
         status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was \
         previously a storage version, and must remain in spec.versions until a storage migration \
         ensures no data remains persisted in v1 and removes v1 from status.storedVersions"
    );
    api.merge(v2, &json!({"metadata": {"labels": {"migrated": "yes"}}})).await.ok();
    let migrated = json!({"status": {"storedVersions": ["v2"]}});
    let mut changed = api.merge(&format!("{path}/status"), &migrated).await.ok();
    assert_eq!(changed["status"]["storedVersions"], json!(["v2"]));
    changed["spec"]["versions"].as_array_mut().unwrap().remove(0);
    api.put(&path, &changed).await.ok();
    api.get(WIDGETS).await.no_page();
    assert_eq!(api.get(v2).await.ok()["spec"]["size"], 1);
}
