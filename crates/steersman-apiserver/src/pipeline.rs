//! The pipeline: path → user → permission → seat → non-resource paths → resource → body → verb →
//! answer.
//!
//! Every kind takes it; verbs only differ in the function at its end, in [`crate::serve`]. The body of a
//! request is not read before the request is known to be allowed: what strangers send stays with
//! them.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use http::request::Parts;
use http::{Method, Response};
use steersman_rules::resource::{Place, Resource, Verb};
use steersman_rules::{names, protobuf};
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::admit::{Turn, admit};
use crate::aggregation::proxy::{self, Passed};
use crate::audit::Trail;
use crate::authz::{Attributes, Authorizer};
use crate::bodies::{self, Bodies, Received, Unread};
use crate::call::Call;
use crate::caller::Caller;
use crate::fairness::Flow;
use crate::impersonation::impersonated;
use crate::metrics::{Answered, Asked};
use crate::negotiate::{Offer, Output, Route, Shape, Wishes};
use crate::openapi::Published;
use crate::reply::{self, ResponseBody};
use crate::request::{
    DEADLINE_MAX, Known, Query, RequestInfo, Segment, decode, is_long_running, segments,
};
use crate::scrape::Others;
use crate::serve::{Times, late, refuse, served};
use crate::state::Server;
use crate::state::remotes::Remote;
use crate::status::{Result, Status};
use crate::user::User;
use crate::warnings::Warnings;
use crate::websocket::Wish;
use crate::{discovery, health, openapi, openid, scrape, zpages};

/// Discovery of more resources than this is long work: some more than Kubernetes itself has.
const LONG_TABLE: usize = 300;

/// What requests pass through: the server, and what is kept only for those who ask about it.
pub(crate) struct Pipeline {
    pub(crate) server: Arc<Server>,
    /// Who else has metrics to tell.
    pub(crate) others: Others,
    /// The OpenAPI documents' parts of what definitions add.
    openapi: Published,
    /// The bodies that are being worked with.
    pub(crate) bodies: Bodies,
}

impl Pipeline {
    /// A pipeline to a server that nobody has asked anything yet.
    pub(crate) fn new(server: Arc<Server>) -> Self {
        let (others, openapi) = (Others::default(), Published::default());
        Self { server, others, openapi, bodies: Bodies::default() }
    }

    /// Answers any request. Never fails: what goes wrong is an answer, too.
    pub(crate) async fn answer(
        &self,
        parts: Parts,
        body: Unread<'_>,
        wishes: &Wishes,
    ) -> Response<ResponseBody> {
        let trail = parts.extensions.get::<Arc<Trail>>().cloned();
        let mut flow = None;
        let answer = try_answer(self, parts, body, wishes, &mut flow).await;
        let mut response =
            answer.unwrap_or_else(|status| refuse(&status, wishes, trail.as_deref()));
        if let Some(flow) = flow {
            flow.mark(response.headers_mut());
        }
        reply::keep_private(&mut response);
        response
    }
}

