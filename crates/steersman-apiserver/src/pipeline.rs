//! The pipeline: path → user → permission → non-resource paths → resource → verb → answer.
//!
//! Every kind takes it; verbs only differ in the function at its end, in [`perform`].

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response};
use steersman_rules::protobuf;
use steersman_rules::resource::{Resource, Subresource, Verb};
use tokio::time::Instant;
use tracing::Instrument;

use crate::authz::Attributes;
use crate::call::Call;
use crate::caller::Caller;
use crate::impersonation::impersonated;
use crate::metrics::{Asked, Requests};
use crate::negotiate::{Offer, Output, Route, Shape, Wishes};
use crate::on_demand::{Held, Wanted};
use crate::openapi::Published;
use crate::reply::{self, Reply, ResponseBody};
use crate::request::{DEADLINE_MAX, Known, Query, RequestInfo, decode, is_long_running, segments};
use crate::state::Server;
use crate::status::{Result, Status};
use crate::user::User;
use crate::warnings::Warnings;
use crate::{
    access_review, component, connect, discovery, health, metrics, mutate, openapi, openid, read,
};

/// What requests pass through: the server, and what is kept only for those who ask about it.
pub(crate) struct Pipeline {
    pub(crate) server: Arc<Server>,
    /// What was asked for, how often, and how long it took.
    requests: Requests,
    /// The OpenAPI documents' parts of what definitions add.
    openapi: Published,
}

impl Pipeline {
    /// A pipeline to a server that nobody has asked anything yet.
    pub(crate) fn new(server: Arc<Server>) -> Self {
        Self { server, requests: Requests::default(), openapi: Published::default() }
    }

    /// Answers any request. Never fails: what goes wrong is an answer, too.
    pub(crate) async fn answer(
        &self,
        parts: Parts,
        body: Result<Bytes>,
        wishes: &Wishes,
    ) -> Response<ResponseBody> {
        let answer = try_answer(self, parts, body, wishes).await;
        let mut response = answer.unwrap_or_else(|status| refuse(&status, wishes));
        reply::keep_private(&mut response);
        response
    }
}

/// Answers with what went wrong, in a form that the client accepts.
fn refuse(status: &Status, wishes: &Wishes) -> Response<ResponseBody> {
    tracing::debug!(code = status.code, reason = %status.reason, message = %status.message, "request refused");
    reply::failure(status, wishes)
}

async fn try_answer(
    pipeline: &Pipeline,
    mut parts: Parts,
    body: Result<Bytes>,
    wishes: &Wishes,
) -> Result<Response<ResponseBody>> {
    let path = segments(parts.uri.path())?;
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    let long = is_long_running(&path, &query);
    let deadline = if long { DEADLINE_MAX } else { query.deadline()? };
    let user = parts.extensions.remove::<User>().unwrap_or_else(User::in_process);
    let caller = parts.extensions.remove::<Caller>().unwrap_or_default();
    let Pipeline { server, requests, .. } = pipeline;
    let user = authorized(server, user, &parts, &path, &query).await;
    let user = user.inspect_err(|refusal| tell_of_own(server, caller, refusal))?;
    let began = Instant::now();
    let mutating = !matches!(parts.method, Method::GET | Method::HEAD);
    let _under_way = (!long).then(|| requests.begin(mutating));
    if let Some(response) = not_a_resource(pipeline, &parts, &path, &query).await? {
        if let Some(asked) = Asked::of_path(&parts.method, &path) {
            requests.answered(&asked, response.status().as_u16(), began.elapsed());
        }
        return Ok(response);
    }
    let info = RequestInfo::parse(&parts.method, &path, query)?;
    let (resource, output) = resolve(server, &info, wishes)?;
    let headers = parts.headers;
    let body = body?;
    let api_version = resource.api_version();
    let warnings = Warnings::of(resource.deprecation.iter().map(ToString::to_string));
    let server = Arc::clone(server);
    let call =
        Call { server, user, caller, info, resource, api_version, output, headers, body, warnings };
    let span = tracing::info_span!(
        "request",
        verb = ?call.info.verb,
        resource = %call.info.resource,
        key = %format_args!("{}/{}", call.place().namespace, call.place().name),
        user = %call.user.name,
    );
    async {
        let mut held = None;
        let reply = in_time(deadline, async {
            held = bring_up_to_date(&call).await;
            perform(&call).await
        });
        let reply = reply.await;
        let rendered = reply.and_then(|reply| reply::render(&call, reply));
        // A body that no path of the kind reads is refused before anybody looks at the kind.
        let is_looked_at = !matches!(&rendered, Err(status) if *status == Status::no_route_reads());
        let mut response = rendered.unwrap_or_else(|status| refuse(&status, wishes));
        if is_looked_at {
            reply::warn(&call, &mut response);
        }
        let asked = Asked::of(&call);
        requests.answered(&asked, response.status().as_u16(), began.elapsed());
        Ok(if call.info.verb == Verb::Watch && response.status().is_success() {
            response.map(|body| body.holding((requests.goes_on(&asked), held)))
        } else {
            response
        })
    }
    .instrument(span)
    .await
}

