//! Acting as another: who the server then takes the client for.

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};
use steersman_apiserver::user::User;

use crate::api::{Answer, Api, CONFIG_MAPS};
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

/// Gets ConfigMaps as one who acts as somebody.
async fn get_as(api: &Api, user: &str, acting: &[(&str, &str)]) -> Answer {
    let mut request = Request::builder().uri(CONFIG_MAPS).extension(User::known(user, &[]));
    for (name, value) in acting {
        request = request.header(format!("impersonate-{name}"), *value);
    }
    api.send(request.body(Full::default()).unwrap()).await
}

/// A user who may act as bob to list ConfigMaps, who may do so, and with these rules more.
async fn constrained(more: &[Value]) -> Api {
    let api = Api::start().await;
    let group = "authentication.k8s.io";
    let on = rule(&["impersonate-on:user-info:list"], &[""], &["configmaps"]);
    let users = rule(&["impersonate:user-info"], &[group], &["users"]);
    role(&api, "", "jane", &[&[on, users], more].concat()).await;
    bind(&api, "", "ClusterRole", "jane", "jane").await;
    role(&api, "", "bob", &[rule(&["list"], &[""], &["configmaps"])]).await;
    bind(&api, "", "ClusterRole", "bob", "bob").await;
    api
}

/// Whether a rule names each of these or all.
fn of(resource: &str, names: &[&str]) -> Value {
    let verbs = ["impersonate:user-info"];
    let mut rule = rule(&verbs, &["authentication.k8s.io"], &[resource]);
    rule["resourceNames"] = json!(names);
    rule
}

#[tokio::test(start_paused = true)]
async fn who_names_many_may_be_allowed_all_of_them_at_once() {
    let groups = |count: usize| {
        let all = ["a", "b", "c", "d"].into_iter().take(count).map(|name| ("group", name));
        [("user", "bob")].into_iter().chain(all).collect::<Vec<_>>()
    };
    let api = constrained(&[of("groups", &["*"])]).await;
    get_as(&api, "jane", &groups(4)).await.ok();
    let refused = get_as(&api, "jane", &groups(3)).await.refused(403);
    assert!(refused["message"].as_str().unwrap().contains("cannot impersonate:user-info"));
    let api = constrained(&[of("groups", &["a", "b", "c", "d"])]).await;
    get_as(&api, "jane", &groups(4)).await.ok();
    let api = constrained(&[of("userextras/*", &["*"])]).await;
    let extra = |count: usize| {
        let all = ["1", "2", "3", "4"].into_iter().take(count).map(|n| ("extra-a.b%2fc", n));
        [("user", "bob")].into_iter().chain(all).collect::<Vec<_>>()
    };
    get_as(&api, "jane", &extra(4)).await.ok();
    get_as(&api, "jane", &extra(3)).await.refused(403);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_a_user_in_a_constrained_way_has_keys_with_a_domain() {
    let project = ["userextras/acme.com/project"];
    let project = rule(&["impersonate:user-info"], &["authentication.k8s.io"], &project);
    let api = constrained(&[project]).await;
    get_as(&api, "jane", &[("user", "bob"), ("extra-acme.com%2fproject", "x")]).await.ok();
    let start = "userextras.authentication.k8s.io is forbidden: User \"jane\" cannot \
                 impersonate:user-info resource \"userextras\" in API group \
                 \"authentication.k8s.io\" at the cluster scope: ";
    for (header, value, why) in [
        (
            "extra-project",
            "x",
            "impersonating an invalid key in extra is not allowed: extra.key: Invalid value: \
             \"project\": must be a domain-prefixed path (such as \"acme.io/foo\")",
        ),
        (
            "extra-acme.com%2f%50",
            "x",
            "impersonating a non-lowercase key in extra is not allowed: \"acme.com/P\"",
        ),
        ("extra-acme.com%2fp", "", "impersonating the empty string value in extra is not allowed"),
    ] {
        let refused = get_as(&api, "jane", &[("user", "bob"), (header, value)]).await.refused(403);
        assert_eq!(refused["message"], format!("{start}{why}"), "{header}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_acts_as_another_is_counted_by_the_mode_that_allows_it() {
    let api = constrained(&[]).await;
    role(&api, "", "ann", &[rule(&["impersonate"], &[""], &["users"])]).await;
    bind(&api, "", "ClusterRole", "ann", "ann").await;
    for user in ["jane", "ann"] {
        get_as(&api, user, &[("user", "bob")]).await.ok();
    }
    get_as(&api, "eve", &[("user", "bob")]).await.refused(403);
    get_as(&api, "eve", &[("uid", "u1")]).await.refused(400);
    let metrics = api.get("/metrics").await;
    let metrics = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    for labels in [
        r#"decision="allowed",mode="user-info""#,
        r#"decision="allowed",mode="legacy""#,
        r#"decision="denied",mode="""#,
    ] {
        let line = format!("\napiserver_impersonation_attempts_total{{{labels}}} 1\n");
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
}
