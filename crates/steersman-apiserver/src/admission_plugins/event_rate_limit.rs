//! `EventRateLimit` refuses Events of which there are too many: on the server, in a namespace, of a
//! user, or of a source about an object, as its configuration says.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use futures::future::{self, BoxFuture};
use serde::Deserialize;
use serde_json::Value;
use steersman_rules::field::FieldError;
use tokio::time::Instant;

use super::configuration;
use crate::admission_registration::Operation;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::{Result, Status};

const KINDS: &[(&str, &str)] = &[("eventratelimit.admission.k8s.io/v1alpha1", "Configuration")];
const TYPES: [&str; 4] = ["Namespace", "Server", "SourceAndObject", "User"];

/// How many keys a limit knows unless it says so.
const CACHE_SIZE: usize = 4096;

/// Makes the plug-in, with what its configuration says.
pub(super) fn plugin(told: Option<&Value>) -> Result<Box<dyn Plugin>, String> {
    let document = told.map(|told| configuration::read::<Document>(told, KINDS)).transpose()?;
    let limits = document.unwrap_or_default().limits;
    configuration::sound(&mistakes(&limits))?;
    Ok(Box::new(EventRateLimit { limits: limits.into_iter().map(Limit::new).collect() }))
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Document {
    limits: Vec<LimitDocument>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct LimitDocument {
    #[serde(rename = "type")]
    sort: String,
    qps: i32,
    burst: i32,
    cache_size: i32,
}

fn mistakes(limits: &[LimitDocument]) -> Vec<FieldError> {
    if limits.is_empty() {
        return vec![FieldError::invalid("limits", &Value::Null, "must not be empty")];
    }
    let mut mistakes = Vec::new();
    for (n, limit) in limits.iter().enumerate() {
        let at = |field: &str| format!("limits[{n}].{field}");
        if !TYPES.contains(&limit.sort.as_str()) {
            let sort = limit.sort.as_str().into();
            mistakes.push(FieldError::not_supported(at("type"), &sort, &TYPES));
        }
        for (field, number) in [("burst", limit.burst), ("qps", limit.qps)] {
            if number <= 0 {
                mistakes.push(FieldError::invalid(at(field), &number.into(), "must be positive"));
            }
        }
        if limit.sort != "Server" && limit.cache_size < 0 {
            let size = limit.cache_size.into();
            mistakes.push(FieldError::invalid(at("cacheSize"), &size, "must not be negative"));
        }
    }
    mistakes
}

struct EventRateLimit {
    limits: Vec<Limit>,
}

/// How many Events there may be of whatever has the same key.
struct Limit {
    sort: String,
    qps: f64,
    burst: f64,
    buckets: Mutex<Buckets>,
}

/// What is left, by key; those that were not asked for longest are forgotten.
struct Buckets {
    room: usize,
    asked: u64,
    all: HashMap<String, Bucket>,
    /// The keys by when they were asked for.
    order: BTreeMap<u64, String>,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    since: Instant,
    asked: u64,
}

impl Limit {
    fn new(document: LimitDocument) -> Self {
        let room = usize::try_from(document.cache_size).unwrap_or_default();
        let room = if room == 0 { CACHE_SIZE } else { room };
        let buckets = Buckets { room, asked: 0, all: HashMap::new(), order: BTreeMap::new() };
        Self {
            sort: document.sort,
            qps: document.qps.into(),
            burst: document.burst.into(),
            buckets: Mutex::new(buckets),
        }
    }

    /// What is limited together with an Event.
    fn key(&self, write: &Attributes<'_>, event: &Value) -> String {
        let text = |at: &str| event.pointer(at).and_then(Value::as_str).unwrap_or("");
        match self.sort.as_str() {
            "Namespace" => write.place.namespace.to_owned(),
            "User" => write.user.name.clone(),
            "SourceAndObject" => {
                let object = ["kind", "namespace", "name", "uid", "apiVersion"];
                let object = object.map(|field| format!("/involvedObject/{field}"));
                let source = [text("/source/component"), text("/source/host")].concat();
                source + &object.iter().map(|at| text(at)).collect::<String>()
            }
            _ => String::new(),
        }
    }

    /// Takes one of what is left for a key, if anything is.
    fn accept(&self, key: &str, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bucket = buckets.of(key, Bucket { left: self.burst, since: now, asked: 0 });
        let passed = now.duration_since(bucket.since).as_secs_f64();
        bucket.left = (bucket.left + passed * self.qps).min(self.burst);
        bucket.since = now;
        let accepted = bucket.left >= 1.0;
        if accepted {
            bucket.left -= 1.0;
        }
        buckets.all.insert(key.to_owned(), bucket);
        accepted
    }
}

impl Buckets {
    /// What is left for a key, which is the last to be forgotten from now on.
    fn of(&mut self, key: &str, fresh: Bucket) -> Bucket {
        self.asked += 1;
        let known = self.all.get(key).copied();
        if let Some(known) = known {
            self.order.remove(&known.asked);
        } else if self.all.len() >= self.room
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.all.remove(&oldest);
        }
        self.order.insert(self.asked, key.to_owned());
        Bucket { asked: self.asked, ..known.unwrap_or(fresh) }
    }
}

impl Plugin for EventRateLimit {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.operation != Operation::Delete && !write.dry_run && write.resource.is("", "events")
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        let now = Instant::now();
        let event = new.unwrap_or(&Value::Null);
        let mut reached = Vec::new();
        for limit in &self.limits {
            let key = limit.key(&write, event);
            if !limit.accept(&key, now) {
                reached.push(format!("limit reached on type {} for key {key}", limit.sort));
            }
        }
        let answer = match reached.as_slice() {
            [] => Ok(()),
            [one] => Err(too_many(one)),
            several => Err(too_many(&format!("[{}]", several.join(", ")))),
        };
        Box::pin(future::ready(answer))
    }
}

fn too_many(why: &str) -> Status {
    Status {
        code: 429,
        reason: "TooManyRequests".into(),
        message: format!("Too many requests: {why}"),
        details: None,
        continue_token: None,
    }
}
