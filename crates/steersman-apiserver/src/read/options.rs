//! The query of a list or watch, and which combinations make sense.

use std::time::Duration;

use steersman_rules::field::FieldError;
use steersman_rules::resource::Named;
use steersman_rules::selector::{FieldSelector, LabelSelector, Selector};
use steersman_rules::strconv;
use steersman_store::Revision;

use crate::call::Call;
use crate::status::{Result, Status};

/// What a list or watch asks for.
#[derive(Clone, Debug)]
pub(crate) struct ListOptions {
    /// Which objects.
    pub(crate) selector: Selector,
    /// `resourceVersion`; `None` is unset, zero means any.
    pub(crate) revision: Option<Revision>,
    /// `resourceVersionMatch`.
    pub(crate) revision_match: Option<Match>,
    /// The most objects to give at once; zero is no limit.
    pub(crate) limit: usize,
    /// Where to go on.
    pub(crate) continue_token: Option<String>,
    /// When a watch ends.
    pub(crate) timeout: Option<Duration>,
    /// Whether a watch tells its revision now and then.
    pub(crate) bookmarks: bool,
    /// Whether a watch starts with the state.
    pub(crate) initial_events: Option<bool>,
    /// Whether a watch is asked for in the query, and not by the old prefix of paths.
    by_query: bool,
}

/// How a resourceVersion is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Match {
    /// The state at that revision.
    Exact,
    /// That state or a newer one.
    NotOlderThan,
}

impl ListOptions {
    /// Reads the options of a list.
    pub(crate) fn of_list(call: &Call) -> Result<Self> {
        let errors = list_errors(call);
        let invalid = |why| Err(Status::bad_request(format!("invalid resource version: {why}")));
        let mut options = Self::read(call, &errors, invalid)?;
        // Whoever is content with any state gets all of it, as from Kubernetes' cache. Events are not
        // in it, and who goes on with a list has its state already.
        let is_of_events =
            ["", "events.k8s.io"].iter().any(|group| call.resource.is(group, "events"));
        let begins = options.continue_token.is_none();
        if options.revision == Some(Revision(0)) && begins && !is_of_events {
            options.limit = 0;
        }
        Ok(options)
    }

    /// Reads the options of a list of what has no versions, and so ignores which is asked for.
    pub(crate) fn of_unversioned(call: &Call) -> Result<Self> {
        let errors = list_errors(call);
        Self::read(call, &errors, |_| Ok(Revision(0)))
    }

    /// Reads the options of a watch.
    pub(crate) fn of_watch(call: &Call) -> Result<Self> {
        let errors = watch_errors(call);
        Self::read(call, &errors, |why| Err(Status::failure(why)))
    }

    /// Refuses a watch whose options do not fit together.
    pub(crate) fn check_watch(call: &Call) -> Result<()> {
        check(&watch_errors(call))
    }

    fn read(
        call: &Call,
        errors: &[FieldError],
        odd_revision: fn(String) -> Result<Revision>,
    ) -> Result<Self> {
        let query = &call.info.query;
        check(errors)?;
        let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or(""))?;
        let fields = query.get("fieldSelector").unwrap_or("");
        let mut fields = FieldSelector::parse(fields, &call.resource)?;
        if let Some(name) = &call.info.name {
            if !fields.is_empty() && fields.name() != Some(name) {
                let why = "fieldSelector metadata.name doesn't match requested name";
                return Err(Status::bad_request(why));
            }
            fields = fields.with_name(name);
        }
        let revision_match = match query.text("resourceVersionMatch") {
            Some("Exact") => Some(Match::Exact),
            Some(_) => Some(Match::NotOlderThan),
            None => None,
        };
        let revision = query.text("resourceVersion");
        let revision = revision.map(|text| parse_revision(text).or_else(odd_revision));
        let limit = query.number("limit")?.unwrap_or(0);
        // A watch whose time is over before it begins ends at once.
        let timeout = query.number("timeoutSeconds")?.filter(|seconds| *seconds != 0);
        let timeout = timeout.map(|seconds| u64::try_from(seconds).unwrap_or(0));
        Ok(Self {
            selector: Selector { labels, fields },
            revision: revision.transpose()?,
            revision_match,
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: query.text("continue").map(str::to_owned),
            timeout: timeout.map(Duration::from_secs),
            bookmarks: query.flag("allowWatchBookmarks").unwrap_or(false),
            initial_events: query.flag("sendInitialEvents"),
            by_query: query.flag("watch").unwrap_or(false),
        })
    }

    /// Whether a watch that says nothing about the state it starts with tells where that ends: it is
    /// taken for one that asks for the state.
    pub(crate) fn tells_end_of_state(&self) -> bool {
        self.by_query && self.bookmarks
    }

    /// The narrowest folder that holds all that can match.
    pub(crate) fn prefix(&self, call: &Call) -> String {
        let folder = call.resource.prefix(call.namespace());
        let one_folder = !call.resource.namespaced || !call.namespace().is_empty();
        match self.selector.fields.name() {
            Some(name) if one_folder => folder + name,
            _ => folder,
        }
    }
}

fn check(errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() {
        return Ok(());
    }
    let what = Named { group: "meta.k8s.io", resource: "ListOptions", name: "" };
    Err(Status::invalid(what, errors))
}

/// Reads a version; in other words than the rest of the query, what is wrong with it is told by
/// the store, and only a list takes the blame.
pub(super) fn parse_revision(text: &str) -> Result<Revision, String> {
    let revision = strconv::parse_uint(text).map(Revision);
    revision.map_err(|why| format!("resourceVersion: Invalid value: {text:?}: {why}"))
}

const MATCH: &str = "resourceVersionMatch";

fn list_errors(call: &Call) -> Vec<FieldError> {
    let query = &call.info.query;
    let mut errors = Vec::new();
    let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
    let revision = query.text("resourceVersion");
    let how = query.text(MATCH);
    if how.is_some() && revision.is_none() {
        forbid(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    if how.is_some() && query.text("continue").is_some() {
        forbid(MATCH, "resourceVersionMatch is forbidden when continue is provided");
    }
    errors.extend(how.and_then(|how| unknown_match(how, &["Exact", "NotOlderThan", ""])));
    let mut forbid = |field: &str, why: &str| errors.push(FieldError::forbidden(field, why));
    if how == Some("Exact") && revision == Some("0") {
        forbid(MATCH, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if query.get("sendInitialEvents").is_some() {
        forbid("sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    errors
}

fn watch_errors(call: &Call) -> Vec<FieldError> {
    let query = &call.info.query;
    let mut errors = Vec::new();
    let mut forbid = |why: &str| errors.push(FieldError::forbidden(MATCH, why));
    let how = query.text(MATCH);
    let initial = query.get("sendInitialEvents").is_some();
    if initial && how != Some("NotOlderThan") {
        forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    }
    if how.is_some() && !initial {
        forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    }
    errors.extend(how.and_then(|how| unknown_match(how, &["NotOlderThan"])));
    // A watch from the beginning, or from whatever there is, is taken for one that asks for what there
    // is first, and so has a match, too. From a later version `continue` is passed over: a watch has no
    // pages.
    let from_start = matches!(query.text("resourceVersion"), None | Some("0")) && !initial;
    if (how.is_some() || from_start) && query.text("continue").is_some() {
        let why = "resourceVersionMatch is forbidden when continue is provided";
        errors.push(FieldError::forbidden(MATCH, why));
    }
    errors
}

fn unknown_match(how: &str, known: &[&str]) -> Option<FieldError> {
    let unknown = !known.contains(&how);
    unknown.then(|| FieldError::not_supported(MATCH, &how.into(), known))
}
