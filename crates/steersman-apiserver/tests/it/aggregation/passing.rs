//! Requests that are passed on.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::json;
use tower::ServiceExt;

use super::{API_SERVICES, TIDES, available, serve_answer, tide, tides, with_tides};
use crate::api::{Api, names};

#[tokio::test(start_paused = true)]
async fn every_verb_is_passed_on() {
    let (front, behind) = with_tides().await;
    let made = front.post(TIDES, &tide("low", 1)).await.ok();
    assert_eq!(behind.get(&format!("{TIDES}/low")).await.ok(), made);
    let low = format!("{TIDES}/low");
    let mut higher = front.get(&low).await.ok();
    higher["spec"]["height"] = 2.into();
    front.put(&low, &higher).await.ok();
    front.merge(&low, &json!({"metadata": {"labels": {"moon": "full"}}})).await.ok();
    let labelled = front.get(&format!("{TIDES}?labelSelector=moon%3Dfull")).await.ok();
    assert_eq!(names(&labelled), ["low"]);
    let apply = front
        .patch(
            &format!("{TIDES}/high?fieldManager=me"),
            "application/apply-patch+yaml",
            &tide("high", 9),
        )
        .await;
    assert_eq!(apply.code, 201);
    front.post(TIDES, &tide("low", 1)).await.refused(409);
    front.delete(&low).await.ok();
    front.get(&low).await.refused(404);
    front.delete(TIDES).await.ok();
    assert_eq!(names(&behind.get(TIDES).await.ok()), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_happens_when_it_happens() {
    let (front, behind) = with_tides().await;
    let mut events = front.watch(&format!("{TIDES}?watch=true")).await;
    behind.post(TIDES, &tide("low", 1)).await.ok();
    assert_eq!(events.brief().await, ("ADDED".to_owned(), "low".to_owned()));
    front.delete(&format!("{TIDES}/low")).await.ok();
    assert_eq!(events.brief().await, ("DELETED".to_owned(), "low".to_owned()));
    assert!(events.is_silent().await);
}

#[tokio::test(start_paused = true)]
async fn the_server_behind_hears_who_asks_and_nobody_can_pretend() {
    let api = Api::start().await;
    let asked = serve_answer(&api, |_| Response::new(Full::from("{}")));
    api.post(API_SERVICES, &tides()).await.ok();
    available(&api, "v1.sea.test", "Passed").await;
    asked.lock().unwrap().clear();
    let jane = api.acting_as("jane", &["system:masters", "dev"]);
    let request = Request::builder()
        .method(Method::POST)
        .uri("/apis/sea.test/v1/odd/path?a=b%20c")
        .header("X-Remote-User", "root")
        .header("X-Remote-Group", "wheel")
        .header(header::CONTENT_TYPE, "text/odd");
    jane.send(request.body(Full::from("body")).unwrap()).await.ok();
    let asked = asked.lock().unwrap();
    let request = asked.last().unwrap();
    assert_eq!(request.uri(), "https://tides.shore.svc:443/apis/sea.test/v1/odd/path?a=b%20c");
    assert_eq!((request.method(), &request.body()[..]), (&Method::POST, &b"body"[..]));
    assert_eq!(request.headers()[header::CONTENT_TYPE], "text/odd");
    assert_eq!(request.headers()["x-remote-user"], "jane");
    let groups: Vec<_> = request.headers().get_all("x-remote-group").iter().collect();
    assert_eq!(groups, ["system:masters", "dev", "system:authenticated"]);
}

/// Who may not ask is refused here, and the other server does not hear of it.
#[tokio::test(start_paused = true)]
async fn requests_are_authorised_before_they_are_passed_on() {
    let (front, _behind) = with_tides().await;
    let jane = front.acting_as("jane", &[]);
    let refused = jane.get(TIDES).await.refused(403);
    assert_eq!(
        refused["message"],
        "tides.sea.test is forbidden: User \"jane\" cannot list resource \"tides\" in API group \
         \"sea.test\" in the namespace \"default\""
    );
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_passed_back() {
    let api = Api::start().await;
    serve_answer(&api, |request| {
        let mut response = Response::new(Full::from("{}"));
        if request.uri().path().ends_with("elsewhere") {
            *response.status_mut() = StatusCode::FOUND;
            response.headers_mut().insert("location", "https://evil.test".parse().unwrap());
        }
        response
    });
    api.post(API_SERVICES, &tides()).await.ok();
    available(&api, "v1.sea.test", "Passed").await;
    let answer = api.get("/apis/sea.test/v1/elsewhere").await;
    let text = "the backend attempted to redirect this request, which is not permitted\n";
    assert_eq!((answer.code, &answer.bytes[..]), (502, text.as_bytes()));
}

/// A client must not take the half of an answer for the whole.
#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_breaks_off_for_the_client() {
    let api = Api::start().await;
    let service = tower::service_fn(|_: Request<Full<Bytes>>| async {
        let pieces = [Ok(Frame::data(Bytes::from_static(b"{"))), Err("connection reset")];
        let body = StreamBody::new(futures::stream::iter(pieces));
        Ok::<_, std::convert::Infallible>(Response::new(body))
    });
    api.server.serve_extension(super::ORIGIN, service);
    api.post(API_SERVICES, &tides()).await.ok();
    available(&api, "v1.sea.test", "Passed").await;
    let request = Request::get("/apis/sea.test/v1/half").body(Full::<Bytes>::default()).unwrap();
    let mut body = api.server.clone().oneshot(request).await.unwrap().into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "{");
    let broken = body.frame().await.unwrap().unwrap_err();
    assert_eq!(broken.to_string(), "the answer broke off: connection reset");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_panics_has_hung_up() {
    let api = Api::start().await;
    serve_answer(&api, |request| {
        assert!(!request.uri().path().ends_with("panic"), "as asked");
        Response::new(Full::from("{}"))
    });
    api.post(API_SERVICES, &tides()).await.ok();
    available(&api, "v1.sea.test", "Passed").await;
    let answer = api.get("/apis/sea.test/v1/panic").await;
    let text = "error trying to reach service: EOF\n";
    assert_eq!((answer.code, &answer.bytes[..]), (503, text.as_bytes()));
}
