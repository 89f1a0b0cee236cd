//! Who may read what the manager serves: asked of the cluster itself.
//!
//! A bearer token is looked up by a TokenReview, and what its user may read by a
//! SubjectAccessReview of the path. Decisions are kept for a short while, so that a scrape every
//! few seconds is not two requests to the API server each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;
use tokio::time::Instant;

use crate::serve;

/// How long a token that may read counts as one.
const ALLOWED_FOR: Duration = Duration::from_secs(60);
/// How long one that may not.
const REFUSED_FOR: Duration = Duration::from_secs(10);
/// Decisions kept. Whoever sends random tokens must not fill the memory.
const DECISIONS_MAX: usize = 256;
/// Longer tokens are not asked about.
const TOKEN_MAX: usize = 16 * 1024;

/// Asks a cluster who may read. Cheap to clone.
#[derive(Clone)]
pub(super) struct Access {
    client: kube::Client,
    decisions: Arc<Mutex<HashMap<Question, (Decision, Instant)>>>,
}

/// May the bearer of this token do that?
#[derive(Clone, PartialEq, Eq, Hash)]
struct Question {
    token: String,
    verb: String,
    path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Decision {
    Allowed,
    /// Nobody knows the token.
    Unknown,
    /// This user may not.
    Denied(String),
}

impl Access {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { client, decisions: Arc::default() }
    }

    /// Lets a request pass, or gives the answer to send instead.
    pub(super) async fn check(&self, request: &Request<Bytes>) -> Result<(), Response<Bytes>> {
        let Some(token) = bearer(request) else {
            return Err(unauthorized());
        };
        let question = Question {
            token: token.to_owned(),
            verb: request.method().as_str().to_lowercase(),
            path: request.uri().path().to_owned(),
        };
        match self.decide(question).await {
            Ok(Decision::Allowed) => Ok(()),
            Ok(Decision::Unknown) => Err(unauthorized()),
            Ok(Decision::Denied(user)) => {
                let text = format!("Authorization denied for user {user}\n");
                Err(serve::text(StatusCode::FORBIDDEN, text))
            }
            Err(error) => {
                tracing::warn!(%error, "cannot ask who may read metrics");
                Err(serve::text(StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed\n"))
            }
        }
    }

    async fn decide(&self, question: Question) -> kube::Result<Decision> {
        if let Some(decision) = self.known(&question) {
            return Ok(decision);
        }
        let decision = match self.user(&question.token).await? {
            None => Decision::Unknown,
            Some(user) => {
                let name = user.username.clone().unwrap_or_default();
                let allowed = self.allowed(user, &question).await?;
                if allowed { Decision::Allowed } else { Decision::Denied(name) }
            }
        };
        self.keep(question, decision.clone());
        Ok(decision)
    }

    fn known(&self, question: &Question) -> Option<Decision> {
        let decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        let (decision, until) = decisions.get(question)?;
        (Instant::now() < *until).then(|| decision.clone())
    }

    fn keep(&self, question: Question, decision: Decision) {
        let now = Instant::now();
        let time = if decision == Decision::Allowed { ALLOWED_FOR } else { REFUSED_FOR };
        let mut decisions = self.decisions.lock().unwrap_or_else(PoisonError::into_inner);
        if decisions.len() >= DECISIONS_MAX {
            decisions.retain(|_, (_, until)| now < *until);
        }
        if decisions.len() >= DECISIONS_MAX {
            // Those who may read are few; the others are asked about again.
            decisions.retain(|_, (decision, _)| *decision == Decision::Allowed);
        }
        if decisions.len() < DECISIONS_MAX {
            decisions.insert(question, (decision, now + time));
        }
    }

    /// Whose token this is.
    async fn user(&self, token: &str) -> kube::Result<Option<UserInfo>> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..Default::default() };
        let review = TokenReview { spec, ..Default::default() };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status;
        let authenticated = status.filter(|status| status.authenticated == Some(true));
        Ok(authenticated.and_then(|status| status.user))
    }

    /// Whether a user may do what is asked.
    async fn allowed(&self, user: UserInfo, question: &Question) -> kube::Result<bool> {
        let attributes = NonResourceAttributes {
            path: Some(question.path.clone()),
            verb: Some(question.verb.clone()),
        };
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(attributes),
            ..Default::default()
        };
        let review = SubjectAccessReview { spec, ..Default::default() };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status;
        Ok(status.is_some_and(|status| status.allowed && status.denied != Some(true)))
    }
}

