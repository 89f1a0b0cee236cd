//! Authentication webhooks: an API server asks whose a token is.
//!
//! Whatever is wrong is said in a TokenReview, because that is what the API server tells. Tokens
//! are secrets: they are neither logged nor sent back.

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenReviewSpec, TokenReviewStatus, UserInfo};
use serde::Deserialize;
use serde_json::json;

use super::review::{InvalidReview, check_content_type};
use crate::error::panic_text;
use crate::serve;

const KIND: &str = "TokenReview";
/// Versions of the same fields; the first is spoken where nobody said which.
const API_VERSIONS: [&str; 2] = ["authentication.k8s.io/v1", "authentication.k8s.io/v1beta1"];
/// What a review may weigh: a token has a few KB. The limit is controller-runtime's.
const REVIEW_MAX: usize = 1024 * 1024;

/// Says whose a token is.
///
/// Every `async fn(TokenReviewSpec) -> Authentication` does, and so does every struct that
/// implements this trait. The API server is told where to ask by a file, which
/// `--authentication-token-webhook-config-file` names.
///
/// ```
/// use k8s_openapi::api::authentication::v1::{TokenReviewSpec, UserInfo};
/// use steersman::webhook::{Authentication, WebhookServer};
///
/// async fn whose(asked: TokenReviewSpec) -> Authentication {
///     match asked.token.as_str() {
///         "letmein" => Authentication::of(UserInfo {
///             username: Some("ada".into()),
///             groups: Some(vec!["engineers".into()]),
///             ..UserInfo::default()
///         }),
///         _ => Authentication::unknown("nobody has this token"),
///     }
/// }
///
/// let server = WebhookServer::builder("whoami").authenticates("/authenticate", whose).build()?;
/// # Ok::<(), steersman::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say whose a token is",
    note = "that is `async fn(TokenReviewSpec) -> Authentication`, or a struct that implements \
            `webhook::Authenticator`; its future must be `Send`"
)]
pub trait Authenticator: Send + Sync + 'static {
    /// Says whose the token is that was shown. There is one: reviews without are answered before.
    fn authenticate(&self, asked: TokenReviewSpec) -> impl Future<Output = Authentication> + Send;
}

impl<F, Fut> Authenticator for F
where
    F: Fn(TokenReviewSpec) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Authentication> + Send,
{
    fn authenticate(&self, asked: TokenReviewSpec) -> impl Future<Output = Authentication> + Send {
        self(asked)
    }
}

/// Whose a token is.
#[derive(Clone, Debug, PartialEq)]
pub struct Authentication {
    status: TokenReviewStatus,
}

impl Authentication {
    /// It is this user's, for every audience.
    pub fn of(user: UserInfo) -> Self {
        let authenticated = Some(true);
        let user = Some(user);
        Self { status: TokenReviewStatus { authenticated, user, ..TokenReviewStatus::default() } }
    }

    /// It is nobody's that is known here, or it could not be found out whose: for this reason. The
    /// API server asks others.
    pub fn unknown(why: impl fmt::Display) -> Self {
        let authenticated = Some(false);
        let error = Some(why.to_string());
        Self { status: TokenReviewStatus { authenticated, error, ..TokenReviewStatus::default() } }
    }

    /// The same, but only for those of the audiences that were asked for.
    #[must_use]
    pub fn for_audiences(mut self, audiences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.status.audiences = Some(audiences.into_iter().map(Into::into).collect());
        self
    }
}

/// An authenticator of any type.
pub(super) type ErasedAuthenticator =
    Arc<dyn Fn(TokenReviewSpec) -> BoxFuture<'static, Authentication> + Send + Sync>;

/// Forgets the type of an authenticator.
pub(super) fn erase(authenticator: impl Authenticator) -> ErasedAuthenticator {
    let authenticator = Arc::new(authenticator);
    Arc::new(move |asked| {
        let authenticator = Arc::clone(&authenticator);
        async move { authenticator.authenticate(asked).await }.boxed()
    })
}

/// A question.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Review {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    spec: TokenReviewSpec,
}

/// Answers one TokenReview.
pub(super) async fn review(
    authenticator: &ErasedAuthenticator,
    http: &Request<Bytes>,
    panicked: &(dyn Fn() + Send + Sync),
) -> Response<Bytes> {
    let (version, asked) = match read(http) {
        Ok(asked) => asked,
        Err(why) => {
            tracing::warn!(why, "invalid TokenReview");
            return reply(API_VERSIONS[0], &Authentication::unknown(why));
        }
    };
    // The authenticator may panic before it has made its future.
    let answer = AssertUnwindSafe(async { authenticator(asked).await }).catch_unwind().await;
    let answer = answer.unwrap_or_else(|panic| {
        panicked();
        let text = panic_text(panic.as_ref());
        tracing::error!(panic = text, "authentication webhook panicked");
        Authentication::unknown(format_args!("panic: {text} [recovered]"))
    });
    reply(version, &answer)
}

/// The version that is spoken, and the question.
fn read(http: &Request<Bytes>) -> Result<(&'static str, TokenReviewSpec), String> {
    let body = http.body();
    if body.is_empty() {
        return Err("the request has no body".to_owned());
    }
    if body.len() > REVIEW_MAX {
        return Err(format!("the request is larger than {REVIEW_MAX} bytes"));
    }
    check_content_type(http).map_err(|error| error.to_string())?;
    // Where it stands is told, what stands there is not: it may be the token.
    let Review { api_version, kind, spec } = serde_json::from_slice(body).map_err(|error| {
        let line = error.line();
        let column = error.column();
        format!("cannot decode the {KIND}, at line {line} column {column}")
    })?;
    let spoken = API_VERSIONS.into_iter().find(|version| *version == api_version);
    let Some(version) = spoken.filter(|_| kind == KIND) else {
        let expected = format!("a {KIND} of {}", API_VERSIONS[0]);
        let setting = "--authentication-token-webhook-version of the API server";
        return Err(InvalidReview::Version { expected, kind, api_version, setting }.to_string());
    };
    if spec.token.is_empty() {
        return Err("the token is empty".to_owned());
    }
    Ok((version, spec))
}

fn reply(version: &str, answer: &Authentication) -> Response<Bytes> {
    let review = json!({"apiVersion": version, "kind": KIND, "status": answer.status});
    match serde_json::to_vec(&review) {
        Ok(body) => serve::answer(StatusCode::OK, "application/json", body),
        Err(error) => serve::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}
