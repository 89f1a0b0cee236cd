//! Typed mutating webhooks: set what the user left open.

use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use futures::FutureExt;
use kube::core::GroupVersionKind;
use serde_json::Value;

use super::denied::Denied;
use super::handler::ErasedHandler;
use super::patch::carried_over;
use super::request::{AdmissionRequest, Operation, kind_of};
use super::response::AdmissionResponse;
use crate::object::Object;

/// A kind that knows its own defaults.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no defaults",
    note = "implement `steersman::webhook::Defaulter` for `{Self}`, or register a \
            `CustomDefaulter<{Self}>` with `defaults_with`"
)]
pub trait Defaulter: Object {
    /// The operations that it is asked on.
    const OPERATIONS: &'static [Operation] = &[Operation::Create, Operation::Update];

    /// Sets what the user left open. Must come to the same when called again on the result.
    fn set_defaults(&mut self, request: &AdmissionRequest) -> Result<(), Denied>;
}

/// Sets defaults on objects of a kind, with the help of what else it holds: clients, caches,
/// settings. For built-in kinds and for defaults that need to wait.
///
/// ```
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// use steersman::webhook::{AdmissionRequest, CustomDefaulter, Denied};
///
/// /// Marks every ConfigMap with who made it.
/// struct Marker;
///
/// impl CustomDefaulter<ConfigMap> for Marker {
///     async fn set_defaults(
///         &self,
///         map: &mut ConfigMap,
///         request: &AdmissionRequest,
///     ) -> Result<(), Denied> {
///         let labels = map.metadata.labels.get_or_insert_default();
///         labels.entry("made-by".into()).or_insert_with(|| request.user().into());
///         Ok(())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot set defaults on `{K}`",
    note = "implement `steersman::webhook::CustomDefaulter<{K}>` for `{Self}`"
)]
pub trait CustomDefaulter<K>: Send + Sync + 'static {
    /// The operations that it is asked on.
    const OPERATIONS: &'static [Operation] = &[Operation::Create, Operation::Update];

    /// Sets what the user left open. Must come to the same when called again on the result.
    fn set_defaults(
        &self,
        object: &mut K,
        request: &AdmissionRequest,
    ) -> impl Future<Output = Result<(), Denied>> + Send;
}

/// The defaults that a kind knows itself.
pub(super) struct OwnDefaults<K>(pub(super) PhantomData<fn(K)>);

impl<K: Defaulter> CustomDefaulter<K> for OwnDefaults<K> {
    const OPERATIONS: &'static [Operation] = <K as Defaulter>::OPERATIONS;

    async fn set_defaults(&self, object: &mut K, request: &AdmissionRequest) -> Result<(), Denied> {
        Defaulter::set_defaults(object, request)
    }
}

/// The handler that asks a defaulter.
pub(super) fn handler<K: Object>(defaulter: impl CustomDefaulter<K>) -> ErasedHandler {
    let defaulter = Arc::new(defaulter);
    let kind = kind_of::<K>();
    Arc::new(move |request: Arc<AdmissionRequest>| {
        let defaulter = Arc::clone(&defaulter);
        let kind = kind.clone();
        async move {
            match default_object(&*defaulter, &kind, &request).await {
                Ok(response) => response,
                Err(denied) => AdmissionResponse::denied(&request, denied),
            }
        }
        .boxed()
    })
}

async fn default_object<K: Object>(
    defaulter: &impl CustomDefaulter<K>,
    kind: &GroupVersionKind,
    request: &AdmissionRequest,
) -> Result<AdmissionResponse, Denied> {
    // A deleted object has no need of defaults, a connection has no object of this kind.
    if matches!(request.operation, Operation::Delete | Operation::Connect) {
        return Ok(AdmissionResponse::allowed());
    }
    request.expect_kind(kind)?;
    let mut object: K = request.decode_object()?;
    let before = serde_json::to_value(&object)?;
    defaulter.set_defaults(&mut object, request).await?;
    let after = serde_json::to_value(&object)?;
    let sent = request.object.as_ref().unwrap_or(&Value::Null);
    Ok(AdmissionResponse::allowed().with_patch(carried_over(sent, &before, &after)))
}
