//! Acting as another: who the server then takes the client for.

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};
use steersman_apiserver::user::User;

use crate::api::{Answer, Api};
use crate::authorization::{bind, role, rule};
use crate::parts::REQUEST;

/// Posts as an administrator who acts as somebody.
async fn post_as(api: &Api, path: &str, acting: &[(&str, &str)], body: &Value) -> Answer {
    let admin = User::known("admin", &["system:masters"]);
    let mut request = Request::builder().method(Method::POST).uri(path).extension(admin);
    for (name, value) in acting {
        request = request.header(format!("impersonate-{name}"), *value);
    }
    request = request.header(header::CONTENT_TYPE, "application/json");
    api.send(request.body(Full::new(body.to_string().into())).unwrap()).await
}

const BOB: [(&str, &str); 4] =
    [("user", "bob"), ("group", "dev"), ("uid", "u1"), ("extra-acme.com%2fproject", "x")];

#[tokio::test(start_paused = true)]
async fn uid_and_extra_stand_in_a_review_of_oneself() {
    let api = Api::start().await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = post_as(&api, path, &BOB, &json!({})).await.ok();
    assert_eq!(review["metadata"], json!({"creationTimestamp": "2025-01-01T00:00:00Z"}));
    assert_eq!(
        review["status"]["userInfo"],
        json!({
            "username": "bob", "uid": "u1", "groups": ["dev", "system:authenticated"],
            "extra": {"acme.com/project": ["x"]},
        })
    );
    let refused =
        post_as(&api, path, &[("user", "system:anonymous")], &json!({})).await.refused(403);
    assert_eq!(
        refused["message"],
        "selfsubjectreviews.authentication.k8s.io is forbidden: User \"system:anonymous\" cannot \
         create resource \"selfsubjectreviews\" in API group \"authentication.k8s.io\" at the cluster \
         scope"
    );
}

#[tokio::test(start_paused = true)]
async fn uid_and_extra_stand_in_a_signing_request() {
    let api = Api::start().await;
    let path = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    let rules = [rule(&["create"], &["certificates.k8s.io"], &["certificatesigningrequests"])];
    role(&api, "", "asker", &rules).await;
    bind(&api, "", "ClusterRole", "asker", "bob").await;
    let request = json!({
        "metadata": {"name": "r"},
        "spec": {"request": REQUEST, "signerName": "example.com/s", "usages": ["client auth"]},
    });
    let created = post_as(&api, path, &BOB, &request).await.ok();
    assert_eq!(created["spec"]["username"], "bob");
    assert_eq!(created["spec"]["uid"], "u1");
    assert_eq!(created["spec"]["groups"], json!(["dev", "system:authenticated"]));
    assert_eq!(created["spec"]["extra"], json!({"acme.com/project": ["x"]}));
}
