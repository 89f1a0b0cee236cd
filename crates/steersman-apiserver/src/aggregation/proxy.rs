//! Passes a request on to the server elsewhere that answers its path, and its answer back, piece by
//! piece. What goes wrong on the way is told as text, as Kubernetes does.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::headers::{name_user, pass_on, without_connection};
use crate::audit::{self, AUDIT_ID};
use crate::caller::Peer;
use crate::reply::{self, ResponseBody};
use crate::state::Server;
use crate::state::remotes::Remote;
use crate::upgrade;
use crate::user::User;

/// How long a server may take to tell what it has.
const DISCOVERY_TIME: Duration = Duration::from_secs(5);

/// A request to pass on.
pub(crate) struct Passed {
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    /// Who asks.
    pub(crate) user: User,
}

impl Passed {
    /// Whether it asks for no more than what there is.
    fn is_discovery(&self) -> bool {
        let path = self.parts.uri.path().trim_matches('/');
        path.starts_with("apis/") && path.split('/').count() == 3
    }
}

/// Passes a request on.
pub(crate) async fn pass(
    server: &Server,
    remote: &Remote,
    passed: Passed,
) -> Response<ResponseBody> {
    if !remote.is_available() {
        return trouble(StatusCode::SERVICE_UNAVAILABLE, "service unavailable");
    }
    let is_discovery = passed.is_discovery();
    let Passed { mut parts, body, user } = passed;
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let Ok(uri) = format!("{}{path}", remote.target.url).parse() else {
        return trouble(StatusCode::BAD_REQUEST, "the path cannot be passed on");
    };
    let upgrade = upgrade::is_wanted(&parts.headers);
    let protocol = parts.headers.get(header::UPGRADE).cloned().filter(|_| upgrade);
    let peer = parts.extensions.get::<Peer>().copied();
    pass_on(&mut parts.headers, peer, &parts.uri);
    name_user(&mut parts.headers, &user);
    let id = audit::id(&parts.headers, &server.request_ids);
    parts.headers.insert(AUDIT_ID, id);
    let client = parts.extensions.remove::<OnUpgrade>().filter(|_| upgrade);
    let mut request = Request::new(body);
    *request.method_mut() = parts.method;
    *request.uri_mut() = uri;
    *request.headers_mut() = parts.headers;
    if server.origins.has_extension(&remote.target) {
        request.extensions_mut().insert(user);
    }
    if let Some(protocol) = protocol {
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        request.headers_mut().insert(header::UPGRADE, protocol);
        return upgraded(server, remote, request, client).await;
    }
    let answer = server.origins.open(&*server.store, &remote.target, request);
    let answer = match is_discovery {
        true => tokio::time::timeout(DISCOVERY_TIME, answer)
            .await
            .unwrap_or_else(|_| Err("context deadline exceeded".to_owned())),
        false => answer.await,
    };
    match answer {
        Ok(response) => passed_back(response.map(ResponseBody::passed)),
        Err(why) => unreachable_service(remote, &why),
    }
}

/// The answer as the client gets it.
fn passed_back(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let is_redirect = response.status().is_redirection();
    if is_redirect && response.headers().contains_key(header::LOCATION) {
        let text = "the backend attempted to redirect this request, which is not permitted";
        return trouble(StatusCode::BAD_GATEWAY, text);
    }
    without_connection(response.headers_mut());
    response
}

/// Lets client and server speak another protocol, if the server agrees.
async fn upgraded(
    server: &Server,
    remote: &Remote,
    request: Request<Bytes>,
    client: Option<OnUpgrade>,
) -> Response<ResponseBody> {
    let answer = server.origins.upgrade(&*server.store, &remote.target, request).await;
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(why) => return unreachable_service(remote, &why),
    };
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        let body = http_body_util::BodyExt::collect(answer.body_mut()).await;
        let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let (parts, _) = answer.into_parts();
        return passed_back(Response::from_parts(parts, body.into()));
    }
    let theirs = hyper::upgrade::on(&mut answer);
    let ended = server.ended();
    if let Some(client) = client {
        tokio::spawn(async move {
            let (Ok(client), Ok(theirs)) = (client.await, theirs.await) else { return };
            let (mut client, mut theirs) = (TokioIo::new(client), TokioIo::new(theirs));
            let copied = tokio::io::copy_bidirectional(&mut client, &mut theirs);
            if let Some(Err(error)) = ended.run_until_cancelled(copied).await {
                tracing::debug!(%error, "upgraded connection ended");
            }
        });
    }
    let mut response = Response::new(ResponseBody::from(Bytes::new()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = answer.headers().clone();
    response
}

fn unreachable_service(remote: &Remote, why: &str) -> Response<ResponseBody> {
    // Whoever looks after it looks again now, not in a while.
    remote.look.notify_one();
    let text = format!("error trying to reach service: {why}");
    trouble(StatusCode::SERVICE_UNAVAILABLE, &text)
}

/// What went wrong, as text.
fn trouble(code: StatusCode, text: &str) -> Response<ResponseBody> {
    let mut response = reply::text(format!("{text}\n"));
    *response.status_mut() = code;
    response
}
