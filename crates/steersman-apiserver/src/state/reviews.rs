//! What the server in front is asked by one behind it: who may do what, and whom tokens stand for.
//! Answers hold for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::authz::{Attributes, Target};
use crate::status::{Result, Status};
use crate::user::User;

/// How long an answer holds.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// How many answers of each sort are remembered.
const ANSWERS_MAX: usize = 4096;

/// Answers a `SubjectAccessReview` or a `TokenReview`, or tells why it cannot: most often the server
/// in front, which knows roles and tokens.
pub trait Reviewer: Send + Sync + 'static {
    /// Gives the review back with its status.
    fn review(&self, review: Value) -> BoxFuture<'static, Result<Value, String>>;
}

impl<F> Reviewer for F
where
    F: Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync + 'static,
{
    fn review(&self, review: Value) -> BoxFuture<'static, Result<Value, String>> {
        self(review)
    }
}

/// Who is asked, and what was answered a moment ago.
pub(crate) struct Reviews {
    reviewer: Arc<dyn Reviewer>,
    /// Who may do what, by what was asked.
    decisions: Recent<Decision>,
    /// Whom tokens stand for; only those that are good are remembered.
    users: Recent<User>,
}

#[derive(Clone)]
struct Decision {
    allowed: bool,
    reason: String,
}

/// Answers of the last moments. The lock is never held over a wait.
struct Recent<T>(Mutex<HashMap<String, (Instant, T)>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Clone> Recent<T> {
    fn get(&self, key: &str) -> Option<T> {
        let known = self.lock();
        known
            .get(key)
            .filter(|(at, _)| at.elapsed() < ANSWER_TIME)
            .map(|(_, answer)| answer.clone())
    }

    fn keep(&self, key: String, answer: T) {
        let mut known = self.lock();
        if known.len() >= ANSWERS_MAX {
            known.retain(|_, (at, _)| at.elapsed() < ANSWER_TIME);
        }
        if known.len() < ANSWERS_MAX {
            known.insert(key, (Instant::now(), answer));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, T)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reviews {
    pub(crate) fn by(reviewer: Arc<dyn Reviewer>) -> Self {
        Self { reviewer, decisions: Recent::default(), users: Recent::default() }
    }

    /// Refuses what is not allowed.
    pub(crate) async fn authorize(&self, asked: &Attributes<'_>) -> Result<()> {
        let spec = spec(asked);
        let key = spec.to_string();
        let decision = match self.decisions.get(&key) {
            Some(known) => known,
            None => {
                let status =
                    self.ask("authorization.k8s.io/v1", "SubjectAccessReview", spec).await?;
                let reason = status["reason"].as_str().unwrap_or("").to_owned();
                let decision = Decision { allowed: status["allowed"] == true, reason };
                self.decisions.keep(key, decision.clone());
                decision
            }
        };
        if decision.allowed { Ok(()) } else { Err(asked.refusal(&decision.reason)) }
    }

    /// Whom a token stands for, if for anybody.
    pub(crate) async fn user(&self, token: &str) -> Result<Option<User>> {
        if let Some(known) = self.users.get(token) {
            return Ok(Some(known));
        }
        let status =
            self.ask("authentication.k8s.io/v1", "TokenReview", json!({"token": token})).await?;
        if status["authenticated"] != true {
            return Ok(None);
        }
        let user = User::of_info(&status["user"]);
        self.users.keep(token.to_owned(), user.clone());
        Ok(Some(user))
    }

    /// The status that a review is given back with.
    async fn ask(&self, api_version: &str, kind: &str, spec: Value) -> Result<Value> {
        let review = json!({"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec});
        let answer = self.reviewer.review(review).await;
        let mut answer = answer.map_err(|why| Status::internal(&why))?;
        // That a review is refused, by a webhook for one, is no answer to be remembered.
        if answer["kind"] == "Status" {
            return Err(Status::internal(answer["message"].as_str().unwrap_or_default()));
        }
        Ok(answer["status"].take())
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::FutureExt;
    use futures::future::BoxFuture;
    use serde_json::{Value, json};

    use super::Reviews;

    #[tokio::test]
    async fn a_review_that_is_refused_is_not_answered() {
        let reviewer = |_: Value| -> BoxFuture<'static, Result<Value, String>> {
            let refusal = json!({"kind": "Status", "status": "Failure", "message": "not now"});
            async move { Ok(refusal) }.boxed()
        };
        let reviews = Reviews::by(Arc::new(reviewer));
        let failed = reviews.user("token").await.unwrap_err();
        assert_eq!(failed.message, "Internal error occurred: not now");
    }
}
