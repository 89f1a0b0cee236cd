//! The paths below an object: status, scale and the others.

use serde_json::{Value, json};
use steersman_rules::resource::Subresource;

use super::make;
use crate::corpus::kinds::{Kind, Place};
use crate::step::{Body, Language, Scenario, Step};

pub(super) fn steps(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    make(kind, place, scenario);
    for part in &kind.resource.subresources {
        let path = format!("{}/{}", kind.path(place, "x"), part.name);
        let part = Part { name: &part.name, path, part };
        part.read(scenario);
        part.update(scenario);
        part.patch(scenario);
        part.create(scenario);
        part.missing(kind, place, scenario);
    }
    let path = kind.path(place, "x");
    for name in ["status", "scale", "odd", "log", "proxy", "exec"] {
        if kind.resource.subresource(name).is_none() {
            let path = format!("{path}/{name}");
            scenario.add(Step::get(format!("absent-{name}"), &path));
            let patch = Step::patch(format!("absent-{name}-patch"), &path, Language::Merge, "{}");
            scenario.add(patch);
        }
    }
    scenario.add(Step::get("stored", &path));
}

struct Part<'a> {
    name: &'a str,
    path: String,
    part: &'a Subresource,
}

impl Part<'_> {
    fn id(&self, id: &str) -> String {
        format!("{}-{id}", self.name)
    }

    fn read(&self, scenario: &mut Scenario) {
        let forms = [
            ("get", "application/json"),
            ("get-yaml", "application/yaml"),
            ("get-protobuf", "application/vnd.kubernetes.protobuf"),
            ("get-table", "application/json;as=Table;v=v1;g=meta.k8s.io"),
            ("get-metadata", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
        ];
        for (id, form) in forms {
            let step = Step::get(self.id(id), &self.path).accept(form);
            scenario.add(if id == "get" { step.keep("part") } else { step });
        }
    }

    fn update(&self, scenario: &mut Scenario) {
        let put = |id: &str, change: Value| {
            Step::put(self.id(id), &self.path, Body::Kept("part", change))
        };
        scenario.add(put("put", json!({})));
        let changes = [
            ("put-label", json!({"metadata": {"labels": {"part": "put"}}})),
            ("put-annotation", json!({"metadata": {"annotations": {"part": "put"}}})),
            ("put-finalizer", json!({"metadata": {"finalizers": ["example.com/x"]}})),
            (
                "put-owner",
                json!({"metadata": {"ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u"}]}}),
            ),
            ("put-rv-zero", json!({"metadata": {"resourceVersion": "0"}})),
            ("put-rv-empty", json!({"metadata": {"resourceVersion": ""}})),
            ("put-rv-odd", json!({"metadata": {"resourceVersion": "abc"}})),
            ("put-rv-stale", json!({"metadata": {"resourceVersion": "1"}})),
            ("put-name", json!({"metadata": {"name": "other"}})),
            ("put-namespace", json!({"metadata": {"namespace": "other"}})),
            ("put-uid", json!({"metadata": {"uid": "other"}})),
            ("put-kind", json!({"kind": "Other"})),
            ("put-no-type", json!({"kind": null, "apiVersion": null})),
            ("put-spec", json!({"spec": null})),
            ("put-status", json!({"status": null})),
            ("put-replicas", json!({"spec": {"replicas": 2}})),
            ("put-replicas-negative", json!({"spec": {"replicas": -2}})),
            ("put-replicas-text", json!({"spec": {"replicas": "x"}})),
        ];
        for (id, change) in changes {
            let mut change = change;
            if change["metadata"]["resourceVersion"].is_null() {
                change["metadata"]["resourceVersion"] = Value::Null;
            }
            scenario.add(put(id, change).dry());
        }
        let written = json!({"metadata": {"resourceVersion": null, "labels": {"part": "written"},
            "annotations": {"part": "written"}}});
        scenario.add(put("put-written", written));
        for (id, body) in [("put-empty", ""), ("put-cut", "{"), ("put-object", "{}")] {
            scenario.add(Step::put(self.id(id), &self.path, body).dry());
        }
    }

    fn patch(&self, scenario: &mut Scenario) {
        let condition = json!({"type": "Odd", "status": "True", "reason": "R", "message": "m",
            "lastTransitionTime": "2025-01-01T00:00:00Z"});
        let changes = [
            ("label", json!({"metadata": {"labels": {"part": "patched"}}})),
            ("annotation", json!({"metadata": {"annotations": {"part": "patched"}}})),
            ("conditions", json!({"status": {"conditions": [condition]}})),
            ("conditions-odd", json!({"status": {"conditions": [{"type": ""}]}})),
            ("observed", json!({"status": {"observedGeneration": 1}})),
            ("observed-negative", json!({"status": {"observedGeneration": -1}})),
            ("replicas", json!({"spec": {"replicas": 3}})),
            ("replicas-negative", json!({"spec": {"replicas": -3}})),
            ("status-replicas", json!({"status": {"replicas": 1}})),
            ("status-replicas-negative", json!({"status": {"replicas": -1}})),
            ("phase", json!({"status": {"phase": "Odd"}})),
            ("status-is-text", json!({"status": "x"})),
            ("status-is-null", json!({"status": null})),
            ("spec", json!({"spec": {"unknown": 1}})),
            ("rv-stale", json!({"metadata": {"resourceVersion": "1"}})),
            ("rv-zero", json!({"metadata": {"resourceVersion": "0"}})),
            ("uid", json!({"metadata": {"uid": "other"}})),
        ];
        for (id, change) in &changes {
            for language in [Language::Merge, Language::Strategic] {
                let id = self.id(&format!("{}-{id}", language.name()));
                scenario.add(Step::patch(id, &self.path, language, change).dry());
            }
        }
        for (id, change) in changes.iter().take(5) {
            let id = self.id(&format!("written-{id}"));
            scenario.add(Step::patch(id, &self.path, Language::Merge, change));
        }
        let test = json!([{"op": "test", "path": "/kind", "value": "Nothing"}]);
        scenario.add(Step::patch(self.id("json-test"), &self.path, Language::Json, test));
        let add = json!([{"op": "add", "path": "/metadata/labels/json", "value": "a"}]);
        scenario.add(Step::patch(self.id("json-add"), &self.path, Language::Json, add));
        let applied = |change: Value| Body::Kept("part", change);
        let bare = json!({"metadata": {"managedFields": null, "uid": null, "resourceVersion": null,
            "creationTimestamp": null, "generation": null}});
        let step =
            Step::patch(self.id("apply"), &self.path, Language::Apply, applied(bare.clone()));
        scenario.add(step.query("fieldManager=part"));
        let step = Step::patch(self.id("apply-alone"), &self.path, Language::Apply, applied(bare));
        scenario.add(step);
    }

    fn create(&self, scenario: &mut Scenario) {
        let (group, version) = match &self.part.group_version {
            Some((group, version)) => (group.to_string(), version.to_string()),
            None => (String::new(), "v1".into()),
        };
        let api_version = if group.is_empty() { version } else { format!("{group}/{version}") };
        let typed = |fields: Value| {
            let mut object = json!({"apiVersion": api_version, "kind": &*self.part.kind});
            if let (Some(object), Some(fields)) = (object.as_object_mut(), fields.as_object()) {
                object.extend(fields.clone());
            }
            object
        };
        let bodies = [
            ("post-empty", Value::Null),
            ("post", typed(json!({}))),
            ("post-other", typed(json!({"metadata": {"name": "other"}}))),
            ("post-named", typed(json!({"metadata": {"name": "x"}}))),
            ("post-spec", typed(json!({"spec": {"expirationSeconds": 600, "audiences": ["a"]}}))),
            ("post-spec-odd", typed(json!({"spec": {"expirationSeconds": 1}}))),
            ("post-target", typed(json!({"metadata": {"name": "x"}, "target": {"kind": "Node"}}))),
            ("post-odd-target", typed(json!({"target": {"kind": "Odd", "name": "n"}}))),
            (
                "post-options",
                typed(json!({"metadata": {"name": "x"}, "deleteOptions": {
                "preconditions": {"uid": "other"}}})),
            ),
            (
                "post-bound",
                typed(json!({"metadata": {"name": "x"}, "target": {
                "kind": "Node", "name": "n"}})),
            ),
        ];
        for (id, body) in bodies {
            let body = if body.is_null() { Body::Empty } else { body.into() };
            scenario.add(Step::post(self.id(id), &self.path, body));
        }
        scenario.add(Step::delete(self.id("delete"), &self.path));
    }

    fn missing(&self, kind: &Kind, place: &Place, scenario: &mut Scenario) {
        let path = format!("{}/{}", kind.path(place, "missing"), self.name);
        scenario.add(Step::get(self.id("missing"), &path));
        let object = kind.object(place, "missing");
        scenario.add(Step::put(self.id("missing-put"), &path, object));
        scenario.add(Step::patch(self.id("missing-patch"), &path, Language::Merge, "{}"));
        let post = json!({"apiVersion": "v1", "kind": &*self.part.kind});
        scenario.add(Step::post(self.id("missing-post"), &path, post));
    }
}
