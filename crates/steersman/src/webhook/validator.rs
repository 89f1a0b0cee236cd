//! Typed validating webhooks: refuse what makes no sense.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::FutureExt;
use kube::core::GroupVersionKind;

use super::denied::Denied;
use super::handler::ErasedHandler;
use super::request::{AdmissionRequest, Operation, kind_of};
use super::response::{AdmissionResponse, Warnings};
use crate::object::Object;

/// A kind that can tell whether an object of it makes sense.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot validate itself",
    note = "implement `steersman::webhook::Validator` for `{Self}`, or register a \
            `CustomValidator<{Self}>` with `validates_with`"
)]
pub trait Validator: Object {
    /// The operations that it is asked on. While a webhook that is asked on deletion does not
    /// answer, nothing of this kind can be deleted, nor a namespace with such objects.
    const OPERATIONS: &'static [Operation];

    /// Whether this object may be created.
    fn validate_create(&self, request: &AdmissionRequest) -> Result<Warnings, Denied>;

    /// Whether `old` may become this object.
    fn validate_update(&self, old: &Self, request: &AdmissionRequest) -> Result<Warnings, Denied>;

    /// Whether this object may be deleted. Asked if [`OPERATIONS`](Self::OPERATIONS) has it.
    fn validate_delete(&self, request: &AdmissionRequest) -> Result<Warnings, Denied> {
        let _ = request;
        Ok(Warnings::new())
    }
}

/// Validates objects of a kind with the help of what else it holds: clients, caches, settings.
/// For built-in kinds and for checks that need to wait.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot validate `{K}`",
    note = "implement `steersman::webhook::CustomValidator<{K}>` for `{Self}`"
)]
pub trait CustomValidator<K>: Send + Sync + 'static {
    /// The operations that it is asked on. While a webhook that is asked on deletion does not
    /// answer, nothing of this kind can be deleted, nor a namespace with such objects.
    const OPERATIONS: &'static [Operation];

    /// Whether this object may be created.
    fn validate_create(
        &self,
        object: &K,
        request: &AdmissionRequest,
    ) -> impl Future<Output = Result<Warnings, Denied>> + Send;

    /// Whether `old` may become `new`.
    fn validate_update(
        &self,
        old: &K,
        new: &K,
        request: &AdmissionRequest,
    ) -> impl Future<Output = Result<Warnings, Denied>> + Send;

    /// Whether this object may be deleted. Asked if [`OPERATIONS`](Self::OPERATIONS) has it.
    fn validate_delete(
        &self,
        object: &K,
        request: &AdmissionRequest,
    ) -> impl Future<Output = Result<Warnings, Denied>> + Send {
        let _ = (object, request);
        async { Ok(Warnings::new()) }
    }
}

/// The checks that a kind knows itself.
pub(super) struct OwnChecks<K>(pub(super) PhantomData<fn(K)>);

impl<K: Validator> CustomValidator<K> for OwnChecks<K> {
    const OPERATIONS: &'static [Operation] = <K as Validator>::OPERATIONS;

    async fn validate_create(
        &self,
        object: &K,
        request: &AdmissionRequest,
    ) -> Result<Warnings, Denied> {
        object.validate_create(request)
    }

    async fn validate_update(
        &self,
        old: &K,
        new: &K,
        request: &AdmissionRequest,
    ) -> Result<Warnings, Denied> {
        new.validate_update(old, request)
    }

    async fn validate_delete(
        &self,
        object: &K,
        request: &AdmissionRequest,
    ) -> Result<Warnings, Denied> {
        object.validate_delete(request)
    }
}

/// The handler that asks a validator.
pub(super) fn handler<K: Object>(validator: impl CustomValidator<K>) -> ErasedHandler {
    let validator = Arc::new(validator);
    let kind = kind_of::<K>();
    Arc::new(move |request: Arc<AdmissionRequest>| {
        let validator = Arc::clone(&validator);
        let kind = kind.clone();
        async move {
            match validate(&*validator, &kind, &request).await {
                Ok(warnings) => AdmissionResponse { warnings, ..AdmissionResponse::allowed() },
                Err(denied) => AdmissionResponse::denied(&request, denied),
            }
        }
        .boxed()
    })
}

async fn validate<K: Object>(
    validator: &impl CustomValidator<K>,
    kind: &GroupVersionKind,
    request: &AdmissionRequest,
) -> Result<Warnings, Denied> {
    // The object of a connection is its options, which are of another kind.
    if request.operation == Operation::Connect {
        return Ok(Warnings::new());
    }
    request.expect_kind(kind)?;
    match request.operation {
        Operation::Create => validator.validate_create(&request.decode_object()?, request).await,
        Operation::Update => {
            let old = request.decode_old_object()?;
            let new = request.decode_object()?;
            validator.validate_update(&old, &new, request).await
        }
        Operation::Delete | Operation::Connect => {
            validator.validate_delete(&request.decode_old_object()?, request).await
        }
    }
}
