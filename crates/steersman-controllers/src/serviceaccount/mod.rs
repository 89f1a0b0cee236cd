//! The ServiceAccount controller: every namespace has a ServiceAccount named `default`.
//!
//! Pods run under it unless they name another; if somebody deletes it, it comes back.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::{Context, Controller, Next, ObjectKey, Result};

use crate::namespace::refuses_content;

/// The name of the ServiceAccount that every namespace has.
const DEFAULT: &str = "default";

/// The ServiceAccount controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Namespace>()
        .named("serviceaccount-controller")
        .only(|namespace| namespace.metadata.deletion_timestamp.is_none())
        .watches(namespace_of)
        .concurrency(4)
        .reconcile(reconcile)
}

/// The namespace whose default ServiceAccount this is.
fn namespace_of(account: &ServiceAccount) -> Option<ObjectKey> {
    let meta = &account.metadata;
    let namespace = meta.namespace.as_deref()?;
    (meta.name.as_deref() == Some(DEFAULT)).then(|| ObjectKey::named(namespace))
}

async fn reconcile(namespace: Arc<Namespace>, ctx: Context<Namespace>) -> Result<Next> {
    let name = namespace.metadata.name.clone().unwrap_or_default();
    let key = ObjectKey::namespaced(name.as_str(), DEFAULT);
    if ctx.cache::<ServiceAccount>()?.get(&key).is_some() {
        return Ok(Next::Settled);
    }
    let account = ServiceAccount {
        metadata: ObjectMeta {
            name: Some(DEFAULT.into()),
            namespace: Some(name),
            ..ObjectMeta::default()
        },
        ..ServiceAccount::default()
    };
    // The namespace contains it but does not own it, so it is created past the context.
    match ctx.live().create(&account).await {
        Ok(_) => Ok(Next::Settled),
        Err(error) if error.is_already_exists() || refuses_content(&error) => Ok(Next::Settled),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_default_account_wakes_its_namespace() {
        let mut account = ServiceAccount::default();
        account.metadata.namespace = Some("team".into());
        account.metadata.name = Some("default".into());
        assert_eq!(namespace_of(&account), Some(ObjectKey::named("team")));
        account.metadata.name = Some("builder".into());
        assert_eq!(namespace_of(&account), None);
    }
}
