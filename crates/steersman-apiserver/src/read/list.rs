//! GET of many objects: which state, which page, which of them.
//!
//! | request | the state that is read |
//! |---|---|
//! | no resourceVersion | the latest: every write that was answered before is seen |
//! | `0` | the latest that this server has heard of, and all of it: a limit means nothing |
//! | `N`, and no limit or `NotOlderThan` | the latest, once it has reached `N` |
//! | `N` and a limit, or `Exact` | the state at `N` |
//! | a continue token | the state of the first page |

use std::time::Duration;

use steersman_store::{Entry, RangeRequest, Revision, StoreError, WatchRequest};
use tokio::time::Instant;

use super::continuation::Continuation;
use super::options::{ListOptions, Match};
use crate::apart::{TURN, TURN_BYTES};
use crate::call::Call;
use crate::conversion;
use crate::document::Stored;
use crate::lookup;
use crate::metrics::Listed;
use crate::reply::{Page, Reply};
use crate::state::Server;
use crate::status::{Result, Status};

/// How long a list waits for a revision that has not happened yet.
const PATIENCE: Duration = Duration::from_secs(3);

/// How many entries are read at once where a selector may drop most of them.
const CHUNK: usize = 500;

/// How many entries are taken in one go where nobody reads them.
const TURN_UNREAD: usize = 8 * TURN;

const EXPIRED_TOKEN: &str = "The provided continue parameter is too old to display a consistent list result. \
    You can start a new list without the continue parameter, or use the continue token in this \
    response to retrieve the remainder of the results. Continuing with the provided token results \
    in an inconsistent list - objects that were created, modified, or deleted between the time the \
    first chunk was returned and now may show up in the list.";

/// Answers with a list.
pub(crate) async fn list(call: &Call) -> Result<Reply> {
    let options = ListOptions::of_list(call)?;
    Ok(Reply::List(page(call, &options).await?))
}

/// Reads the page that the options ask for.
pub(crate) async fn page(call: &Call, options: &ListOptions) -> Result<Page> {
    let here = options.continue_token.as_deref().map(Continuation::parse).transpose()?;
    let moved = options.revision.is_some_and(|revision| revision.0 > 0);
    let exact = options.revision_match == Some(Match::Exact)
        || (options.revision_match.is_none() && options.limit > 0);
    let at = match &here {
        Some(_) if moved => {
            let why = "specifying resource version is not allowed when using continue";
            return Err(Status::bad_request(why));
        }
        Some(here) => here.revision,
        None => options.revision.filter(|_| moved && exact),
    };
    // The first page may have come from a server that is ahead of this one.
    let wanted = here.as_ref().map_or(options.revision.filter(|_| moved), |here| here.revision);
    if let Some(wanted) = wanted {
        reach(&call.server, wanted).await?;
    }
    let stale = wanted.is_some() || (here.is_none() && options.revision.is_some());
    let prefix = options.prefix(call);
    let start = here.as_ref().map(|here| call.resource.prefix(call.namespace()) + &here.start);
    let known = here.as_ref().and_then(|here| here.left);
    let request = RangeRequest { prefix, start, at, stale, ..RangeRequest::default() };
    let mut listed = Listed::default();
    let read = collect(call, options, request, known, &mut listed).await;
    listed.returned = read.as_ref().map_or(0, |page| page.objects.len());
    call.server.metrics.storage.listed(&call.resource, listed);
    read.map_err(|error| match (error, here) {
        (Failed::Store(StoreError::Compacted { .. }), Some(here)) => {
            let mut status = Status::expired(EXPIRED_TOKEN);
            let here = Continuation { revision: None, left: None, ..here };
            status.continue_token = Some(here.token());
            status
        }
        (Failed::Store(error), _) => error.into(),
        (Failed::Status(status), _) => status,
    })
}

