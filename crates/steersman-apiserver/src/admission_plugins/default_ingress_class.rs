//! `DefaultIngressClass` gives an Ingress that names no class the default one.

use futures::future::BoxFuture;
use serde_json::Value;

use super::fields::set;
use super::stored;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

const FOLDER: &str = "/registry/ingressclasses/";
const DEFAULT: &[&str] = &["ingressclass.kubernetes.io/is-default-class"];

/// The older way to name a class.
const ANNOTATION: &str = "kubernetes.io/ingress.class";

/// Fills in the class of an Ingress.
pub(super) struct DefaultIngressClass;

impl Plugin for DefaultIngressClass {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.creates("networking.k8s.io", "ingresses")
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let is_named = !new["spec"]["ingressClassName"].is_null()
                || new["metadata"]["annotations"].get(ANNOTATION).is_some();
            if is_named {
                return Ok(false);
            }
            let class = stored::default_class(write.server, FOLDER, DEFAULT).await?;
            Ok(class.is_some_and(|class| set(&mut new["spec"], "ingressClassName", class)))
        })
    }
}