/// A part of the cluster that may not do what it does has the wrong role: nobody else would notice.
fn tell_of_own(server: &Server, caller: Caller, refusal: &Status) {
    if caller == Caller::Own && refusal.code == 403 {
        tracing::error!(why = %refusal.message, "a part of the cluster lacks a permission");
        server.part_refused.send_replace(Some(refusal.message.clone()));
    }
}

/// The user whom a request is authorised for: the one that it comes from, or acts as. Everything is
/// decided by method, path and query, before anybody looks at the body.
async fn authorized(
    server: &Server,
    user: User,
    parts: &Parts,
    path: &[String],
    query: &Query,
) -> Result<User> {
    let whole = decode(parts.uri.path())?;
    let asked = Attributes::of_request(&user, &parts.method, &whole, path, query);
    let authorizer = &server.authorizer;
    match impersonated(authorizer, &asked, &parts.headers)? {
        Some(acting) => {
            let asked = Attributes { user: &acting, ..asked };
            authorizer.look(&*server.store, &asked).await?;
            authorizer.authorize(&asked)?;
            Ok(acting)
        }
        None => {
            authorizer.look(&*server.store, &asked).await?;
            authorizer.authorize(&asked)?;
            Ok(user)
        }
    }
}

/// Waits for an answer, but no longer than the client wants and the server allows. A watch is
/// answered at once and then goes on.
async fn in_time(deadline: Duration, answer: impl Future<Output = Result<Reply>>) -> Result<Reply> {
    let late = |_| Status::timeout("request did not complete within the allotted timeout");
    tokio::time::timeout(deadline, answer).await.map_err(late)?
}

/// Lets whoever keeps the objects of a request up to date on demand do so.
async fn bring_up_to_date(call: &Call) -> Option<Held> {
    let keeper = call.server.on_demand.get().filter(|_| call.caller != Caller::Own)?;
    let wanted = Wanted {
        group: &call.resource.group,
        resource: &call.resource.plural,
        namespace: call.namespace(),
        name: call.place().name,
        access: call.info.verb.into(),
    };
    keeper.wanted(wanted).await
}

/// Answers paths that name no resource: discovery, health, version, OpenAPI.
async fn not_a_resource(
    pipeline: &Pipeline,
    parts: &Parts,
    path: &[String],
    query: &Query,
) -> Result<Option<Response<ResponseBody>>> {
    let server = &*pipeline.server;
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let is_resource = matches!(path.as_slice(), ["api", _, _, ..] | ["apis", _, _, _, ..]);
    if is_resource {
        return Ok(None);
    }
    if !allows(&parts.method, &path) {
        let nothing = matches!(path.as_slice(), ["apis", group, version]
            if !server.registry.table().serves(group, version));
        let refused = Status::method_not_allowed();
        return if nothing { Ok(Some(reply::no_such_page())) } else { Err(refused) };
    }
    let response = match path.as_slice() {
        ["healthz" | "livez" | "readyz" | "metrics" | "openapi", ..]
            if parts.uri.path().ends_with('/') =>
        {
            Err(Status::no_such_resource())
        }
        ["healthz" | "livez" | "readyz", ..] => health::answer(server, &path, query).await,
        ["metrics"] => Ok(metrics::answer(server, &pipeline.requests).await),
        ["openapi", ..] => {
            let headers = &parts.headers;
            let asked = openapi::Asked { server, published: &pipeline.openapi, query, headers };
            openapi::answer(asked, &path).await
        }
        [".well-known" | "openid", ..] => openid::answer(server, &path).await,
        _ => discovery::answer(server, &path, parts),
    };
    match response {
        Err(status) if status == Status::no_such_resource() && !is_api(server, &path) => {
            Ok(Some(reply::no_such_page()))
        }
        response => response.map(Some),
    }
}

/// Whether a path is below one that the API has, so that there could be something.
fn is_api(server: &Server, path: &[&str]) -> bool {
    match path {
        ["api" | "version", ..] => true,
        ["apis", group, ..] => {
            let table = server.registry.table();
            table.resources().any(|known| known.group == *group && !known.is_custom())
        }
        _ => false,
    }
}

/// Whether a path that names no resource knows a method. Some do not look.
fn allows(method: &Method, path: &[&str]) -> bool {
    match path {
        ["healthz" | "livez" | "readyz", ..] | ["openapi", "v2"] | ["apis"] | ["apis", _] => true,
        ["api", ..] | ["apis", ..] | ["version"] => method == Method::GET,
        ["openapi" | ".well-known" | "openid" | "metrics", ..] | [] => {
            matches!(*method, Method::GET | Method::HEAD)
        }
        // There is nothing at the others, whatever one wants of it.
        _ => true,
    }
}