/// Why entries could not be collected: they could not be read, or not be converted.
enum Failed {
    Store(StoreError),
    Status(Status),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Reads entries until there are as many as the limit, or no more. Counting what is left may
/// mean to walk over it, so only the first page does; the next ones subtract from what it
/// found, which is `known`.
async fn collect(
    call: &Call,
    options: &ListOptions,
    mut request: RangeRequest,
    known: Option<u64>,
    listed: &mut Listed,
) -> Result<Page, Failed> {
    let mut page = Page::default();
    let limit = if options.limit == 0 { usize::MAX } else { options.limit };
    let selective = !options.selector.is_empty();
    request.count = options.limit > 0 && !selective && known.is_none();
    loop {
        request.limit = match (options.limit, selective) {
            (0, _) => 0,
            (_, false) => limit - page.objects.len(),
            (_, true) => CHUNK,
        };
        let began = Instant::now();
        let response = call.server.store.range(request.clone()).await;
        let storage = &call.server.metrics.storage;
        storage.asked("list", &call.resource, response.is_err(), began.elapsed());
        let response = response?;
        page.revision = response.revision;
        listed.fetched += response.entries.len();
        let entries = conversion::entries(&call.server, &call.resource, response.entries).await;
        let entries = entries.map_err(Failed::Status)?;
        let (taken, last) = take(call, options, &entries, limit, &mut page).await;
        listed.evaluated += taken;
        if !response.more && taken == entries.len() {
            return Ok(page);
        }
        let next = last.map_or_else(String::new, |last| format!("{}\0", last.key));
        if page.objects.len() >= limit {
            let folder = call.resource.prefix(call.namespace()).len();
            let start = next[folder..].to_owned();
            let counted = response.remaining.map(|left| left as u64);
            let left = counted.or(known.map(|known| known.saturating_sub(taken as u64).max(1)));
            let left = left.filter(|_| !selective);
            let here = Continuation { revision: Some(response.revision), start, left };
            page.continue_token = Some(here.token());
            page.remaining = left.and_then(|left| usize::try_from(left).ok());
            return Ok(page);
        }
        (request.at, request.stale) = (Some(response.revision), true);
        request.start = Some(next);
    }
}

/// Takes matching entries until the limit; says how many it looked at, and the last of them. Others
/// go on meanwhile.
async fn take<'a>(
    call: &Call,
    options: &ListOptions,
    entries: &'a [Entry],
    limit: usize,
    page: &mut Page,
) -> (usize, Option<&'a Entry>) {
    // Those of a definition whose versions differ may have to be converted.
    let all = options.selector.is_empty() && !conversion::is_needed(&call.resource);
    let turn = if all { TURN_UNREAD } else { TURN };
    let mut bytes = 0;
    for (index, entry) in entries.iter().enumerate() {
        bytes += if all { 0 } else { entry.value.len() };
        if index % turn == turn - 1 || bytes > TURN_BYTES {
            bytes = 0;
            tokio::task::yield_now().await;
        }
        let object = Stored::from(entry);
        if options.selector.matches(&call.resource, &entry.key, &object.bytes) {
            page.push(object, &call.resource);
        }
        if page.objects.len() >= limit {
            return (index + 1, Some(entry));
        }
    }
    (entries.len(), entries.last())
}

/// Waits until this server has heard of a revision, but not for long.
pub(super) async fn reach(server: &Server, wanted: Revision) -> Result<()> {
    if current(server, true).await? >= wanted {
        return Ok(());
    }
    // Another server may have told of it. Whatever the store has seen, this server then has, too.
    let current = current(server, false).await?;
    if current >= wanted {
        return Ok(());
    }
    let reached = async {
        let request = WatchRequest { prefix: String::new(), after: current };
        let mut watch = server.store.watch(request).await?;
        while watch.delivered() < wanted {
            watch.next().await?;
        }
        Ok::<(), StoreError>(())
    };
    match tokio::time::timeout(PATIENCE, reached).await {
        Ok(reached) => Ok(reached?),
        Err(_) => {
            let current = self::current(server, false).await?;
            // A revision may have changed nothing that is watched here.
            if current >= wanted {
                return Ok(());
            }
            Err(Status::future_revision(wanted.0, current.0))
        }
    }
}

/// The latest revision of the store, or the latest that this server has heard of.
pub(crate) async fn current(server: &Server, stale: bool) -> Result<Revision, StoreError> {
    lookup::revision(&*server.store, stale).await
}
