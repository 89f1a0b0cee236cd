//! What is audited of those who come over the network, and of those who are not let in.

use http::Request;
use http_body_util::Full;
use steersman_apiserver::audit::{AuditRecord, Auditing, Level, Policy};

use super::{ACCOUNTS, Caller, SELF, Server, named};
use serde_json::{Value, json};

const SECRET_TOKEN: &str = "s3cret-t0ken";

fn audited(server: &Server) -> AuditRecord {
    let record = AuditRecord::default();
    let policy = Policy::of_all(Level::RequestResponse);
    server.api.server.audit(Auditing::new(policy).recorded(&record));
    record
}

#[tokio::test]
async fn requests_go_by_the_name_that_their_client_gives_or_a_new_one() {
    let server = Server::start().await;
    let ask = async |headers: &[(&str, &str)]| {
        let caller = Caller { headers, ..Caller::default() };
        let request = caller.asks(Request::get("/version")).body(Full::default()).unwrap();
        let (_, headers, _) = server.send(caller, request).await;
        headers["audit-id"].to_str().unwrap().to_owned()
    };
    assert_eq!(ask(&[("audit-id", "mine")]).await, "mine");
    let first = ask(&[]).await;
    assert_eq!(first.len(), 36, "{first}");
    assert_ne!(ask(&[]).await, first);
    let record = audited(&server);
    assert_eq!(ask(&[("audit-id", "mine")]).await, "mine");
    let events = record.documents();
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!((&events[0]["auditID"], &events[1]["auditID"]), (&json!("mine"), &json!("mine")));
    assert_eq!(events[0]["sourceIPs"], json!(["127.0.0.1"]));
    let named = ask(&[]).await;
    assert_eq!(record.documents().last().unwrap()["auditID"], named);
}

#[tokio::test]
async fn who_is_not_let_in_is_told_without_what_was_shown() {
    let server = Server::start().await;
    let record = audited(&server);
    let bearer = format!("Bearer {SECRET_TOKEN}");
    let caller = Caller { headers: &[("authorization", bearer.as_str())], ..Caller::default() };
    let uri = format!("/api/v1/pods?access_token={SECRET_TOKEN}&limit=5");
    let request = caller.asks(Request::get(&uri)).body(Full::default()).unwrap();
    let (code, headers, _) = server.send(caller, request).await;
    assert_eq!(code, 401);
    let events = record.documents();
    let [event] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(event["auditID"], headers["audit-id"].to_str().unwrap());
    assert_eq!(event["stage"], "ResponseStarted");
    assert_eq!(event["user"], json!({}));
    assert_eq!(event["requestURI"], "/api/v1/pods?access_token=REDACTED&limit=5");
    assert_eq!(
        event["responseStatus"],
        json!({
            "metadata": {}, "code": 401,
            "message": "Authentication failed, attempted: bearer, access_token",
        })
    );
    let anonymous = Request::get("/api/v1/pods");
    let anonymous = Caller::default().asks(anonymous).body(Full::default()).unwrap();
    assert_eq!(server.send(Caller::default(), anonymous).await.0, 403);
    let event = record.documents().last().unwrap().clone();
    assert_eq!(event["user"]["username"], "system:anonymous");
    assert!(!format!("{:?}", record.documents()).contains(SECRET_TOKEN));
    let metrics = server.api.get("/metrics").await;
    let metrics = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    assert!(metrics.contains("authentication_attempts{result=\"error\"} 1\n"), "{metrics}");
}

#[tokio::test]
async fn a_token_that_is_used_is_never_told() {
    let server = Server::start().await;
    server.create(ACCOUNTS, named("robot")).await;
    let token = server.request_token("robot", Value::Null).await;
    let record = audited(&server);
    let user = server.bearer(&token).await.unwrap();
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    let told = format!("{:?}", record.documents());
    assert!(told.contains("system:serviceaccount:default:robot"), "{told}");
    assert!(told.contains(SELF) && !told.contains(&token), "{told}");
    let metrics = server.api.get("/metrics").await;
    let metrics = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    for line in [
        "authentication_attempts{result=\"success\"} 1\n",
        "authentication_duration_seconds_count{result=\"success\"} 1\n",
        "authenticated_user_requests{username=\"other\"} 1\n",
        "authorization_attempts_total{result=\"allowed\"} ",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}
