//! Handlers of admission requests: raw ones, and how several follow each other.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use json_patch::Patch;

use super::denied::Denied;
use super::request::AdmissionRequest;
use super::response::AdmissionResponse;
use crate::error::panic_text;

/// Decides on requests itself, of whatever kind.
///
/// Every `async fn(AdmissionRequest) -> AdmissionResponse` is a handler, and so is every struct
/// that implements this trait. For one kind, [`Defaulter`](super::Defaulter) and
/// [`Validator`](super::Validator) are more comfortable.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot answer admission requests",
    note = "a handler is `async fn(AdmissionRequest) -> AdmissionResponse`, or a struct that \
            implements `webhook::Handler`; its future must be `Send`"
)]
pub trait Handler: Send + Sync + 'static {
    /// Answers one request.
    fn handle(&self, request: AdmissionRequest) -> impl Future<Output = AdmissionResponse> + Send;
}

impl<F, Fut> Handler for F
where
    F: Fn(AdmissionRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = AdmissionResponse> + Send,
{
    fn handle(&self, request: AdmissionRequest) -> impl Future<Output = AdmissionResponse> + Send {
        self(request)
    }
}

/// A handler of any type, also of those made from defaulters and validators.
pub(super) type ErasedHandler =
    Arc<dyn Fn(Arc<AdmissionRequest>) -> BoxFuture<'static, AdmissionResponse> + Send + Sync>;

/// Forgets the type of a handler.
pub(super) fn erase(handler: impl Handler) -> ErasedHandler {
    let handler = Arc::new(handler);
    Arc::new(move |request| {
        let handler = Arc::clone(&handler);
        async move { handler.handle(AdmissionRequest::clone(&request)).await }.boxed()
    })
}

/// Asks one handler after the other until one refuses. Each sees the object as those before it
/// left it. `panicked` is called for each panic.
pub(super) async fn in_sequence(
    handlers: &[ErasedHandler],
    request: AdmissionRequest,
    panicked: &(dyn Fn() + Send + Sync),
) -> AdmissionResponse {
    let mut request = Arc::new(request);
    let mut whole = AdmissionResponse::allowed();
    for (place, handler) in handlers.iter().enumerate() {
        let mut answer = guarded(handler, Arc::clone(&request), panicked).await;
        if !answer.allowed {
            answer.warnings.splice(0..0, whole.warnings);
            return answer;
        }
        let is_last = place + 1 == handlers.len();
        if !is_last && let Err(denied) = apply(&mut request, &answer.patch) {
            return AdmissionResponse::denied(&request, denied);
        }
        whole.patch.0.append(&mut answer.patch.0);
        whole.warnings.append(&mut answer.warnings);
        whole.audit_annotations.append(&mut answer.audit_annotations);
    }
    whole
}

/// Changes the object of the request, for the next handler.
fn apply(request: &mut Arc<AdmissionRequest>, patch: &Patch) -> Result<(), Denied> {
    if patch.0.is_empty() {
        return Ok(());
    }
    let object = Arc::make_mut(request).object.get_or_insert_default();
    json_patch::patch(object, patch)
        .map_err(|error| Denied::internal(format!("the patch of a handler does not fit: {error}")))
}

async fn guarded(
    handler: &ErasedHandler,
    request: Arc<AdmissionRequest>,
    panicked: &(dyn Fn() + Send + Sync),
) -> AdmissionResponse {
    let asked = Arc::clone(&request);
    // The handler may panic before it has made its future.
    let answer = AssertUnwindSafe(async { handler(asked).await }).catch_unwind().await;
    answer.unwrap_or_else(|panic| {
        panicked();
        AdmissionResponse::denied(&request, panic_denied(panic.as_ref()))
    })
}

fn panic_denied(panic: &(dyn Any + Send)) -> Denied {
    let text = panic_text(panic);
    tracing::error!(panic = text, "admission webhook panicked");
    Denied::internal(format!("panic: {text} [recovered]"))
}
