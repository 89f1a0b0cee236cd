//! Requests to etcd: asked of one member until it fails, then of the next, until the deadline.
//!
//! A request is repeated only if it certainly was not done, or if doing it twice changes nothing.
//! Whatever else it was remains [`Failure::Lost`], for the caller to settle.

use std::time::Duration;

use futures::future::{self, FutureExt};
use futures::stream::{self, Stream, StreamExt};
use prost::Message;
use tokio::sync::{Mutex, oneshot};
use tokio::time::{Instant, sleep_until, timeout_at};
use tonic::Streaming;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use super::error::Failure;
use super::members::{Member, Members};
use super::wire::{
    AuthenticateRequest, AuthenticateResponse, Header, RangeRequest, RangeResponse, WatchRequest,
    WatchResponse,
};
use super::{ConnectError, Options};

/// What the first attempt may take if there can be others; each one after it twice as long.
const ATTEMPT: Duration = Duration::from_secs(2);
/// The wait after all members have failed; it doubles from the first to the second.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(500));
/// How often a token may turn out to be unknown before that counts as an answer.
const TOKENS_MAX: usize = 3;
/// The largest answer that is read. Pages of a list stay far below it.
const ANSWER_MAX: usize = 1 << 30;
/// A key that never exists: reading it tells the revision and nothing else.
const NOTHING: &[u8] = b"/registry/steersman.dev/nothing";

/// A request that etcd knows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method {
    path: &'static str,
    repeat: Repeat,
}

/// What may be done about a request that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    /// Asking again changes nothing more.
    Freely,
    /// The caller knows how to ask again.
    ByCaller,
    /// Nothing: it is better to wait for the answer.
    Never,
}

pub(super) const RANGE: Method = method("/etcdserverpb.KV/Range", Repeat::Freely);
/// A transaction that happens at most once, however often it is asked for.
pub(super) const CAS: Method = method("/etcdserverpb.KV/Txn", Repeat::ByCaller);
pub(super) const TXN: Method = method("/etcdserverpb.KV/Txn", Repeat::Never);
pub(super) const COMPACT: Method = method("/etcdserverpb.KV/Compact", Repeat::Freely);
pub(super) const GRANT: Method = method("/etcdserverpb.Lease/LeaseGrant", Repeat::Freely);
const AUTHENTICATE: Method = method("/etcdserverpb.Auth/Authenticate", Repeat::Freely);

const fn method(path: &'static str, repeat: Repeat) -> Method {
    Method { path, repeat }
}
const WATCH: &str = "/etcdserverpb.Watch/Watch";

/// Asks etcd.
pub(super) struct Client {
    members: Members,
    user: Option<User>,
}

/// Who we are to etcd, if it wants to know.
struct User {
    name: String,
    password: String,
    /// Held while a token is asked for, so that one suffices for all.
    token: Mutex<Option<Token>>,
}

type Token = MetadataValue<Ascii>;

/// What a watch tells. Dropping it ends the watch.
pub(super) struct Watching {
    answers: Streaming<WatchResponse>,
    /// etcd goes on as long as more could be said.
    _open: oneshot::Sender<()>,
}

impl Watching {
    /// The next message; cancel-safe.
    pub(super) async fn next(&mut self) -> Result<WatchResponse, Failure> {
        match self.answers.message().await {
            Ok(Some(response)) => Ok(response),
            Ok(None) => Err(Failure::NotDone("etcd ended the watch".into())),
            Err(status) => Err(Failure::of(&status)),
        }
    }
}

/// How a request goes on after a failure.
struct Attempts {
    method: Method,
    deadline: Instant,
    made: usize,
    tokens: usize,
    backoff: Duration,
    /// Why the last attempt failed.
    reason: Option<String>,
}

impl Client {
    pub(super) fn new(options: &Options) -> Result<Self, ConnectError> {
        let user = options.user.clone();
        let user = user.map(|(name, password)| User { name, password, token: Mutex::new(None) });
        Ok(Self { members: Members::new(options)?, user })
    }

