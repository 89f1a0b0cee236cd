//! Whom the API server is told to trust.

use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};

use super::shops;
use crate::serve::{Authority, Trusted, Validity};
use crate::webhook::injection::{Bundle, CaInjection};

/// The paths of objects and the objects; patches that fail first.
#[derive(Default)]
struct Server {
    objects: Vec<(&'static str, Value)>,
    failures: usize,
    patches: usize,
    /// What nobody may look at.
    hidden: Option<&'static str>,
}

fn answer(status: u16, body: &Value) -> Response<Full<Bytes>> {
    let body = Full::new(Bytes::from(body.to_string()));
    Response::builder().status(status).body(body).unwrap()
}

impl Server {
    fn get(&self, path: &str) -> Response<Full<Bytes>> {
        if self.hidden.is_some_and(|hidden| path.contains(hidden)) {
            let status = json!({"kind": "Status", "code": 403, "reason": "Forbidden",
                                "message": "no", "status": "Failure"});
            return answer(403, &status);
        }
        match self.objects.iter().find(|(found, _)| *found == path) {
            Some((_, object)) => answer(200, object),
            None if path.ends_with("configurations") || path.ends_with("definitions") => {
                let parent = |found: &str| found.rsplit_once('/').is_some_and(|(p, _)| p == path);
                let labelled = self.objects.iter().filter(|(found, object)| {
                    parent(found) && !object["metadata"]["labels"].is_null()
                });
                let items: Vec<&Value> = labelled.map(|(_, object)| object).collect();
                answer(
                    200,
                    &json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}),
                )
            }
            None => answer(
                404,
                &json!({"kind": "Status", "code": 404, "reason": "NotFound",
                                        "message": "not found", "status": "Failure"}),
            ),
        }
    }

    fn patch(&mut self, path: &str, patch: &[u8]) -> Response<Full<Bytes>> {
        self.patches += 1;
        if self.failures > 0 {
            self.failures -= 1;
            return answer(500, &json!({"kind": "Status", "code": 500, "message": "no"}));
        }
        let (_, object) = self.objects.iter_mut().find(|(found, _)| *found == path).unwrap();
        let patch: json_patch::Patch = serde_json::from_slice(patch).unwrap();
        json_patch::patch(object, &patch).unwrap();
        answer(200, object)
    }
}

fn client(server: &Arc<Mutex<Server>>) -> kube::Client {
    let server = Arc::clone(server);
    let service = tower::service_fn(move |request: Request<Body>| {
        let server = Arc::clone(&server);
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let mut server = server.lock().unwrap();
            let path = head.uri.path();
            Ok::<_, std::convert::Infallible>(match head.method {
                Method::GET => server.get(path),
                Method::PATCH => server.patch(path, &body),
                _ => answer(StatusCode::METHOD_NOT_ALLOWED.as_u16(), &Value::Null),
            })
        }
    });
    kube::Client::new(service, "default")
}

const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/shop-validating";
const LABELLED: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/other";
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/shops.demo.steersman.dev";

fn objects() -> Vec<(&'static str, Value)> {
    let metadata = |name: &str| json!({"name": name, "resourceVersion": "1"});
    let mut labelled = json!({"metadata": metadata("other"),
        "webhooks": [{"name": "c", "clientConfig": {}}]});
    labelled["metadata"]["labels"] = json!({"inject": "yes"});
    vec![
        (
            VALIDATING,
            json!({"metadata": metadata("shop-validating"), "webhooks": [
                {"name": "a", "clientConfig": {"url": "u", "caBundle": "b2xk"}, "new": 1},
                {"name": "b", "clientConfig": {"url": "u"}},
            ]}),
        ),
        (LABELLED, labelled),
        (
            DEFINITION,
            json!({"metadata": metadata("shops.demo.steersman.dev"), "spec": {
            "conversion": {"strategy": "Webhook", "webhook": {"clientConfig": {"url": "u"}}}}}),
        ),
    ]
}

/// From long ago until long from now.
fn authority(name: &str) -> Trusted {
    let from = Timestamp::UNIX_EPOCH;
    let validity = Validity { from, until: Timestamp::constant(9_999_999_999, 0) };
    Authority::make(name, validity).unwrap().certificate
}