/// Answers a request; `told` is the flow that it turns out to belong to, if anybody wants to know.
async fn try_answer(
    pipeline: &Pipeline,
    mut parts: Parts,
    body: Unread<'_>,
    wishes: &Wishes,
    told: &mut Option<Arc<Flow>>,
) -> Result<Response<ResponseBody>> {
    let path = segments(parts.uri.path())?;
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    let long = is_long_running(&path, &query);
    let deadline = if long { DEADLINE_MAX } else { query.deadline()? };
    let user = User::taken_from(&mut parts.extensions);
    let user = user.unwrap_or_else(|| Arc::new(User::in_process()));
    let caller = parts.extensions.remove::<Caller>().unwrap_or_default();
    let server = &pipeline.server;
    let trail = parts.extensions.remove::<Arc<Trail>>();
    let whole = decode(parts.uri.path())?;
    let place = (&*whole, &*path);
    let user = match authorized(server, user, &parts, place, &query, trail.as_deref(), told).await {
        Ok(user) => user,
        Err(refusal) => {
            tell_of_own(server, caller, &refusal);
            return Ok(reply::as_declared(refuse(&refusal, wishes, trail.as_deref())));
        }
    };
    let began = Instant::now();
    let mutating = !matches!(parts.method, Method::GET | Method::HEAD);
    let _under_way = (!long).then(|| server.metrics.requests.begin(mutating));
    let asked = Attributes::of_request(&user, &parts.method, &whole, &path, &query);
    // What is streamed to a Pod takes no seat.
    let is_seated = !long || asked.verb == "watch";
    let flow = is_seated.then(|| server.fairness.classify(&asked, began)).flatten();
    // The cluster's own parts do not look at headers.
    *told = flow.clone().filter(|_| caller != Caller::Own);
    let times = Times { began, end: began + deadline };
    if let Some(remote) = elsewhere(server, &path, mutating) {
        let Received { bytes: body, room: _held } = receive(pipeline, body, caller, &user).await?;
        let turn = admit(server, flow, &asked, (version(&path), &query), deadline).await;
        let passed = Passed { parts, body, user: Arc::unwrap_or_clone(user) };
        return pass_on(server, &remote, passed, (turn, times.end)).await;
    }
    if !is_resource(&path) {
        // On the heap, as all that is not on the way of a get: a future is copied as a whole.
        return Box::pin(aside(pipeline, &parts, (&path, &query), (flow, &asked), times)).await;
    }
    let info = RequestInfo::parse(&parts.method, &path, query)?.with_slash_of(parts.uri.path());
    let Some((resource, output)) = resolve_known(server, &info, wishes)? else {
        return Ok(reply::no_such_page());
    };
    check_key(&resource, &info)?;
    let Received { bytes: body, room: _held } = match info.verb {
        Verb::Get | Verb::List | Verb::Watch => Received::default(),
        _ => receive(pipeline, body, caller, &user).await?,
    };
    // Not before the body is there: nobody holds a seat by sending slowly.
    let asked = Attributes::of_request(&user, &parts.method, &whole, &path, &info.query);
    let turn = match admit(server, flow, &asked, (version(&path), &info.query), deadline).await {
        Ok(turn) => turn,
        Err(retry_after) => return Ok(reply::too_many_requests(retry_after)),
    };
    let wish = if info.verb == Verb::Watch { Wish::of(&mut parts) } else { None };
    let call = Call {
        server: Arc::clone(server),
        user,
        caller,
        info,
        api_version: resource.api_version(),
        warnings: Warnings::of(resource.deprecation.iter().map(ToString::to_string)),
        resource,
        output,
        headers: parts.headers,
        body,
        trail,
        webhooks_took: AtomicU64::new(0),
    };
    let span = span(&call);
    let answer = served(call, turn, times, wishes).instrument(span).await;
    Ok(if let Some(wish) = wish { wish.fulfil(answer, server.ended()) } else { answer })
}

/// What is told with everything that is told of a request.
fn span(call: &Call) -> tracing::Span {
    tracing::info_span!(
        "request",
        verb = ?call.info.verb,
        resource = %call.info.resource,
        key = %format_args!("{}/{}", call.place().namespace, call.place().name),
        user = %call.user.name,
    )
}