    /// Asks, again if need be, until the deadline.
    pub(super) async fn call<Q, A>(
        &self,
        method: Method,
        request: &Q,
        deadline: Instant,
    ) -> Result<A, Failure>
    where
        Q: Message + Clone + 'static,
        A: Message + Default + 'static,
    {
        let mut attempts = Attempts::new(method, deadline);
        loop {
            let (place, member) = self.members.current();
            let attempt = self.ask(member, method, request.clone());
            let failure = match timeout_at(attempts.limit(self.members.count()), attempt).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => attempts.no_answer(member),
            };
            if matches!(failure, Failure::NotDone(_) | Failure::Lost(_)) {
                self.members.avoid(place);
            }
            attempts.next(failure, self.members.count()).await?;
        }
    }

    /// The cluster and its revision, no older than any write that was acknowledged before.
    pub(super) async fn head(&self, deadline: Instant) -> Result<Header, Failure> {
        let key = NOTHING.into();
        let request = RangeRequest { key, count_only: true, ..RangeRequest::default() };
        let answer: RangeResponse = self.call(RANGE, &request, deadline).await?;
        answer.header.ok_or_else(|| Failure::NotDone("etcd's answer has no header".into()))
    }

    /// Opens a watch at the member that is asked now. Whoever finds it failing calls
    /// [`avoid`](Self::avoid) with the place that is returned.
    pub(super) async fn watch(
        &self,
        request: WatchRequest,
        deadline: Instant,
    ) -> (usize, Result<Watching, Failure>) {
        let (place, member) = self.members.current();
        let opening = timeout_at(deadline, self.open(member, request));
        let lost = || Err(Failure::Lost(format!("{} does not answer", member.address)));
        (place, opening.await.unwrap_or_else(|_| lost()))
    }

    /// Turns to another member than this.
    pub(super) fn avoid(&self, place: usize) {
        self.members.avoid(place);
    }

    async fn open(&self, member: &Member, request: WatchRequest) -> Result<Watching, Failure> {
        let token = self.token(member).await?;
        let (open, closed) = oneshot::channel();
        let nothing_more = closed.into_stream().filter_map(|_| future::ready(None));
        let requests = stream::iter([request]).chain(nothing_more);
        let answer = streaming(member, prepared(requests, token.as_ref())).await;
        Ok(Watching { answers: self.checked(answer, token.as_ref()).await?, _open: open })
    }

    async fn ask<Q, A>(&self, member: &Member, method: Method, request: Q) -> Result<A, Failure>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let token = self.token(member).await?;
        let answer = unary(member, method, request, token.as_ref()).await;
        self.checked(answer, token.as_ref()).await
    }

    /// Forgets a token that etcd no longer knows.
    async fn checked<A>(
        &self,
        answer: Result<tonic::Response<A>, tonic::Status>,
        used: Option<&Token>,
    ) -> Result<A, Failure> {
        let failure = match answer {
            Ok(answer) => return Ok(answer.into_inner()),
            Err(status) => Failure::of(&status),
        };
        if matches!(failure, Failure::TokenExpired(_)) {
            self.forget_token(used).await;
        }
        Err(failure)
    }

    /// Asks for another token before the next request, unless that has been done.
    pub(super) async fn forget_token(&self, used: Option<&Token>) {
        let Some(user) = &self.user else { return };
        let mut known = user.token.lock().await;
        if used.is_none() || known.as_ref() == used {
            *known = None;
        }
    }

    async fn token(&self, member: &Member) -> Result<Option<Token>, Failure> {
        let Some(user) = &self.user else { return Ok(None) };
        let mut known = user.token.lock().await;
        if known.is_none() {
            let name = user.name.clone();
            let password = user.password.clone();
            let request = AuthenticateRequest { name, password };
            let answer = unary(member, AUTHENTICATE, request, None).await;
            // Nothing of what was really asked has been sent yet.
            let answer: AuthenticateResponse = match answer.map_err(|status| Failure::of(&status)) {
                Err(Failure::Lost(reason)) => return Err(Failure::NotDone(reason)),
                Err(failure) => return Err(failure),
                Ok(answer) => answer.into_inner(),
            };
            let token = answer.token.parse();
            *known = Some(token.map_err(|_| Failure::Refused("etcd's token is no text".into()))?);
        }
        Ok(known.clone())
    }
}

