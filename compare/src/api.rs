//! What the comparison asks of the API server, in documents.

use http::{Method, Request};
use serde_json::{Value, json};

/// The cluster's administrator.
#[derive(Clone)]
pub(crate) struct Api(pub(super) kube::Client);

impl Api {
    /// What is at a path; nothing if there is nothing.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Value>, String> {
        match self.send(Method::GET, path, None).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            answer => answer.map(Some).map_err(|error| format!("get {path}: {error}")),
        }
    }

    /// The objects at a path.
    pub(crate) async fn list(&self, path: &str) -> Result<Vec<Value>, String> {
        let list = self.get(path).await?.unwrap_or_default();
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Creates an object, with its status where only a second request takes that.
    pub(crate) async fn create(&self, object: &Value) -> Result<Value, String> {
        let created = self.send(Method::POST, &collection(object), Some(object)).await;
        let created = created.map_err(|error| format!("create {object}: {error}"))?;
        let apart = ["Pod", "PodDisruptionBudget", "PersistentVolume", "PersistentVolumeClaim"];
        let has_status = object["status"].is_object();
        if has_status && apart.iter().any(|kind| object["kind"] == *kind) {
            let path = format!("{}/status", path(object));
            let status = json!({"status": object["status"]});
            let written = self.send(Method::PATCH, &path, Some(&status)).await;
            return written.map_err(|error| format!("patch {path}: {error}"));
        }
        Ok(created)
    }

    /// Removes an object at once, if it is there.
    pub(crate) async fn remove(&self, object: &Value) -> Result<(), String> {
        let path = path(object);
        let at_once = json!({"gracePeriodSeconds": 0});
        match self.send(Method::DELETE, &path, Some(&at_once)).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            answer => answer.map(drop).map_err(|error| format!("delete {path}: {error}")),
        }
    }

    /// Changes what a merge patch says of the object that it names, or of a part of it.
    pub(crate) async fn patch(&self, patch: &Value, part: &str) -> Result<Value, String> {
        let path = format!("{}{part}", path(patch));
        let patched = self.send(Method::PATCH, &path, Some(patch)).await;
        patched.map_err(|error| format!("patch {path}: {error}"))
    }

    /// Deletes an object that is there.
    pub(crate) async fn delete(&self, object: &Value, options: &Value) -> Result<(), String> {
        let path = path(object);
        let deleted = self.send(Method::DELETE, &path, Some(options)).await;
        deleted.map(drop).map_err(|error| format!("delete {path}: {error}"))
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let kind = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        self.0.request(request.body(body).map_err(kube::Error::HttpError)?).await
    }
}

/// Where the objects of a kind are.
fn collection(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&object["apiVersion"]);
    let root = if version.contains('/') { "/apis" } else { "/api" };
    let plural = plural(text(&object["kind"]).to_lowercase());
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{version}/{plural}"),
    }
}

fn plural(kind: String) -> String {
    match kind.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None if kind == "endpoints" => kind,
        None if kind.ends_with('s') => kind + "es",
        None => kind + "s",
    }
}

/// Where an object is.
pub(crate) fn path(object: &Value) -> String {
    format!("{}/{}", collection(object), object["metadata"]["name"].as_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_have_their_places() {
        for (version, kind, namespace, expected) in [
            ("v1", "Node", None, "/api/v1/nodes/x"),
            ("v1", "Pod", Some("a"), "/api/v1/namespaces/a/pods/x"),
            ("v1", "Endpoints", Some("a"), "/api/v1/namespaces/a/endpoints/x"),
            ("policy/v1", "Policy", None, "/apis/policy/v1/policies/x"),
            ("storage.k8s.io/v1", "StorageClass", None, "/apis/storage.k8s.io/v1/storageclasses/x"),
        ] {
            let object = json!({
                "apiVersion": version, "kind": kind,
                "metadata": {"name": "x", "namespace": namespace},
            });
            assert_eq!(path(&object), expected);
        }
    }
}
