//! Tokens of service accounts: asked for, used, reviewed, and worth nothing when what they are
//! bound to is gone.

use http::{HeaderMap, header};
use serde_json::{Value, json};
use steersman_apiserver::identity;
use steersman_apiserver::user::User;

use crate::api::{Api, pod, seconds_pass};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const PODS: &str = "/api/v1/namespaces/default/pods";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

async fn account(api: &Api) -> Value {
    api.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.ok()
}

async fn request(api: &Api, spec: Value) -> Value {
    let request =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
    api.post(&format!("{ACCOUNTS}/robot/token"), &request).await.ok()
}

fn token(answer: &Value) -> &str {
    answer["status"]["token"].as_str().unwrap()
}

async fn bearer(api: &Api, token: &str) -> Result<User, u16> {
    let mut headers = HeaderMap::new();
    headers.insert(header::AUTHORIZATION, format!("Bearer {token}").parse().unwrap());
    api.server.authenticate(&headers, None).await.map_err(|status| status.code)
}

async fn review(api: &Api, spec: Value) -> Value {
    api.post(REVIEWS, &json!({"spec": spec})).await.ok()["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_token_stands_for_its_account_until_it_expires() {
    let api = Api::start().await;
    let robot = account(&api).await;
    let answer = request(&api, json!({"expirationSeconds": 600})).await;
    assert_eq!(answer["kind"], "TokenRequest");
    assert_eq!(answer["spec"]["audiences"], json!([ISSUER]));
    assert!(answer["spec"].as_object().unwrap().contains_key("boundObjectRef"));
    assert_eq!(answer["status"]["expirationTimestamp"], "2025-01-01T00:10:00Z");
    let user = bearer(&api, token(&answer)).await.unwrap();
    assert_eq!(user.name, "system:serviceaccount:default:robot");
    assert_eq!(
        user.groups,
        ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    );
    assert_eq!(user.uid, robot["metadata"]["uid"]);
    assert!(user.extra["authentication.kubernetes.io/credential-id"][0].starts_with("JTI="));
    // A minute more, for clocks that differ.
    seconds_pass(659).await;
    bearer(&api, token(&answer)).await.unwrap();
    seconds_pass(2).await;
    assert_eq!(bearer(&api, token(&answer)).await.unwrap_err(), 401);
}

#[tokio::test(start_paused = true)]
async fn a_token_is_worth_nothing_when_its_account_was_made_anew() {
    let api = Api::start().await;
    account(&api).await;
    let answer = request(&api, json!({})).await;
    api.delete(&format!("{ACCOUNTS}/robot")).await.ok();
    assert_eq!(bearer(&api, token(&answer)).await.unwrap_err(), 401);
    account(&api).await;
    assert_eq!(bearer(&api, token(&answer)).await.unwrap_err(), 401);
}

#[tokio::test(start_paused = true)]
async fn a_token_bound_to_a_pod_tells_the_pod_and_its_node_and_ends_with_the_pod() {
    let api = Api::start().await;
    account(&api).await;
    let node = api.post("/api/v1/nodes", &json!({"metadata": {"name": "n1"}})).await.ok();
    let mut object = pod("p");
    object["spec"]["serviceAccountName"] = "robot".into();
    object["spec"]["nodeName"] = "n1".into();
    let object = api.post(PODS, &object).await.ok();
    let bound =
        json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": object["metadata"]["uid"]});
    let answer = request(&api, json!({"boundObjectRef": bound})).await;
    let user = bearer(&api, token(&answer)).await.unwrap();
    let extra = |key: &str| user.extra[&format!("authentication.kubernetes.io/{key}")][0].clone();
    assert_eq!((extra("pod-name").as_str(), extra("node-name").as_str()), ("p", "n1"));
    assert_eq!(extra("pod-uid"), object["metadata"]["uid"]);
    assert_eq!(extra("node-uid"), node["metadata"]["uid"]);

    let reviewed = review(&api, json!({"token": token(&answer)})).await;
    assert_eq!(reviewed["authenticated"], true);
    assert_eq!(reviewed["audiences"], json!([ISSUER]));
    assert_eq!(reviewed["user"]["extra"]["authentication.kubernetes.io/pod-name"], json!(["p"]));

    api.delete(&format!("{PODS}/p")).await.ok();
    bearer(&api, token(&answer)).await.unwrap();
    seconds_pass(91).await;
    assert_eq!(bearer(&api, token(&answer)).await.unwrap_err(), 401);
    api.delete(&format!("{PODS}/p?gracePeriodSeconds=0")).await.ok();
    assert_eq!(bearer(&api, token(&answer)).await.unwrap_err(), 401);
    let reviewed = review(&api, json!({"token": token(&answer)})).await;
    assert_eq!(reviewed.get("authenticated"), None, "what is false is left out");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_for_its_audiences_alone() {
    let api = Api::start().await;
    account(&api).await;
    let answer = request(&api, json!({"audiences": ["vault", "bank"]})).await;
    assert_eq!(bearer(&api, token(&answer)).await.unwrap_err(), 401);
    let here = review(&api, json!({"token": token(&answer)})).await;
    assert_eq!(here.get("authenticated"), None);
    let vault =
        review(&api, json!({"token": token(&answer), "audiences": ["vault", "other"]})).await;
    assert_eq!((&vault["authenticated"], &vault["audiences"]), (&json!(true), &json!(["vault"])));
}

#[tokio::test(start_paused = true)]
async fn a_forged_token_is_refused() {
    let api = Api::start().await;
    account(&api).await;
    let answer = request(&api, json!({})).await;
    let (body, signature) = token(&answer).rsplit_once('.').unwrap();
    let reversed: String = signature.chars().rev().collect();
    for forged in [format!("{body}.{reversed}"), format!("{body}."), "a.b.c".to_owned()] {
        assert_eq!(bearer(&api, &forged).await.unwrap_err(), 401, "{forged}");
    }
    let other = Api::start().await;
    account(&other).await;
    request(&other, json!({})).await;
    assert_eq!(bearer(&other, token(&answer)).await.unwrap_err(), 401);
}

#[tokio::test(start_paused = true)]
async fn odd_requests_for_tokens_are_refused() {
    let api = Api::start().await;
    account(&api).await;
    api.post(PODS, &pod("p")).await.ok();
    let path = format!("{ACCOUNTS}/robot/token");
    let bind = |version: &str, kind: &str, name: &str| json!({"spec": {"boundObjectRef": {"apiVersion": version, "kind": kind, "name": name}}});
    for (request, code, expected) in [
        (
            json!({"spec": {"expirationSeconds": 599}}),
            422,
            "may not specify a duration less than 10 minutes",
        ),
        (
            json!({"spec": {"expirationSeconds": 4_294_967_297_i64}}),
            422,
            "may not specify a duration larger than 2^32 seconds",
        ),
        (
            json!({"metadata": {"name": "other"}}),
            422,
            "must match the service account name if specified",
        ),
        (
            json!({"metadata": {"uid": "other"}}),
            409,
            "does not match the UID of the service account",
        ),
        (bind("v1", "Pod", "p"), 400, "to pod running with different serviceaccount name"),
        (bind("v1", "Pod", "absent"), 404, "pods \"absent\" not found"),
        (
            bind("apps/v1", "Deployment", "d"),
            400,
            "cannot bind token to object of type apps/v1, Kind=Deployment",
        ),
    ] {
        let status = api.post(&path, &request).await.refused(code);
        assert!(status["message"].as_str().unwrap().contains(expected), "{status}");
    }
    api.post(&format!("{ACCOUNTS}/nobody/token"), &json!({})).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_gets_a_token_that_is_good() {
    let api = Api::start().await;
    account(&api).await;
    let path = format!("{ACCOUNTS}/robot/token?dryRun=All");
    let answer = api.post(&path, &json!({})).await.ok();
    let user = bearer(&api, token(&answer)).await.unwrap();
    assert_eq!(user.name, "system:serviceaccount:default:robot");
}

#[tokio::test(start_paused = true)]
async fn others_find_the_key_to_check_tokens_with() {
    let api = Api::start().await;
    let answer = api.get("/.well-known/openid-configuration").await;
    assert_eq!(answer.headers["cache-control"], "public, max-age=3600");
    let configuration = answer.ok();
    assert_eq!(configuration["issuer"], ISSUER);
    assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES256"]));
    let answer = api.get("/openid/v1/jwks").await;
    assert_eq!(answer.headers["content-type"], "application/jwk-set+json");
    assert_eq!(answer.headers["cache-control"], "public, max-age=3600");
    let keys = answer.ok();
    assert_eq!((&keys["keys"][0]["kty"], &keys["keys"][0]["crv"]), (&json!("EC"), &json!("P-256")));
}

#[tokio::test(start_paused = true)]
async fn a_token_of_one_server_is_good_at_all_servers_over_the_same_store() {
    let api = Api::start().await;
    account(&api).await;
    let answer = request(&api, json!({})).await;
    let other = Api::over(api.store.clone()).await;
    let user = bearer(&other, token(&answer)).await.unwrap();
    assert_eq!(user.name, "system:serviceaccount:default:robot");
    let back = request(&other, json!({})).await;
    bearer(&api, token(&back)).await.unwrap();
    let jwks = "/openid/v1/jwks";
    assert_eq!(api.get(jwks).await.ok(), other.get(jwks).await.ok());
}

#[tokio::test(start_paused = true)]
async fn the_identity_of_the_cluster_is_in_the_store_and_not_in_the_api() {
    let api = Api::start().await;
    account(&api).await;
    assert!(api.store.get(identity::KEY).await.unwrap().is_none(), "made before it is needed");
    request(&api, json!({})).await;
    let kept = api.store.get(identity::KEY).await.unwrap().unwrap();
    let definition = json!({
        "metadata": {"name": "identity.steersman.dev"},
        "spec": {
            "group": "steersman.dev", "scope": "Cluster",
            "names": {"plural": "identity", "kind": "Identity"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object"},
            }}],
        },
    });
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.ok();
    let identities = "/apis/steersman.dev/v1/identity";
    assert_eq!(api.get(identities).await.ok()["items"], json!([]));
    api.delete(identities).await.ok();
    api.delete("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/identity.steersman.dev")
        .await
        .ok();
    assert_eq!(api.store.get(identity::KEY).await.unwrap().unwrap(), kept);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_read_is_not_a_bad_token() {
    let store = crate::faulty::Faulty::new();
    let api = Api::over(std::sync::Arc::new(store.clone())).await;
    account(&api).await;
    let answer = request(&api, json!({})).await;
    let token = token(&answer);
    bearer(&api, token).await.unwrap();
    // One that has yet to read the key.
    let other = Api::over(std::sync::Arc::new(store.clone())).await;
    api.delete(&format!("{ACCOUNTS}/robot")).await.ok();
    let gone = steersman_store::StoreError::Unavailable { reason: "no member answers".to_owned() };
    store.fail(Some(gone));
    assert_eq!(bearer(&api, token).await.unwrap_err(), 503);
    assert_eq!(bearer(&other, token).await.unwrap_err(), 503);
    api.post(REVIEWS, &json!({"spec": {"token": token}})).await.refused(503);
    store.fail(None);
    assert_eq!(bearer(&api, token).await.unwrap_err(), 401);
    assert_eq!(bearer(&other, token).await.unwrap_err(), 401);
}
