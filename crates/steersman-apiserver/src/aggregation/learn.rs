//! What a server elsewhere tells of itself: its resources, and its documents of OpenAPI.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderValue, Request, StatusCode, header};
use serde_json::{Map, Value, json};

use super::headers::{aggregator, name_user};
use crate::state::Server;
use crate::state::remotes::{OpenApi, OpenApiV2, Remote, Told};

/// How long an answer may take.
const ANSWER_TIME: Duration = Duration::from_secs(5);

/// The largest answer, in bytes.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// Asks a server what it has.
pub(super) async fn ask(server: &Server, remote: &Remote) -> Result<Told, String> {
    let asking = Asking { server, remote };
    let resources = asking.resources().await?;
    // Without it kubectl explains nothing, and everything else works.
    let openapi = asking.openapi().await.unwrap_or_else(|why| {
        tracing::debug!(%why, name = remote.name, "aggregated API server has no OpenAPI");
        None
    });
    let openapi_v2 = asking.openapi_v2().await.unwrap_or_default();
    Ok(Told { current: true, resources: Some(resources), openapi, openapi_v2 })
}

/// Asks the servers that belong to this one for their documents of OpenAPI, if they have not told
/// them yet: of version 2, or of version 3.
pub(crate) async fn ask_residents(server: &Server, version_2: bool) {
    for remote in server.remotes.table().values().filter(|remote| remote.is_resident) {
        let asking = Asking { server, remote };
        let told = remote.told();
        let mut told = Told::clone(&told);
        let asked = match version_2 {
            true if told.openapi_v2.is_none() => asking.openapi_v2().await.map(|new| {
                told.openapi_v2 = new;
            }),
            false if told.openapi.is_none() => asking.openapi().await.map(|new| {
                told.openapi = new;
            }),
            _ => continue,
        };
        match asked {
            Ok(()) => remote.tell(told),
            Err(why) => tracing::warn!(%why, name = remote.name, "cannot read OpenAPI"),
        }
    }
}

struct Answer {
    code: StatusCode,
    content_type: String,
    etag: Option<HeaderValue>,
    body: Bytes,
}

#[derive(Clone, Copy)]
struct Asking<'a> {
    server: &'a Server,
    remote: &'a Remote,
}

impl Asking<'_> {
    /// The resources of the version, as aggregated discovery has them.
    async fn resources(self) -> Result<Value, String> {
        let all = self.get("/apis", AGGREGATED).await?;
        if all.code == StatusCode::OK && all.content_type.contains("g=apidiscovery.k8s.io") {
            let all: Value = read(&all.body)?;
            let Remote { group, version, .. } = self.remote;
            let groups = list(&all["items"]).filter(|g| g["metadata"]["name"] == group.as_str());
            let mut versions = groups.flat_map(|group| list(&group["versions"]));
            let found = versions.find(|known| known["version"] == version.as_str());
            return Ok(found.map_or_else(|| json!([]), |found| found["resources"].clone()));
        }
        if all.code == StatusCode::SERVICE_UNAVAILABLE {
            return Err(format!("answered {}", all.code));
        }
        let plain = self.get(&self.remote.base(), "application/json").await?;
        if plain.code != StatusCode::OK {
            return Err(format!("answered {}", plain.code));
        }
        let plain: Value = read(&plain.body)?;
        Ok(converted(&plain["resources"]))
    }

    /// The document of the version; the same as before is not asked for again.
    async fn openapi(self) -> Result<Option<OpenApi>, String> {
        let index = self.get("/openapi/v3", "application/json").await?;
        if index.code != StatusCode::OK {
            return Ok(None);
        }
        let index: Value = read(&index.body)?;
        let name = &self.remote.base()[1..];
        let url = index["paths"][name]["serverRelativeURL"].as_str();
        let Some(url) = url.filter(|url| url.starts_with('/')) else { return Ok(None) };
        let known = self.remote.told();
        if let Some(known) = known.openapi.as_ref().filter(|known| known.url == url) {
            return Ok(Some(known.clone()));
        }
        let document = self.get(url, "application/json").await?;
        if document.code != StatusCode::OK {
            return Ok(None);
        }
        read(&document.body)?;
        Ok(Some(OpenApi { url: url.to_owned(), document: document.body }))
    }

    /// What of the document of version 2 concerns the version.
    async fn openapi_v2(self) -> Result<Option<OpenApiV2>, String> {
        let known = self.remote.told().openapi_v2.clone();
        let etag = known.as_ref().and_then(|known| known.etag.clone());
        let document = self.ask("/openapi/v2", "application/json", etag).await?;
        match document.code {
            StatusCode::NOT_MODIFIED => return Ok(known),
            StatusCode::OK => {}
            _ => return Ok(None),
        }
        let Value::Object(mut whole) = read(&document.body)? else { return Ok(None) };
        let mut take = |field: &str| match whole.remove(field) {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        let (mut paths, definitions) = (take("paths"), take("definitions"));
        let base = format!("{}/", self.remote.base());
        paths.retain(|path, _| format!("{path}/").starts_with(&base));
        let definitions = referred(&paths, definitions);
        Ok(Some(OpenApiV2 {
            etag: document.etag,
            paths: Arc::new(paths),
            definitions: Arc::new(definitions),
        }))
    }

    async fn get(self, path: &str, accept: &'static str) -> Result<Answer, String> {
        self.ask(path, accept, None).await
    }

    async fn ask(
        self,
        path: &str,
        accept: &'static str,
        etag: Option<HeaderValue>,
    ) -> Result<Answer, String> {
        let Self { server, remote } = self;
        let request = Request::get(format!("{}{path}", remote.target.url));
        let request = request.header(header::ACCEPT, accept).body(Bytes::new());
        let mut request = request.map_err(|error| error.to_string())?;
        request.headers_mut().extend(etag.map(|etag| (header::IF_NONE_MATCH, etag)));
        name_user(request.headers_mut(), &aggregator());
        let answer = async {
            let opened = server.origins.open(&*server.store, &remote.target, request).await?;
            let (parts, mut pieces) = opened.into_parts();
            let mut body = Vec::new();
            while let Some(piece) = pieces.next().await {
                body.extend_from_slice(&piece.map_err(|broken| broken.to_string())?);
                if body.len() > ANSWER_MAX {
                    return Err("the answer is too large".to_owned());
                }
            }
            let content_type = parts.headers.get(header::CONTENT_TYPE);
            let content_type = content_type.and_then(|text| text.to_str().ok()).unwrap_or("");
            let content_type = content_type.to_owned();
            let etag = parts.headers.get(header::ETAG).cloned();
            Ok(Answer { code: parts.status, content_type, etag, body: body.into() })
        };
        let late = |_| "request timed out".to_owned();
        tokio::time::timeout(ANSWER_TIME, answer).await.map_err(late)?
    }
}

