//! A request as those note it who look at all of them: the name that it goes by, and what is
//! audited of it.

use std::sync::{Arc, Weak};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Response};

use crate::audit::{self, AUDIT_ID, Audited, Head, Post, Refused};
use crate::authn::Remarks;
use crate::caller::Peer;
use crate::reply::ResponseBody;
use crate::state::Server;
use crate::user::User;
use crate::webhook_client::Target;

/// How long the audit webhook may take to answer.
const WEBHOOK_TIME: Duration = Duration::from_secs(30);

/// A request on its way.
pub(crate) struct Noted {
    /// What it goes by: what its client says; anew if it came over the network or somebody audits.
    id: Option<HeaderValue>,
    audited: Option<Audited>,
}

impl Noted {
    /// Notes a request, and begins to audit it if the policy covers it. Its trail is among its
    /// extensions then.
    pub(crate) fn of(server: &Server, parts: &mut Parts) -> Self {
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.0);
        let is_named = peer.is_some() || server.audit.get().is_some();
        if !is_named && !parts.headers.contains_key(AUDIT_ID) {
            return Self { id: None, audited: None };
        }
        let id = audit::id(&parts.headers, &server.request_ids);
        // A server behind this one is to call it by the same name.
        parts.headers.insert(AUDIT_ID, id.clone());
        let audited = server.audit.get().and_then(|audit| {
            let in_process = User::in_process();
            let user = Some(User::among(&parts.extensions).unwrap_or(&in_process));
            let Parts { method, uri, headers, .. } = &*parts;
            audit.begin(Head { method, uri, headers, peer, user }, &id)
        });
        if let Some(trail) = audited.as_ref().and_then(Audited::trail) {
            if let Some(remarks) = parts.extensions.get::<Remarks>() {
                remarks.tell(trail);
            }
            parts.extensions.insert(Arc::clone(trail));
        }
        Self { id: Some(id), audited }
    }

    /// It is answered.
    pub(crate) fn answered(self, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
        let Self { id, audited } = self;
        if let Some(id) = id {
            response.headers_mut().insert(AUDIT_ID, id);
        }
        match audited {
            Some(audited) if audited.answered(response.status()) => {
                response.map(|body| body.holding(audited))
            }
            _ => response,
        }
    }

    /// The server failed over it, and answers so.
    pub(crate) fn panicked(
        mut self,
        why: &str,
        response: Response<ResponseBody>,
    ) -> Response<ResponseBody> {
        if let Some(audited) = self.audited.take() {
            audited.panicked(why);
        }
        self.answered(response)
    }
}

/// Names a request that nobody was found behind, and audits that it was refused.
pub(crate) fn refused(
    server: &Server,
    head: Head<'_>,
    certificate: bool,
    response: &mut Response<ResponseBody>,
) {
    let id = audit::id(head.headers, &server.request_ids);
    if let Some(audit) = server.audit.get() {
        let code = response.status().as_u16();
        audit.refused(head, &id, Refused { certificate, code });
    }
    response.headers_mut().insert(AUDIT_ID, id);
}

/// Starts to send events to the audit webhook, if there is one.
pub(crate) fn start_webhook(server: &Arc<Server>) {
    let Some(audit) = server.audit.get().map(Arc::clone) else { return };
    let Some(batches) = audit.batches() else { return };
    let endpoint = batches.settings.endpoint.clone();
    let target = Target::at(&endpoint.url, endpoint.authorities).showing(endpoint.identity);
    let called = Arc::new((target, endpoint.token));
    let caller: Weak<Server> = Arc::downgrade(server);
    let post: Post = Arc::new(move |body| {
        let called = Arc::clone(&called);
        let caller = caller.upgrade();
        Box::pin(async move {
            let server = caller.ok_or("the server has stopped")?;
            let (target, token) = &*called;
            let origins = &server.origins;
            origins.deliver(&*server.store, target, token.as_deref(), body, WEBHOOK_TIME).await
        })
    });
    let ended = server.ended();
    tokio::spawn(async move {
        if let Some(batches) = audit.batches() {
            batches.run(post, ended).await;
        }
    });
}