fn now() -> Timestamp {
    Timestamp::constant(1_900_000_000, 0)
}

fn encoded(trusted: &[&Trusted]) -> String {
    STANDARD.encode(trusted.iter().map(|trusted| trusted.pem.as_str()).collect::<String>())
}

fn named() -> CaInjection {
    CaInjection {
        validating: vec!["shop-validating".to_owned()],
        definitions: vec!["shops.demo.steersman.dev".to_owned()],
        labels: Some("inject=yes".to_owned()),
        ..CaInjection::default()
    }
}

#[tokio::test]
async fn the_authority_is_written_wherever_it_belongs_and_once() {
    let server =
        Arc::new(Mutex::new(Server { objects: objects(), failures: 1, ..Server::default() }));
    let ours = authority("shop-webhook-ca");
    let trusted = [ours.clone()];
    let inject = || async {
        named().inject(&client(&server), &Bundle { trusted: &trusted, now: now() }).await
    };
    assert!(inject().await.is_err(), "one failed, the others did not");
    inject().await.unwrap();
    let bundles = || -> Vec<Value> {
        let server = server.lock().unwrap();
        let objects: Vec<&Value> = server.objects.iter().map(|(_, object)| object).collect();
        vec![
            objects[0]["webhooks"][0]["clientConfig"]["caBundle"].clone(),
            objects[0]["webhooks"][1]["clientConfig"]["caBundle"].clone(),
            objects[1]["webhooks"][0]["clientConfig"]["caBundle"].clone(),
            objects[2]["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"].clone(),
        ]
    };
    assert_eq!(bundles(), vec![json!(encoded(&[&ours])); 4]);
    let patches = || server.lock().unwrap().patches;
    assert_eq!(patches(), 4, "one failed, three objects");
    inject().await.unwrap();
    assert_eq!(patches(), 4, "nothing is written that is there");
}

#[tokio::test]
async fn whoever_is_trusted_stays_so_until_the_authority_expires() {
    let ours = authority("shop-webhook-ca");
    let theirs = authority("shop-webhook-ca"); // of a replica that has not seen ours yet
    let former = authority("by-hand"); // of whoever served before
    let past = Timestamp::constant(1_000_000_000, 0);
    let expired = Validity { from: Timestamp::UNIX_EPOCH, until: past };
    let expired = Authority::make("shop-webhook-ca", expired).unwrap().certificate;
    let mut objects = objects();
    let found = encoded(&[&former, &expired, &theirs]);
    objects[0].1["webhooks"][0]["clientConfig"]["caBundle"] = found.into();
    let server = Arc::new(Mutex::new(Server { objects, ..Server::default() }));
    let bundle = Bundle { trusted: std::slice::from_ref(&ours), now: now() };
    named().inject(&client(&server), &bundle).await.unwrap();
    let written = server.lock().unwrap().objects[0].1.clone();
    let written = written["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap().to_owned();
    let written = Trusted::read_all(&STANDARD.decode(written).unwrap());
    assert_eq!(written.len(), 3);
    assert!([&ours, &theirs, &former].into_iter().all(|trusted| written.contains(trusted)));
}

#[tokio::test]
async fn who_may_not_look_at_some_still_writes_the_others() {
    let hidden = Some("mutatingwebhookconfigurations");
    let server = Server { objects: objects(), hidden, ..Server::default() };
    let server = Arc::new(Mutex::new(server));
    let ours = authority("shop-webhook-ca");
    let injection = CaInjection { mutating: vec!["other".to_owned()], ..named() };
    let bundle = Bundle { trusted: std::slice::from_ref(&ours), now: now() };
    assert!(injection.inject(&client(&server), &bundle).await.is_err());
    let written = server.lock().unwrap().objects[0].1.clone();
    assert_eq!(written["webhooks"][1]["clientConfig"]["caBundle"], encoded(&[&ours]));
}

#[test]
fn only_a_server_that_made_its_certificate_knows_its_authority() {
    assert!(shops().ca().is_none());
}