fn read(body: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(body).map_err(|error| error.to_string())
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The definitions that paths need, whether directly or through others.
fn referred(paths: &Map<String, Value>, mut all: Map<String, Value>) -> Map<String, Value> {
    let mut found = Map::new();
    let mut open: Vec<String> = paths.values().flat_map(references).collect();
    while let Some(name) = open.pop() {
        if let Some(definition) = all.remove(&name) {
            open.extend(references(&definition));
            found.insert(name, definition);
        }
    }
    found
}

/// The names of the definitions that a value refers to.
fn references(value: &Value) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let own = fields.get("$ref").and_then(Value::as_str);
            let own = own.and_then(|to| to.strip_prefix("#/definitions/")).map(ToOwned::to_owned);
            own.into_iter().chain(fields.values().flat_map(references)).collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

/// The resources of the plain form in the aggregated one.
fn converted(plain: &Value) -> Value {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let kind = |resource: &Value| {
        let [group, version, kind] = ["group", "version", "kind"].map(|f| text(&resource[f]));
        json!({"group": group, "version": version, "kind": kind})
    };
    let mut resources: Vec<Value> = Vec::new();
    for resource in list(plain) {
        let name = text(&resource["name"]);
        if let Some((parent, below)) = name.split_once('/') {
            let entry = json!({
                "subresource": below, "responseKind": kind(resource), "verbs": resource["verbs"],
            });
            let parent = resources.iter_mut().find(|known| known["resource"] == parent);
            if let Some(parent) = parent {
                match parent["subresources"].as_array_mut() {
                    Some(known) => known.push(entry),
                    None => parent["subresources"] = json!([entry]),
                }
            }
            continue;
        }
        let scope = if resource["namespaced"] == true { "Namespaced" } else { "Cluster" };
        let mut entry = json!({
            "resource": name, "responseKind": kind(resource), "scope": scope,
            "singularResource": text(&resource["singularName"]), "verbs": resource["verbs"],
        });
        for field in ["shortNames", "categories"] {
            if !resource[field].is_null() {
                entry[field] = resource[field].clone();
            }
        }
        resources.push(entry);
    }
    resources.into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::converted;

    #[test]
    fn the_plain_form_tells_the_same_as_the_aggregated_one() {
        let plain = json!([
            {"name": "tides", "singularName": "tide", "namespaced": true, "kind": "Tide",
             "verbs": ["get", "list"], "shortNames": ["td"]},
            {"name": "tides/status", "singularName": "", "namespaced": true, "kind": "Tide",
             "verbs": ["get"]},
        ]);
        let kind = json!({"group": "", "version": "", "kind": "Tide"});
        assert_eq!(
            converted(&plain),
            json!([{
                "resource": "tides", "responseKind": kind, "scope": "Namespaced",
                "singularResource": "tide", "verbs": ["get", "list"], "shortNames": ["td"],
                "subresources": [
                    {"subresource": "status", "responseKind": kind, "verbs": ["get"]},
                ],
            }])
        );
    }
}
