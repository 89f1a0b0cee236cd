//! What a server has that extends another: resources that are computed when asked for, and somebody
//! who is asked who may do what.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::authz::{Attributes, Target};
use crate::status::{Result, Status};
use crate::user::User;

/// How long a decision holds.
const DECISION_TIME: Duration = Duration::from_secs(10);

/// How many decisions are remembered.
const DECISIONS_MAX: usize = 4096;

/// What somebody reads of a resource that is computed.
#[derive(Clone, Copy, Debug)]
pub struct Reading<'a> {
    /// Who reads.
    pub user: &'a User,
    /// The namespace; empty for all of them, and for resources of the cluster.
    pub namespace: &'a str,
}

/// A resource whose objects are computed when somebody asks for them, and stored nowhere. Who asks
/// may do so; selectors and the form of the answer are looked after.
pub trait Computed: Send + Sync + 'static {
    /// All objects of a namespace, or of all namespaces, in the order in which they are listed.
    fn list<'a>(&'a self, reading: Reading<'a>) -> BoxFuture<'a, Result<Vec<Value>>>;

    /// The object of a name, if there is one.
    fn get<'a>(
        &'a self,
        reading: Reading<'a>,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Value>>> {
        Box::pin(async move {
            let all = self.list(reading).await?;
            Ok(all.into_iter().find(|object| object["metadata"]["name"] == name))
        })
    }
}

/// Answers a `SubjectAccessReview`, or tells why it cannot: most often the server in front, which
/// knows roles.
pub trait AccessReviewer: Send + Sync + 'static {
    /// Gives the review back with its status.
    fn review(&self, review: Value) -> BoxFuture<'static, Result<Value, String>>;
}

impl<F> AccessReviewer for F
where
    F: Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync + 'static,
{
    fn review(&self, review: Value) -> BoxFuture<'static, Result<Value, String>> {
        self(review)
    }
}

/// What a server has that extends another; nothing, if it does not.
#[derive(Default)]
pub(crate) struct Extended {
    /// By the names of definitions.
    pub(crate) computed: HashMap<String, Arc<dyn Computed>>,
    pub(crate) reviews: Option<Reviews>,
}

/// Who is asked who may do what, and what was answered a moment ago.
pub(crate) struct Reviews {
    reviewer: Arc<dyn AccessReviewer>,
    /// By what was asked. The lock is never held over a wait.
    known: Mutex<HashMap<String, Decision>>,
}

#[derive(Clone)]
struct Decision {
    allowed: bool,
    reason: String,
    at: Instant,
}

impl Reviews {
    pub(crate) fn by(reviewer: Arc<dyn AccessReviewer>) -> Self {
        Self { reviewer, known: Mutex::default() }
    }

    /// Refuses what is not allowed.
    pub(crate) async fn authorize(&self, asked: &Attributes<'_>) -> Result<()> {
        let spec = spec(asked);
        let key = spec.to_string();
        let known =
            self.known().get(&key).filter(|known| known.at.elapsed() < DECISION_TIME).cloned();
        let decision = match known {
            Some(known) => known,
            None => self.ask(spec, key).await?,
        };
        if decision.allowed { Ok(()) } else { Err(asked.refusal(&decision.reason)) }
    }

    async fn ask(&self, spec: Value, key: String) -> Result<Decision> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "metadata": {}, "spec": spec,
        });
        let answer = self.reviewer.review(review).await;
        let answer = answer.map_err(|why| Status::internal(&why))?;
        let status = &answer["status"];
        let decision = Decision {
            allowed: status["allowed"] == true,
            reason: status["reason"].as_str().unwrap_or("").to_owned(),
            at: Instant::now(),
        };
        let mut known = self.known();
        if known.len() >= DECISIONS_MAX {
            known.retain(|_, known| known.at.elapsed() < DECISION_TIME);
        }
        if known.len() < DECISIONS_MAX {
            known.insert(key, decision.clone());
        }
        Ok(decision)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Decision>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The question, as a review puts it.
fn spec(asked: &Attributes<'_>) -> Value {
    let Attributes { user, verb, target, .. } = asked;
    let mut spec = json!({"user": user.name, "groups": user.groups, "extra": user.extra});
    if !user.uid.is_empty() {
        spec["uid"] = user.uid.as_str().into();
    }
    match target {
        Target::Path(path) => {
            spec["nonResourceAttributes"] = json!({"path": path, "verb": verb});
        }
        Target::Resource { group, resource, subresource, namespace, name } => {
            spec["resourceAttributes"] = json!({
                "verb": verb, "group": group, "resource": resource, "subresource": subresource,
                "namespace": namespace, "name": name,
            });
        }
    }
    spec
}
