//! Deleting one object or many, and what became of it.

use kube::api::DeleteParams;
use kube::core::Request;
use serde::Deserialize;
use serde_json::Value;

use super::{ListOptions, Pending, Requests, absent_as_none};
use crate::object::ObjectKey;

/// What became of a delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The object is gone.
    Gone,
    /// The object stays until its finalizers are done or its grace period is over.
    Terminating,
    /// There was no such object.
    NotFound,
}

impl Deleted {
    /// Reads the answer to a deletion. Of most kinds that are gone it is a Status, of some (Pods,
    /// Services) the object itself, which nothing holds.
    fn from_answer(answer: &DeleteAnswer) -> Self {
        let metadata = &answer.metadata;
        let held = metadata.finalizers.as_ref().is_some_and(|held| !held.is_empty());
        let at_once = metadata.deletion_grace_period_seconds == Some(0) && !held;
        if metadata.deletion_timestamp.is_none() || at_once {
            Self::Gone
        } else {
            Self::Terminating
        }
    }
}

/// The answer to a deletion, the object itself or a Status of it, as far as it is looked at: the rest
/// of a large object is not decoded.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DeleteAnswer {
    metadata: DeletedMeta,
    /// Of a Status. A custom resource may call anything so.
    details: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeletedMeta {
    uid: Option<String>,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    finalizers: Option<Vec<String>>,
}

impl DeleteAnswer {
    /// The uid of the deleted object.
    fn uid(&self) -> Option<&str> {
        self.metadata.uid.as_deref().or_else(|| self.details["uid"].as_str())
    }
}

impl<'a> Requests<'a> {
    /// Deletes an object. An object that is not there is no error.
    pub(crate) fn delete(self, key: ObjectKey, params: &DeleteParams) -> Pending<'a, Deleted> {
        let dry_run = params.dry_run || self.client.dry_run;
        let params = DeleteParams { dry_run, ..params.clone() };
        Box::pin(async move {
            let request = self.at(&key).delete(&key.name, &params);
            let answer: Option<DeleteAnswer> = absent_as_none(self.answer(request).await)?;
            if !dry_run {
                let given = params.preconditions.as_ref().and_then(|only| only.uid.as_deref());
                let answered = answer.as_ref().and_then(DeleteAnswer::uid);
                self.observe_deletion(&key, given.or(answered));
            }
            Ok(answer.as_ref().map_or(Deleted::NotFound, Deleted::from_answer))
        })
    }

    /// Deletes all objects that match.
    pub(super) fn delete_all_of(
        self,
        options: &ListOptions,
        params: &DeleteParams,
    ) -> Pending<'a, ()> {
        let request = Request::new(self.kind.path(options.namespace.as_deref()));
        let dry_run = params.dry_run || self.client.dry_run;
        let params = DeleteParams { dry_run, ..params.clone() };
        let request = request.delete_collection(&params, &options.params());
        Box::pin(async move {
            let answer: Value = self.answer(request).await?;
            for deleted in answer["items"].as_array().into_iter().flatten().filter(|_| !dry_run) {
                let metadata = &deleted["metadata"];
                let key = ObjectKey {
                    namespace: metadata["namespace"].as_str().map(Into::into),
                    name: metadata["name"].as_str().unwrap_or_default().into(),
                };
                self.observe_deletion(&key, metadata["uid"].as_str());
            }
            Ok(())
        })
    }

    /// Notifies the observer of a deletion. Without a uid nobody could distinguish the object from
    /// its successor.
    fn observe_deletion(&self, key: &ObjectKey, uid: Option<&str>) {
        let (Some(observer), Some(uid)) = (&self.client.observer, uid) else { return };
        let mut key = key.clone();
        if self.kind.is_namespaced() && key.namespace.is_none() {
            key.namespace = Some(self.client.kube.default_namespace().into());
        }
        observer.deleted(&self.kind.names(), &key, uid);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{DeleteAnswer, Deleted};

    fn read(answer: serde_json::Value) -> DeleteAnswer {
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn the_uid_is_that_of_the_object_or_of_the_status_about_it() {
        let object = json!({"kind": "Pod", "metadata": {"uid": "u", "name": "a"}, "spec": {}});
        assert_eq!(read(object).uid(), Some("u"));
        let status = json!({"kind": "Status", "metadata": {}, "details": {"uid": "u"}});
        assert_eq!(read(status).uid(), Some("u"));
        assert_eq!(read(json!({"kind": "Status", "metadata": {}})).uid(), None);
        let custom = json!({"metadata": {"uid": "u"}, "details": "of another sort"});
        assert_eq!(read(custom).uid(), Some("u"));
    }

    #[test]
    fn an_object_that_nothing_holds_is_gone_when_it_is_given_back() {
        let deleting = |more: serde_json::Value| {
            let mut object = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
            object["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            Deleted::from_answer(&read(object))
        };
        for kind in ["Status", "Service"] {
            let answer = read(json!({"kind": kind, "metadata": {}}));
            assert_eq!(Deleted::from_answer(&answer), Deleted::Gone);
        }
        assert_eq!(deleting(json!({"deletionGracePeriodSeconds": 0})), Deleted::Gone);
        assert_eq!(deleting(json!({"deletionGracePeriodSeconds": 30})), Deleted::Terminating);
        assert_eq!(deleting(json!({})), Deleted::Terminating, "a namespace");
        let held = json!({"deletionGracePeriodSeconds": 0, "finalizers": ["example.com/a"]});
        assert_eq!(deleting(held), Deleted::Terminating);
    }
}
