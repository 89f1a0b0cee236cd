//! Every route that discovery lists, tried by those who should not get far.

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};
use steersman_apiserver::user::User;

use super::evaluator::World;
use super::{binding, bindings};
use crate::api::Api;

/// A resource of discovery, or a subresource.
struct Route {
    group: String,
    root: String,
    resource: String,
    subresource: String,
    namespaced: bool,
}

async fn routes(api: &Api) -> Vec<Route> {
    let mut roots = vec![(String::new(), "/api/v1".to_owned())];
    for group in api.get("/apis").await.ok()["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let path = format!("/apis/{}", version["groupVersion"].as_str().unwrap());
            roots.push((group["name"].as_str().unwrap().to_owned(), path));
        }
    }
    let mut routes = Vec::new();
    for (group, root) in roots {
        for resource in api.get(&root).await.ok()["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            let (resource_name, subresource) = name.split_once('/').unwrap_or((name, ""));
            routes.push(Route {
                group: group.clone(),
                root: root.clone(),
                resource: resource_name.to_owned(),
                subresource: subresource.to_owned(),
                namespaced: resource["namespaced"] == true,
            });
        }
    }
    routes
}

/// One way to ask, and what is asked for.
struct Asked {
    method: Method,
    path: String,
    attributes: Value,
}

/// Everything that could be asked of a route in a namespace, or at the scope of the cluster.
fn ways(route: &Route, namespace: &str) -> Vec<Asked> {
    let Route { group, root, resource, subresource, .. } = route;
    let folder = match namespace {
        "" => format!("{root}/{resource}"),
        namespace => format!("{root}/namespaces/{namespace}/{resource}"),
    };
    let verbs: &[(Method, &str, bool)] = &[
        (Method::GET, "get", true),
        (Method::GET, "list", false),
        (Method::POST, "create", false),
        (Method::PUT, "update", true),
        (Method::PATCH, "patch", true),
        (Method::DELETE, "delete", true),
        (Method::DELETE, "deletecollection", false),
    ];
    let mut ways = Vec::new();
    for (method, verb, named) in verbs {
        // A subresource is always one of a named object, and has no collection.
        if !subresource.is_empty() && matches!(*verb, "list" | "deletecollection") {
            continue;
        }
        let is_named = *named || !subresource.is_empty();
        let name = if is_named { "x" } else { "" };
        let mut path = folder.clone();
        if is_named {
            path.push_str("/x");
        }
        if !subresource.is_empty() {
            path.push_str(&format!("/{subresource}"));
        }
        // A namespace is in itself.
        let place = if resource == "namespaces" { name } else { namespace };
        let attributes = json!({
            "verb": verb, "path": "", "group": group, "resource": resource,
            "subresource": subresource, "namespace": place, "name": name,
        });
        ways.push(Asked { method: method.clone(), path, attributes });
    }
    ways
}

/// Whether a request was refused for lack of a permission.
async fn is_refused(api: &Api, user: &User, asked: &Asked) -> bool {
    let request = Request::builder().method(asked.method.clone()).uri(&asked.path);
    let content_type = match asked.method {
        Method::PATCH => "application/merge-patch+json",
        _ => "application/json",
    };
    let request = request.header(header::CONTENT_TYPE, content_type).extension(user.clone());
    let answer = api.send(request.body(Full::new("{}".into())).unwrap()).await;
    let says = String::from_utf8_lossy(&answer.bytes).into_owned();
    answer.code == 403 && says.contains(" cannot ")
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_further_than_roles_allow_on_any_route() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": "other"}})).await.ok();
    api.post(&bindings("default"), &binding("b", "ClusterRole", "edit", "editor")).await.ok();
    api.post(&bindings(""), &binding("v", "ClusterRole", "view", "viewer")).await.ok();
    let world = World::of(&api).await;
    let users = [
        User::anonymous(),
        User::known("nobody", &[]),
        User::known("editor", &[]),
        User::known("viewer", &[]),
        User::service_account("other", "default"),
    ];
    let mut allowed = [0; 5];
    let mut tried = 0;
    for route in routes(&api).await {
        let scopes: &[&str] = if route.namespaced { &["default", "other", ""] } else { &[""] };
        for asked in scopes.iter().flat_map(|namespace| ways(&route, namespace)) {
            for (count, user) in allowed.iter_mut().zip(&users) {
                let mut question = asked.attributes.clone();
                question["user"] = user.name.as_str().into();
                question["groups"] = json!(user.groups);
                let may = world.allows(&question);
                let refused = is_refused(&api, user, &asked).await;
                assert_eq!(refused, !may, "{} {} by {}", asked.method, asked.path, user.name);
                *count += usize::from(may);
                tried += 1;
            }
        }
    }
    let [stranger, nobody, editor, viewer, account] = allowed;
    assert!(tried > 7_000, "{tried}");
    assert_eq!(stranger, 0);
    // Questions about oneself.
    assert_eq!((nobody, account), (3, 3));
    assert!(editor > 200 && viewer > 100, "{editor} {viewer}");
}

#[tokio::test(start_paused = true)]
async fn nobody_reads_paths_beyond_what_roles_allow() {
    let api = Api::start().await;
    let world = World::of(&api).await;
    let root = api.get("/").await.ok();
    let mut paths: Vec<&str> =
        root["paths"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    paths.extend(["/", "/metrics", "/logs/", "/debug/pprof/", "/nonsense", "/version/"]);
    let mut read_by_strangers = Vec::new();
    for user in [User::anonymous(), User::known("nobody", &[])] {
        for path in &paths {
            let asked = json!({
                "user": user.name, "groups": user.groups, "verb": "get", "path": path, "namespace": "",
            });
            let may = world.allows(&asked);
            let way = Asked { method: Method::GET, path: (*path).to_owned(), attributes: asked };
            assert_eq!(is_refused(&api, &user, &way).await, !may, "{path} by {}", user.name);
            if may && user.is_anonymous() {
                read_by_strangers.push(*path);
            }
        }
    }
    read_by_strangers.sort_unstable();
    read_by_strangers.dedup();
    assert_eq!(read_by_strangers, ["/healthz", "/livez", "/readyz", "/version", "/version/"]);
}
