//! What is served where: paths, and the handlers behind them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use k8s_openapi::api::admissionregistration::v1::MutatingWebhook;

use super::authentication::{ErasedAuthenticator, review};
use super::conversion::{Conversion, convert_review};
use super::handler::ErasedHandler;
use super::metrics::WebhookMetrics;
use super::registration::{Phase, Webhook};
use super::review::admit;
use crate::serve;

/// Where conversions are served, as controller-runtime does.
pub(super) const CONVERT: &str = "/convert";

/// Why a server cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A path has characters that do not belong there.
    #[error("{path:?} is not a path of letters, digits, '-', '_' and '/' that begins with '/'")]
    Path {
        /// The path.
        path: String,
    },
    /// Two things are to be served at one path that cannot be.
    #[error(
        "{path} serves only one of mutating webhooks, validating webhooks, conversions and an \
         authenticator"
    )]
    Mixed {
        /// The path.
        path: String,
    },
    /// The versions of a conversion do not belong together.
    #[error("conversion: {0}")]
    Conversion(String),
}

/// What is served at one path.
enum Route {
    Admission(Box<Admission>),
    Conversion(Vec<Conversion>),
    Authentication(ErasedAuthenticator),
}

/// Webhooks of one path.
struct Admission {
    /// `None` for a handler that is in no configuration.
    phase: Option<Phase>,
    handlers: Vec<ErasedHandler>,
    registration: Option<MutatingWebhook>,
}

/// All paths of a server.
#[derive(Default)]
pub(super) struct Site {
    routes: BTreeMap<String, Route>,
    pub(super) metrics: WebhookMetrics,
}

impl Site {
    /// Adds a handler that is in no configuration.
    pub(super) fn handle(&mut self, path: &str, handler: ErasedHandler) -> Result<(), BuildError> {
        let admission = Admission { phase: None, handlers: vec![handler], registration: None };
        self.admit(path, admission)
    }

    pub(super) fn add(&mut self, webhook: Webhook) -> Result<(), BuildError> {
        let Webhook { phase, path, handler, registration } = webhook;
        let handlers = vec![handler];
        let registration = Some(registration);
        self.admit(&path, Admission { phase: Some(phase), handlers, registration })
    }

    fn admit(&mut self, path: &str, added: Admission) -> Result<(), BuildError> {
        let empty = || Route::Admission(Box::new(added.head()));
        match self.route(path, empty)? {
            Route::Admission(admission) => admission.join(added, path),
            Route::Conversion(_) | Route::Authentication(_) => {
                Err(BuildError::Mixed { path: path.to_owned() })
            }
        }
    }

    /// Adds who says whose a token is. One path has one answer.
    pub(super) fn authenticate(
        &mut self,
        path: &str,
        authenticator: ErasedAuthenticator,
    ) -> Result<(), BuildError> {
        if self.routes.contains_key(path) {
            return Err(BuildError::Mixed { path: path.to_owned() });
        }
        self.route(path, || Route::Authentication(authenticator)).map(drop)
    }

    pub(super) fn convert(&mut self, conversion: Conversion) -> Result<(), BuildError> {
        if let Some(fault) = &conversion.fault {
            return Err(BuildError::Conversion(fault.clone()));
        }
        match self.route(CONVERT, || Route::Conversion(Vec::new()))? {
            Route::Conversion(conversions) => conversions.push(conversion),
            Route::Admission(_) | Route::Authentication(_) => {
                return Err(BuildError::Mixed { path: CONVERT.to_owned() });
            }
        }
        Ok(())
    }

    fn route(
        &mut self,
        path: &str,
        empty: impl FnOnce() -> Route,
    ) -> Result<&mut Route, BuildError> {
        if !is_path(path) {
            return Err(BuildError::Path { path: path.to_owned() });
        }
        self.metrics.announce(path);
        Ok(self.routes.entry(path.to_owned()).or_insert_with(empty))
    }

    /// The registered webhooks of a phase, by path.
    pub(super) fn registrations(
        &self,
        phase: Phase,
    ) -> impl Iterator<Item = (&str, &MutatingWebhook)> {
        self.routes.iter().filter_map(move |(path, route)| match route {
            Route::Admission(admission) if admission.phase == Some(phase) => {
                Some((path.as_str(), admission.registration.as_ref()?))
            }
            _ => None,
        })
    }

    /// The kinds that are converted.
    pub(super) fn conversions(&self) -> &[Conversion] {
        match self.routes.get(CONVERT) {
            Some(Route::Conversion(conversions)) => conversions,
            _ => &[],
        }
    }

    /// Answers a request.
    pub(super) async fn answer(self: Arc<Self>, request: Request<Bytes>) -> Response<Bytes> {
        let path = request.uri().path();
        let Some(route) = self.routes.get(path) else {
            return serve::text(StatusCode::NOT_FOUND, "no webhook is served here\n");
        };
        if request.method() != Method::POST {
            return serve::text(StatusCode::METHOD_NOT_ALLOWED, "reviews are sent by POST\n");
        }
        let serving = self.metrics.begin(path);
        let panics = &self.metrics.panics;
        let conversion_panics = &self.metrics.conversion_panics;
        let response = match route {
            Route::Admission(admission) => {
                admit(&admission.handlers, &request, &|| {
                    panics.inc();
                })
                .await
            }
            Route::Conversion(conversions) => convert_review(conversions, &request, &|| {
                conversion_panics.inc();
            }),
            Route::Authentication(authenticator) => {
                review(authenticator, &request, &|| {
                    panics.inc();
                })
                .await
            }
        };
        serving.answered(response.status());
        response
    }
}

impl Admission {
    /// The same without its handlers and rules.
    fn head(&self) -> Self {
        Self { phase: self.phase, handlers: Vec::new(), registration: None }
    }

    /// Asks the handlers of `added` after those that are here, about what either names.
    fn join(&mut self, added: Self, path: &str) -> Result<(), BuildError> {
        if self.phase.is_some() && added.phase.is_some() && self.phase != added.phase {
            return Err(BuildError::Mixed { path: path.to_owned() });
        }
        self.phase = self.phase.or(added.phase);
        self.handlers.extend(added.handlers);
        match (&mut self.registration, added.registration) {
            (Some(first), Some(second)) => join_rules(first, second),
            (first @ None, second) => *first = second,
            (Some(_), None) => {}
        }
        Ok(())
    }
}

/// One path is one webhook to the API server: the first decides, and brings the rules of all.
fn join_rules(first: &mut MutatingWebhook, second: MutatingWebhook) {
    let rules = first.rules.get_or_insert_default();
    for rule in second.rules.unwrap_or_default() {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
}

fn is_path(path: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
    };
    path == "/" || path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(part))
}
