//! A wanted child: looked at, compared, applied if it differs.

use std::mem;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::comparison::{Difference, compare};
use super::form::Form;
use super::seen::{Action, SeenObject, What};
use crate::client::Encoded;
use crate::codec::encode;
use crate::context::ErasedContext;
use crate::error::Result;
use crate::events::Reference;
use crate::kind::Kind;
use crate::object::{AnyObject, ErasedObject, ObjectKey, controller_of};
use crate::owner::OwnerReferenceError;

/// A wanted child, whose type has been forgotten.
pub(super) struct Child {
    form: Box<dyn Form>,
    /// The metadata that is wanted.
    meta: ObjectMeta,
    /// The wanted object, if it could be encoded.
    encoded: Encoded,
    /// The wanted object as it is applied; nothing before it is looked at.
    wanted: Value,
    /// What is there, as far as is known.
    actual: Option<Arc<dyn ErasedObject>>,
    decision: Decision,
}

enum Decision {
    /// It could not be looked at, or another owns it.
    Leave,
    /// It is as wanted.
    Nothing,
    /// It goes away, and is made again when it is gone.
    Wait,
    Create,
    Apply(Vec<Difference>),
}

impl Child {
    pub(super) fn new<C: AnyObject>(kind: &Kind<C>, mut wanted: C) -> Self {
        Self {
            form: Box::new(kind.clone()),
            encoded: encode(&wanted),
            meta: mem::take(wanted.meta_mut()),
            wanted: Value::Null,
            actual: None,
            decision: Decision::Leave,
        }
    }

    /// Looks at the child in the cache and decides what is to be done.
    pub(super) fn observe(&mut self, ctx: &ErasedContext) -> Result<()> {
        ctx.adopt(&self.form.kind(), &mut self.meta)?;
        self.wanted = self.document(ctx)?;
        self.actual = self.form.cached(ctx, &self.key())?;
        self.decision = self.decide(ctx)?;
        Ok(())
    }

    /// Does what was decided.
    pub(super) async fn act(&mut self, ctx: &ErasedContext) -> Result<Option<Action>> {
        let what = match mem::replace(&mut self.decision, Decision::Nothing) {
            Decision::Leave | Decision::Nothing => return Ok(None),
            Decision::Wait => What::Terminating,
            Decision::Create => {
                self.apply(ctx).await?;
                What::Created
            }
            Decision::Apply(differences) => {
                self.apply(ctx).await?;
                What::Applied(differences)
            }
        };
        let kind = self.form.kind().names().name.into_owned();
        let action = Action { kind, key: self.key(), what };
        tracing::debug!(%action, "made a child as wanted");
        Ok(Some(action))
    }

    /// What is there.
    pub(super) fn seen(self) -> SeenObject {
        let meta = self.actual.as_ref().map_or(&self.meta, |actual| actual.metadata());
        let kind = self.form.kind();
        let names = kind.names();
        let reference = Reference::with(&names.api_version, &names.name, meta);
        SeenObject { kind: self.form.id(), key: self.key(), reference, object: self.actual }
    }

    fn decide(&mut self, ctx: &ErasedContext) -> Result<Decision> {
        let Some(actual) = self.actual.clone() else {
            return Ok(Decision::Create);
        };
        let meta = actual.metadata();
        let owner = ctx.meta().uid.as_deref();
        if let Some(other) = controller_of(meta).filter(|it| Some(it.uid.as_str()) != owner) {
            let name_of = |meta: &ObjectMeta| meta.name.clone().unwrap_or_default();
            return Err(OwnerReferenceError::OwnedByAnother {
                name: format!("{} {}", self.form.kind().names().name, name_of(meta)),
                owner: format!("{} {}", other.kind, other.name),
                wanted: format!("{} {}", ctx.kind().names().name, name_of(ctx.meta())),
            }
            .into());
        }
        if meta.deletion_timestamp.is_some() {
            return Ok(Decision::Wait);
        }
        let differences = self.compare(ctx, &*actual)?;
        let applied = &ctx.equipment().applied;
        if differences.is_empty() || applied.left(meta, &self.wanted, &differences) {
            return Ok(Decision::Nothing);
        }
        Ok(Decision::Apply(differences))
    }

    /// The wanted object as it is applied: in its place, with its owner, and without managers,
    /// with which it would be refused.
    fn document(&mut self, ctx: &ErasedContext) -> Result<Value> {
        let encoded = mem::replace(&mut self.encoded, Ok(Vec::new()))?;
        let mut document = ctx.requests(self.form.kind()).document(&encoded)?;
        if let Value::Object(metadata) = &mut document["metadata"] {
            metadata.remove("managedFields");
            if let Some(namespace) = &self.meta.namespace {
                metadata.insert("namespace".into(), json!(namespace));
            }
            if let Some(owners) = &self.meta.owner_references {
                metadata.insert("ownerReferences".into(), json!(owners));
            }
        }
        self.meta.managed_fields = None;
        Ok(document)
    }

    fn compare(&self, ctx: &ErasedContext, actual: &dyn ErasedObject) -> Result<Vec<Difference>> {
        let actual = self.form.document(actual)?;
        Ok(compare(&self.wanted, &actual, ctx.client().field_manager()))
    }

    /// Applies the child, and remembers what that left different.
    async fn apply(&mut self, ctx: &ErasedContext) -> Result<()> {
        let body = serde_json::to_vec(&self.wanted);
        let answer = ctx.requests(self.form.kind()).apply(&self.meta, body, true).await?;
        let applied = answer.erased(self.form.codec())?;
        let left = self.compare(ctx, &*applied)?;
        // The cache may strip what the answer has.
        let cached = self.actual.as_ref();
        let stripped = cached.is_some_and(|cached| cached.metadata().managed_fields.is_none());
        let memory = &ctx.equipment().applied;
        if left.is_empty() && !stripped {
            memory.forget(applied.metadata());
        } else {
            memory.note(applied.metadata(), &self.wanted, &left);
        }
        self.actual = Some(applied);
        Ok(())
    }

    fn key(&self) -> ObjectKey {
        ObjectKey::of_meta(&self.meta)
    }
}
