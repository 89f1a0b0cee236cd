//! Serving a call whose turn it is: in time, apart from others if it is long work, and counted.
//!
//! Whether a call is long work is known beforehand from its body and from what it reads; for the
//! rest, [what its like took before](Pace) tells. Long work is a task of its own, so that its client
//! is answered in time whatever the work does: it is given up at its next [`breath`](crate::apart).

use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Response;
use steersman_rules::abandoned::within;
use steersman_rules::resource::{Resource, Subresource, Verb};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};
use tracing::Instrument;

use crate::admission_policies::are_policies;
use crate::admit::{Answering, Turn};
use crate::apart::{LONG_BYTES, LONG_BYTES_YAML, LONG_LIST, LONG_LIST_BYTES, Pace};
use crate::audit::Trail;
use crate::call::Call;
use crate::caller::Caller;
use crate::fairness::{Lender, serving};
use crate::metrics::{Answered, Counted};
use crate::negotiate::{Wishes, media_type};
use crate::on_demand::{Held, Wanted};
use crate::reply::{self, Reply, ResponseBody};
use crate::status::{Result, Status};
use crate::{access_review, component, computed, connect, crd, mutate, read, records};

/// Answers with what went wrong, in a form that the client accepts.
pub(crate) fn refuse(
    status: &Status,
    wishes: &Wishes,
    trail: Option<&Trail>,
) -> Response<ResponseBody> {
    if let Some(trail) = trail {
        trail.fails(status);
    }
    tracing::debug!(code = status.code, reason = %status.reason, message = %status.message, "request refused");
    reply::failure(status, wishes)
}

/// How long the write of one object may take at most, however long its client would wait: no longer than
/// the longest time of a webhook, and a little more.
const WRITE_MAX: Duration = Duration::from_secs(34);

/// When a request began, and when it must be answered.
#[derive(Clone, Copy)]
pub(crate) struct Times {
    pub(crate) began: Instant,
    pub(crate) end: Instant,
}

/// When a call that is being answered is given up.
#[derive(Clone, Copy)]
struct Limit {
    end: Instant,
    /// Whether that is because a write may not take longer.
    is_of_writes: bool,
}

impl Limit {
    /// That of a call whose turn has come.
    fn of(call: &Call, times: Times) -> Self {
        let end = Instant::now() + WRITE_MAX;
        let is_of_writes = writes_one(call) && end < times.end;
        Self { end: if is_of_writes { end } else { times.end }, is_of_writes }
    }

    /// There is no answer in time.
    fn late(self) -> Status {
        if self.is_of_writes {
            let why =
                "request did not complete within requested timeout - context deadline exceeded";
            return Status::timeout(why);
        }
        late()
    }
}

/// Whether a call writes one object. A whole collection takes as long as it takes, and so does being
/// connected.
fn writes_one(call: &Call) -> bool {
    let subresource = call.resource.subresource(call.subresource());
    writes(call)
        && call.info.verb != Verb::DeleteCollection
        && !subresource.is_some_and(Subresource::is_connection)
}

/// Answers a call whose turn it is.
pub(crate) async fn served(
    call: Call,
    turn: Turn,
    times: Times,
    wishes: &Wishes,
) -> Response<ResponseBody> {
    let call = Arc::new(call);
    if let Some(trail) = &call.trail {
        records::request(&call, trail);
    }
    let awaited = call.server.metrics.requests.awaited(call.asked());
    let pace = awaited.pace();
    let checks = costly_checks(&call);
    let is_long = is_long_work(&call, &turn, pace, checks);
    let lender = turn.seat.as_ref().and_then(Lender::of);
    let limit = Limit::of(&call, times);
    let Done { rendered, held, longest } = done(&call, is_long, limit, lender).await;
    if call.resource.is_custom() && call.resource.schema.is_in_use() {
        crd::used(&call.server);
    }
    if let Some((pace, checks)) = pace.zip(checks) {
        pace.took(checks, longest);
    }
    // A body that no path of the kind reads is refused before anybody looks at the kind.
    let is_looked_at = !matches!(&rendered, Err(status) if *status == Status::no_route_reads());
    let terminated = rendered.as_ref().is_err_and(|status| status.code == 504);
    let mut response =
        rendered.unwrap_or_else(|status| refuse(&status, wishes, call.trail.as_deref()));
    if is_looked_at {
        reply::warn(&call, &mut response);
    }
    let counted = awaited.answered(Answered {
        code: response.status().as_u16(),
        took: times.began.elapsed(),
        others_took: call.webhooks_took(),
        terminated,
    });
    holding(call.info.verb, response, turn, counted, held)
}