/// Finds the resource, checks that it knows the verb, and chooses the form of the answer.
fn resolve(
    server: &Server,
    info: &RequestInfo,
    wishes: &Wishes,
) -> Result<(Arc<Resource>, Output)> {
    let table = server.registry.table();
    let resource = table.get(&info.group, &info.version, &info.resource);
    let resource = Arc::clone(resource.ok_or_else(Status::no_such_resource)?);
    check_path(&resource, info)?;
    // Reviews and their like are only ever created: no path leads to one of them.
    if resource.verbs == [Verb::Create] && info.name.is_some() {
        return Err(Status::no_such_resource());
    }
    let custom = resource.is_custom();
    let named = resource.named(info.name.as_deref().unwrap_or(""));
    let verbs = match &info.subresource {
        None => resource.verbs,
        Some(name) => match resource.subresource(name) {
            Some(subresource) => subresource.verbs,
            // Below a custom resource it is the object that is not found.
            None if custom => return Err(Status::not_found(named)),
            None => return Err(Status::no_such_resource()),
        },
    };
    match info.method {
        Known::ToAll if verbs.contains(&info.verb) => {}
        // The route of a list takes watches, too, and refuses them itself.
        Known::ToAll if info.verb == Verb::Watch && verbs.contains(&Verb::List) => {}
        Known::ToCustomResources if custom && verbs.contains(&info.verb) => {}
        Known::ToAll | Known::ToCustomResources if custom => {
            return Err(Status::verb_not_supported(named, info.verb.name()));
        }
        _ => return Err(Status::method_not_allowed()),
    }
    if !custom {
        let collection = matches!(info.verb, Verb::List | Verb::Watch);
        wishes.check_route(if collection { Route::Collection } else { Route::Object })?;
    }
    let has_table = resource.has_table(info.subresource.as_deref().unwrap_or(""));
    let offer = Offer {
        shapes: if has_table { &[Shape::Metadata, Shape::Table] } else { &[Shape::Metadata] },
        protobuf: protobuf::writes(&resource.schema),
        stream: info.verb == Verb::Watch,
    };
    let output = wishes.choose(offer)?;
    Ok((resource, output))
}

/// Whether the path fits the scope of the resource.
fn check_path(resource: &Resource, info: &RequestInfo) -> Result<()> {
    let in_namespace = info.namespace.is_some();
    let odd = |part: &Option<String>| part.as_deref().is_some_and(|text| text.contains('/'));
    if (in_namespace && !resource.namespaced) || odd(&info.namespace) || odd(&info.name) {
        return Err(Status::no_such_resource());
    }
    if info.namespace.as_deref() == Some("") {
        return Err(Status::bad_request("Namespace parameter required."));
    }
    if resource.namespaced && !in_namespace {
        return match info.verb {
            Verb::List | Verb::Watch if info.name.is_none() => Ok(()),
            _ if info.name.is_none() => Err(Status::method_not_allowed()),
            _ => Err(Status::no_such_resource()),
        };
    }
    Ok(())
}

/// The verbs. What writes is on the heap, for it is large, and reads should not carry it about.
async fn perform(call: &Call) -> Result<Reply> {
    if let Some(reply) = access_review::answer(call).await? {
        return Ok(reply);
    }
    if let Some(reply) = component::answer(call).await? {
        return Ok(reply);
    }
    if call.resource.subresource(call.subresource()).is_some_and(Subresource::is_connection) {
        return connect::answer(call).await;
    }
    match (call.info.verb, call.subresource()) {
        (Verb::Get, "scale") => Box::pin(mutate::scale::get(call)).await,
        (Verb::Get, _) => read::get::get(call).await,
        (Verb::List, _) => read::list::list(call).await,
        (Verb::Watch, _) => read::watch::watch(call).await,
        (Verb::Create, "binding") => Box::pin(mutate::binding::bind(call)).await,
        (Verb::Create, "token") => Box::pin(mutate::token_request::create(call)).await,
        (Verb::Create, "eviction") => Box::pin(mutate::eviction::evict(call)).await,
        (Verb::Create, "") if call.resource.is("", "bindings") => {
            Box::pin(mutate::binding::bind(call)).await
        }
        (Verb::Create, "") => Box::pin(mutate::create::create(call)).await,
        (Verb::Create, _) => Err(Status::no_such_resource()),
        (Verb::Update, "scale") => Box::pin(mutate::scale::update(call)).await,
        (Verb::Update, _) => Box::pin(mutate::update::update(call)).await,
        (Verb::Patch, "scale") => Box::pin(mutate::scale::patch(call)).await,
        (Verb::Patch, _) => Box::pin(mutate::patch::patch(call)).await,
        (Verb::Delete, _) => Box::pin(mutate::delete::delete(call)).await,
        (Verb::DeleteCollection, _) => {
            Box::pin(mutate::delete_collection::delete_collection(call)).await
        }
    }
}