impl Attempts {
    fn new(method: Method, deadline: Instant) -> Self {
        Self { method, deadline, made: 0, tokens: 0, backoff: BACKOFF.0, reason: None }
    }

    /// Until when the next attempt may take. One that cannot be repeated gets all of the time, as
    /// does one whose first answer would be lost for it, if there is nobody else to ask.
    fn limit(&self, members: usize) -> Instant {
        let alone = self.method.repeat == Repeat::ByCaller && members == 1;
        if alone || self.method.repeat == Repeat::Never {
            return self.deadline;
        }
        let longer = 2_u32.saturating_pow(u32::try_from(self.made).unwrap_or(u32::MAX));
        self.deadline.min(Instant::now() + ATTEMPT.saturating_mul(longer))
    }

    /// The failure of an attempt that took too long. What went before says more about why.
    fn no_answer(&self, member: &Member) -> Failure {
        let before = self.reason.as_ref().map(|reason| format!("; before: {reason}"));
        Failure::Lost(format!("{} does not answer{}", member.address, before.unwrap_or_default()))
    }

    /// Waits until the next attempt, if there is to be one.
    async fn next(&mut self, failure: Failure, members: usize) -> Result<(), Failure> {
        self.made += 1;
        match &failure {
            Failure::NotDone(reason) => self.reason = Some(reason.clone()),
            Failure::Lost(_) if self.method.repeat == Repeat::Freely => {}
            Failure::TokenExpired(_) if self.tokens < TOKENS_MAX => {
                self.tokens += 1;
                return Ok(());
            }
            _ => return Err(failure),
        }
        let now = Instant::now();
        let until = if self.made.is_multiple_of(members) { now + self.backoff } else { now };
        if until >= self.deadline {
            return Err(failure);
        }
        if until > now {
            self.backoff = (self.backoff * 2).min(BACKOFF.1);
            sleep_until(until).await;
        }
        Ok(())
    }
}

async fn unary<Q, A>(
    member: &Member,
    method: Method,
    request: Q,
    token: Option<&Token>,
) -> Result<tonic::Response<A>, tonic::Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let path = PathAndQuery::from_static(method.path);
    let mut grpc = grpc(member).await?;
    grpc.unary(prepared(request, token), path, ProstCodec::<Q, A>::default()).await
}

async fn streaming(
    member: &Member,
    requests: tonic::Request<impl Stream<Item = WatchRequest> + Send + 'static>,
) -> Result<tonic::Response<Streaming<WatchResponse>>, tonic::Status> {
    let path = PathAndQuery::from_static(WATCH);
    let mut grpc = grpc(member).await?;
    grpc.streaming(requests, path, ProstCodec::<WatchRequest, WatchResponse>::default()).await
}

/// The member's channel, when it takes another request.
async fn grpc(member: &Member) -> Result<Grpc<Channel>, tonic::Status> {
    let mut grpc = Grpc::new(member.channel.clone()).max_decoding_message_size(ANSWER_MAX);
    grpc.ready().await.map_err(|error| tonic::Status::from_error(error.into()))?;
    Ok(grpc)
}

/// With what goes along: a member without a leader refuses at once, instead of answering late.
fn prepared<T>(message: T, token: Option<&Token>) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    if let Some(token) = token {
        request.metadata_mut().insert("token", token.clone());
    }
    request
}