/// The answer with all that it holds until it is read.
fn holding(
    verb: Verb,
    response: Response<ResponseBody>,
    turn: Turn,
    counted: Counted,
    held: Option<Held>,
) -> Response<ResponseBody> {
    let Turn { seat, watched, .. } = turn;
    if verb == Verb::Watch && response.status().is_success() {
        let kept = (counted.goes_on(), held, watched);
        return response.map(|body| body.until_silent(seat.map(Answering::with)).holding(kept));
    }
    let is_streamed = response.body().is_streamed();
    let response = match verb {
        Verb::Get | Verb::List => {
            response.map(|body| body.measured(move |bytes| counted.sized(bytes)))
        }
        _ => response,
    };
    if is_streamed {
        response.map(|body| body.holding(seat.map(Answering::with)))
    } else {
        response
    }
}

/// What came of a call.
struct Done {
    rendered: Result<Response<ResponseBody>>,
    held: Option<Held>,
    /// How long it kept a thread at once, at most.
    longest: Duration,
}

/// Does the work of a call; if it is long, in a task of its own.
async fn done(call: &Arc<Call>, is_long: bool, limit: Limit, lender: Option<Lender>) -> Done {
    let apart = &call.server.apart;
    if apart.is_apart(is_long) {
        return Box::pin(done_apart(call, limit, lender)).await;
    }
    let work = pin!(work(call, limit));
    let served = pin!(serving(lender, work));
    let ((rendered, held), longest) = apart.run(false, served).await;
    Done { rendered, held, longest }
}

/// Does the work of a call in a task of its own.
async fn done_apart(call: &Arc<Call>, limit: Limit, lender: Option<Lender>) -> Done {
    let its = Arc::clone(call);
    let abandoned = Arc::<AtomicBool>::default();
    let seen = Arc::clone(&abandoned);
    let task = async move {
        let work = pin!(work(&its, limit));
        let mut served = pin!(serving(lender, work));
        let served = pin!(poll_fn(|context| within(&seen, || served.as_mut().poll(context))));
        its.server.apart.run(true, served).await
    };
    let task = tokio::spawn(task.in_current_span());
    let mut task = Apart { task, abandoned };
    match timeout_at(limit.end, &mut task.task).await {
        Ok(Ok(((rendered, held), longest))) => Done { rendered, held, longest },
        Ok(Err(error)) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Done::late(limit),
        },
        Err(_) => Done::late(limit),
    }
}

impl Done {
    /// There is no answer in time.
    fn late(limit: Limit) -> Self {
        Self { rendered: Err(limit.late()), held: None, longest: Duration::from_secs(1) }
    }
}

/// Long work of a request. Dropped, it is given up: first it is told not to go on when it next
/// breathes, so that nothing comes of what it leaves out from then on.
struct Apart<T> {
    task: JoinHandle<T>,
    abandoned: Arc<AtomicBool>,
}

impl<T> Drop for Apart<T> {
    fn drop(&mut self) {
        self.task.abort();
        self.abandoned.store(true, Ordering::Release);
    }
}

type Rendered = (Result<Response<ResponseBody>>, Option<Held>);

/// The work of a call.
async fn work(call: &Call, limit: Limit) -> Rendered {
    let mut held = None;
    let reply = in_time(limit, async {
        held = bring_up_to_date(call).await;
        perform(call).await
    });
    let reply = reply.await;
    if let (Some(trail), Ok(reply)) = (&call.trail, &reply) {
        records::reply(call, trail, reply);
    }
    (reply.and_then(|reply| reply::render(call, reply)), held)
}

/// Whether a call is so much work that others should not have to wait for it: by its body, by
/// what it reads, or by what its like took. What is stored is looked at where it is
/// [changed](crate::write).
fn is_long_work(call: &Call, turn: &Turn, pace: Option<&Pace>, checks: Option<u64>) -> bool {
    let bytes = || match call.content_type() {
        Some(media_type) if media_type.contains("yaml") => LONG_BYTES_YAML,
        _ => LONG_BYTES,
    };
    let is_large = !call.body.is_empty() && call.body.len() > bytes();
    let is_long = |checks| pace.and_then(|pace| pace.is_long(checks)).unwrap_or(true);
    let learned = || checks.is_some_and(is_long);
    let reads = turn.objects > LONG_LIST || turn.bytes > LONG_LIST_BYTES;
    // What was learned is of a schema that is there. Objects older than their definition are held to
    // it when they are read, too.
    let is_to_be_built =
        || call.info.verb != Verb::Watch && !call.resource.schema.is_at_hand(writes(call));
    is_large || reads || compiles(call) || learned() || is_to_be_built()
}