/// The server elsewhere that answers a path. What one has that belongs to this server is told here,
/// if it is known.
fn elsewhere(server: &Server, path: &[Segment<'_>], mutating: bool) -> Option<Arc<Remote>> {
    let remote = server.remotes.of(path)?;
    (mutating || is_resource(path) || !remote.is_known_beforehand()).then_some(remote)
}

/// Answers a request for a path that names no resource, when it is its turn.
async fn aside(
    pipeline: &Pipeline,
    parts: &Parts,
    (path, query): (&[Segment<'_>], &Query),
    (flow, asked): (Option<Arc<Flow>>, &Attributes<'_>),
    times: Times,
) -> Result<Response<ResponseBody>> {
    let server = &pipeline.server;
    let deadline = times.end - times.began;
    let _turn = match admit(server, flow, asked, (version(path), query), deadline).await {
        Ok(turn) => turn,
        Err(retry_after) => return Ok(reply::too_many_requests(retry_after)),
    };
    let work = pin!(not_a_resource(pipeline, parts, path, query));
    let (response, _) = server.apart.run(is_long(server, path), work).await;
    let response = response?;
    count(server, &parts.method, path, times.began, response.status().as_u16());
    Ok(response)
}

/// Passes a request on to a server elsewhere in time; a watch gives its seat back when it begins.
async fn pass_on(
    server: &Server,
    remote: &Remote,
    passed: Passed,
    (turn, end): (Result<Turn, u64>, Instant),
) -> Result<Response<ResponseBody>> {
    let _turn = match turn {
        Ok(turn) => turn,
        Err(retry_after) => return Ok(reply::too_many_requests(retry_after)),
    };
    let passing = Box::pin(proxy::pass(server, remote, passed));
    timeout_at(end, passing).await.map_err(|_| late())
}

/// Counts a request for a path that names no resource.
fn count(server: &Server, method: &Method, path: &[Segment<'_>], began: Instant, code: u16) {
    let Some(asked) = Asked::of_path(method, path) else { return };
    let took = began.elapsed();
    let requests = &server.metrics.requests;
    requests.awaited(asked).answered(Answered { code, took, ..Answered::default() });
}

/// Reads a body, for which there must be room; what comes from this process has it anyway.
async fn receive<'a>(
    pipeline: &'a Pipeline,
    body: Unread<'_>,
    caller: Caller,
    user: &User,
) -> Result<Received<'a>> {
    let room = (!caller.is_direct()).then(|| pipeline.bodies.room(&user.name));
    Box::pin(bodies::read(body, room)).await
}

/// Whether what a path says that names no resource is long work: documents about everything that is
/// served, of which definitions can make much.
fn is_long(server: &Server, path: &[Segment<'_>]) -> bool {
    match path.first().map(|first| &**first) {
        Some("openapi" | "metrics") => true,
        Some("api" | "apis") => server.registry.table().resources().count() > LONG_TABLE,
        _ => false,
    }
}

/// Whether a path names a resource.
fn is_resource(path: &[Segment<'_>]) -> bool {
    match path {
        [api, _, _, ..] if api == "api" => true,
        [apis, _, _, _, ..] if apis == "apis" => true,
        _ => false,
    }
}

/// The version that a path of the API names.
fn version<'a>(path: &'a [Segment<'_>]) -> &'a str {
    match path {
        [api, version, ..] if api == "api" => version,
        [apis, _, version, ..] if apis == "apis" => version,
        _ => "",
    }
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
    user: Arc<User>,
    parts: &Parts,
    (whole, path): (&str, &[Segment<'_>]),
    query: &Query,
    trail: Option<&Trail>,
    told: &mut Option<Arc<Flow>>,
) -> Result<Arc<User>> {
    let asked = Attributes::of_request(&user, &parts.method, whole, path, query);
    let authorizer = &server.authorizer;
    let access = &server.metrics.access;
    let began = Instant::now();
    let acting = impersonated(authorizer, &asked, &parts.headers);
    match &acting {
        Ok(Some(acting)) => access.acts(Some(acting.mode()), began.elapsed()),
        Err(refused) if refused.code == 403 => access.acts(None, began.elapsed()),
        _ => {}
    }
    let acting = acting?;
    if let (Some(trail), Some(acting)) = (trail, &acting) {
        trail.acts_as(&acting.user, acting.constraint.clone());
    }
    let asked = Attributes { user: acting.as_ref().map_or(&*user, |acting| &acting.user), ..asked };
    let began = Instant::now();
    let decided = match authorizer.look(&*server.store, &asked).await {
        Ok(()) => decide(authorizer, &asked, trail),
        Err(status) => Err(status),
    };
    let decided = match (decided, &server.extended.reviews) {
        (Err(refused), Some(reviews)) if refused.code == 403 => {
            Box::pin(reviews.authorize(&asked)).await
        }
        (decided, _) => decided,
    };
    match decided {
        Ok(()) => access.allows(began.elapsed()),
        Err(status) => {
            access.allows_not(status.code, began.elapsed());
            // Kubernetes knows the flow of a request before it knows whether that is allowed.
            *told = server.fairness.classify(&asked, Instant::now());
            return Err(status);
        }
    }
    Ok(acting.map_or(user, |acting| Arc::new(acting.user)))
}

/// Refuses what is not allowed. Why something is decided is only found out for those who ask.
fn decide(authorizer: &Authorizer, asked: &Attributes<'_>, trail: Option<&Trail>) -> Result<()> {
    let Some(trail) = trail else { return authorizer.authorize(asked) };
    let decision = authorizer.decide(asked);
    trail.decided(&decision);
    if decision.allowed { Ok(()) } else { Err(asked.refusal(&decision.reason)) }
}

/// Answers paths that name no resource: discovery, health, version, OpenAPI.
async fn not_a_resource(
    pipeline: &Pipeline,
    parts: &Parts,
    path: &[Segment<'_>],
    query: &Query,
) -> Result<Response<ResponseBody>> {
    let server = &*pipeline.server;
    let path: Vec<&str> = path.iter().map(|part| &**part).collect();
    if !allows(&parts.method, &path) {
        let nothing = matches!(path.as_slice(), ["apis", group, version]
            if !server.registry.table().serves(group, version));
        let refused = Status::method_not_allowed();
        return if nothing { Ok(reply::no_such_page()) } else { Err(refused) };
    }
    let response = match path.as_slice() {
        ["healthz" | "livez" | "readyz" | "metrics" | "openapi" | "statusz" | "flagz", ..]
            if parts.uri.path().ends_with('/') =>
        {
            Err(Status::no_such_resource())
        }
        [endpoint @ ("healthz" | "livez" | "readyz")] => {
            let answer = health::answer(server, &path, query).await;
            answer.inspect(|answer| scrape::slis::note(server, endpoint, query, answer))
        }
        ["healthz" | "livez" | "readyz", ..] => health::answer(server, &path, query).await,
        ["metrics"] => Ok(scrape::answer(server, &pipeline.others).await),
        ["metrics", "slis"] => Ok(scrape::slis::answer(server)),
        [page @ ("statusz" | "flagz")] => zpages::answer(server, page, parts),
        ["openapi", ..] => {
            let headers = &parts.headers;
            let asked = openapi::Asked { server, published: &pipeline.openapi, query, headers };
            openapi::answer(asked, &path).await
        }
        [".well-known" | "openid", ..] => openid::answer(server, &path).await,
        ["debug", "api_priority_and_fairness", table] => match server.fairness.dump(table) {
            Some(text) => Ok(reply::text(text)),
            None => Ok(reply::no_such_page()),
        },
        _ => discovery::answer(server, &path, parts),
    };
    match response {
        Err(status) if status == Status::no_such_resource() && !is_api(server, &path) => {
            Ok(reply::no_such_page())
        }
        response => response,
    }
}

/// Whether a path is below one that the API has, so that there could be something.
fn is_api(server: &Server, path: &[&str]) -> bool {
    match path {
        ["api" | "version", ..] => true,
        ["apis", group, ..] => has_group(server, group),
        _ => false,
    }
}

/// Whether a group is one of Kubernetes' own.
fn has_group(server: &Server, group: &str) -> bool {
    let table = server.registry.table();
    table.resources().any(|known| known.group == group && !known.is_custom())
}

/// Whether a path that names no resource knows a method. Some do not look.
fn allows(method: &Method, path: &[&str]) -> bool {
    match path {
        [] | ["healthz" | "livez" | "readyz", ..] | ["openapi", "v2"] | ["apis"] | ["apis", _] => {
            true
        }
        ["api", ..] | ["apis", ..] | ["version"] => method == Method::GET,
        ["openapi" | ".well-known" | "openid" | "metrics", ..] => {
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

/// The same; nothing below a group that is none of Kubernetes' own, for there nobody is left who could
/// say in a Status that there is no such resource.
fn resolve_known(
    server: &Server,
    info: &RequestInfo,
    wishes: &Wishes,
) -> Result<Option<(Arc<Resource>, Output)>> {
    match resolve(server, info, wishes) {
        Err(status) if status == Status::no_such_resource() && !has_group(server, &info.group) => {
            Ok(None)
        }
        resolved => resolved.map(Some),
    }
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
            _ if info.name.is_none() && !resource.is_custom() => Err(Status::method_not_allowed()),
            _ => Err(Status::no_such_resource()),
        };
    }
    Ok(())
}

/// Whether what the path names can be the key of something. As in Kubernetes, who looks into a
/// namespace that is a way out of its folder is told so by the store; who writes there is told that
/// there is no such namespace.
fn check_key(resource: &Resource, info: &RequestInfo) -> Result<()> {
    let name = info.name.as_deref().unwrap_or("");
    let wrong = names::path_segment(name);
    if !wrong.is_empty() {
        let wrong = wrong.join(";");
        return Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {wrong}")));
    }
    let namespace = info.namespace.as_deref().unwrap_or("");
    if info.verb != Verb::Create && matches!(namespace, "." | "..") {
        let key = resource.key(Place { namespace, name });
        let key = key.trim_start_matches("/registry").trim_end_matches('/');
        return Err(Status::failure(format!("invalid key: {key:?}")));
    }
    Ok(())
}