/// The bearer token of a request.
fn bearer(request: &Request<Bytes>) -> Option<&str> {
    let value = request.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    let usable = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty();
    Some(token).filter(|token| usable && token.len() <= TOKEN_MAX)
}

fn unauthorized() -> Response<Bytes> {
    serve::text(StatusCode::UNAUTHORIZED, "Unauthorized\n")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http_body_util::BodyExt;
    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// An API server that knows the tokens `reader` and `nobody`, of which one may read metrics.
    fn server(asked: Arc<AtomicUsize>) -> kube::Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            asked.fetch_add(1, Ordering::SeqCst);
            async move {
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let mut review: Value = serde_json::from_slice(&body).unwrap();
                let spec = &review["spec"];
                review["status"] = match spec["token"].as_str() {
                    Some(token @ ("reader" | "nobody")) => {
                        json!({"authenticated": true, "user": {"username": token}})
                    }
                    Some(_) => json!({"authenticated": false, "error": "unknown"}),
                    None => json!({"allowed": spec["user"] == "reader"
                        && spec["nonResourceAttributes"] == json!({"path": "/metrics", "verb": "get"})}),
                };
                let body = Body::from(serde_json::to_vec(&review).unwrap());
                Ok::<_, std::convert::Infallible>(
                    Response::builder().status(201).body(body).unwrap(),
                )
            }
        });
        kube::Client::new(service, "default")
    }

    async fn code(access: &Access, path: &str, authorization: Option<&str>) -> u16 {
        let mut request = Request::get(path);
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        let checked = access.check(&request.body(Bytes::new()).unwrap()).await;
        checked.map_or_else(|refused| refused.status().as_u16(), |()| 200)
    }

    #[tokio::test(start_paused = true)]
    async fn only_known_users_that_may_read_the_path_pass() {
        let access = Access::new(server(Arc::default()));
        assert_eq!(code(&access, "/metrics", None).await, 401);
        assert_eq!(code(&access, "/metrics", Some("Basic cmVhZGVyOg==")).await, 401);
        assert_eq!(code(&access, "/metrics", Some("Bearer ")).await, 401);
        assert_eq!(code(&access, "/metrics", Some("Bearer stranger")).await, 401);
        assert_eq!(code(&access, "/metrics", Some("Bearer nobody")).await, 403);
        assert_eq!(code(&access, "/metrics", Some("Bearer reader")).await, 200);
        assert_eq!(code(&access, "/debug", Some("bearer reader")).await, 403);
    }

    #[tokio::test(start_paused = true)]
    async fn a_decision_is_kept_for_a_while_and_then_asked_for_again() {
        let asked = Arc::<AtomicUsize>::default();
        let access = Access::new(server(Arc::clone(&asked)));
        for _ in 0..3 {
            assert_eq!(code(&access, "/metrics", Some("Bearer reader")).await, 200);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 2, "one review of each sort");
        tokio::time::advance(ALLOWED_FOR).await;
        assert_eq!(code(&access, "/metrics", Some("Bearer reader")).await, 200);
        assert_eq!(asked.load(Ordering::SeqCst), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_tokens_neither_fills_the_memory_nor_forgets_who_may_read() {
        let asked = Arc::<AtomicUsize>::default();
        let access = Access::new(server(Arc::clone(&asked)));
        code(&access, "/metrics", Some("Bearer reader")).await;
        for number in 0..2 * DECISIONS_MAX {
            code(&access, "/metrics", Some(&format!("Bearer {number}"))).await;
        }
        assert!(access.decisions.lock().unwrap().len() <= DECISIONS_MAX);
        let before = asked.load(Ordering::SeqCst);
        code(&access, "/metrics", Some("Bearer reader")).await;
        assert_eq!(asked.load(Ordering::SeqCst), before);
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_cannot_be_asked_lets_nobody_pass() {
        let broken = tower::service_fn(async |_: Request<Body>| {
            Err::<Response<Body>, _>(std::io::Error::other("no route"))
        });
        let access = Access::new(kube::Client::new(broken, "default"));
        assert_eq!(code(&access, "/metrics", Some("Bearer reader")).await, 500);
    }
}