fn writes(call: &Call) -> bool {
    !matches!(call.info.verb, Verb::Get | Verb::List | Verb::Watch)
}

/// Whether a few bytes can be a pattern or an expression that takes long to compile: those of a
/// definition, after which the first object pays for it once more, those of a policy, and those that
/// select devices.
fn compiles(call: &Call) -> bool {
    let is_definition = || call.resource.is("apiextensions.k8s.io", "customresourcedefinitions");
    let compiles = is_definition() && !is_plain(call)
        || are_policies(&call.resource)
        || call.subresource().is_empty() && selects_devices(&call.resource);
    writes(call) && compiles
}

fn selects_devices(resource: &Resource) -> bool {
    let kinds = ["deviceclasses", "resourceclaims", "resourceclaimtemplates"];
    kinds.iter().any(|kind| resource.is("resource.k8s.io", kind))
}

/// Whether a new definition takes no longer than its bytes do. Only macros that copy and patterns that
/// count, or name classes of characters, make more of what is written; they are looked for as text, so
/// nothing may be written in another way. A set of definitions is served much sooner if none of them
/// changes threads.
fn is_plain(call: &Call) -> bool {
    let begins_more = |byte: &u8| matches!(byte, b'o' | b'\\' | b'{');
    let makes_more = |part: &[u8]| match part {
        [b'o', b'p', b't', b'M' | b'F', ..] | [b'\\', b'u' | b'p' | b'P', ..] => true,
        [b'{', digit, ..] => digit.is_ascii_digit(),
        _ => false,
    };
    let is_plain = || {
        let mut rest = &call.body[..];
        while let Some(at) = rest.iter().position(begins_more) {
            if makes_more(&rest[at..]) {
                return false;
            }
            rest = &rest[at + 1..];
        }
        true
    };
    call.info.verb == Verb::Create
        && media_type(call.content_type()) == "application/json"
        && is_plain()
}

/// The version of what the objects of a write are held to that may cost more than follows from
/// their size: the schema of a definition, and policies; `None` where there is nothing such. What
/// others of a built-in kind take follows from bytes: who writes the same kind does not make it
/// longer.
fn costly_checks(call: &Call) -> Option<u64> {
    if !writes(call) {
        return None;
    }
    let schema = &call.resource.schema;
    let by_schema = schema.has_costly_checks().then(|| schema.resource_version());
    // Both are revisions of the store, so that a change of either is the newer one.
    by_schema.max(call.server.policies.concern(&call.resource).map(|revision| revision.0))
}

/// There is no answer in time.
pub(crate) fn late() -> Status {
    Status::timeout("request did not complete within the allotted timeout")
}

/// Waits for an answer, but no longer than the client wants and the server allows. A watch is
/// answered at once and then goes on.
async fn in_time(limit: Limit, answer: impl Future<Output = Result<Reply>>) -> Result<Reply> {
    timeout_at(limit.end, answer).await.map_err(|_| limit.late())?
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

/// The verbs. All but the reading of one object are on the heap, for they are large, and whoever reads
/// one object should not carry them about: a request's future is copied as a whole.
async fn perform(call: &Call) -> Result<Reply> {
    if let Some(reply) = access_review::answer(call).await? {
        return Ok(reply);
    }
    if let Some(reply) = computed::answer(call).await? {
        return Ok(reply);
    }
    if let Some(reply) = component::answer(call).await? {
        return Ok(reply);
    }
    if call.resource.subresource(call.subresource()).is_some_and(Subresource::is_connection) {
        return Box::pin(connect::answer(call)).await;
    }
    match (call.info.verb, call.subresource()) {
        (Verb::Get, "scale") => Box::pin(mutate::scale::get(call)).await,
        (Verb::Get, _) => read::get::get(call).await,
        (Verb::List, _) => Box::pin(read::list::list(call)).await,
        (Verb::Watch, _) => Box::pin(read::watch::watch(call)).await,
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
