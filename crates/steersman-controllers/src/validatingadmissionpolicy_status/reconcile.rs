//! Asks what a policy's kinds look like and tells what does not fit them.

use std::collections::HashMap;
use std::sync::Arc;

use http::Request;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::Patch;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};
use steersman::{Client, Context, Next, Result};
use steersman_rules::admission_policy::{ExpressionWarning, KnownKind, Params, type_warnings};

use super::plan;
use super::schema::{Document, path};

/// The name under which Kubernetes' controller writes.
const FIELD_MANAGER: &str = "validatingadmissionpolicy-status";

pub(super) async fn reconcile(
    policy: Arc<ValidatingAdmissionPolicy>,
    ctx: Context<ValidatingAdmissionPolicy>,
) -> Result<Next> {
    let warnings = warnings(&policy, ctx.live()).await?;
    let warnings = warnings
        .iter()
        .map(|warning| json!({"fieldRef": warning.field_ref, "warning": warning.warning}));
    let type_checking = match warnings.collect::<Vec<Value>>() {
        none if none.is_empty() => json!({}),
        some => json!({ "expressionWarnings": some }),
    };
    let applied = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": policy.metadata.name},
        "status": {
            "observedGeneration": policy.metadata.generation,
            "typeChecking": type_checking,
        },
    });
    let client = ctx.live().with_field_manager(FIELD_MANAGER);
    let key = ctx.key().clone();
    client.patch_status::<ValidatingAdmissionPolicy, _>(key, &Patch::Apply(applied)).await?;
    Ok(Next::Settled)
}

/// What speaks against the expressions of a policy.
async fn warnings(
    policy: &ValidatingAdmissionPolicy,
    client: &Client,
) -> Result<Vec<ExpressionWarning>> {
    let mut served = plan::served(client.kube().list_core_api_versions_aggregated().await?);
    served.extend(plan::served(client.kube().list_api_groups_aggregated().await?));
    let mut documents = Documents { client, read: HashMap::new() };
    let mut kinds = Vec::new();
    for kind in plan::kinds(policy, &served) {
        kinds.extend(documents.known(kind).await);
    }
    let param_kind = plan::param_kind(policy);
    let has_params = param_kind.is_some();
    let known_params = match param_kind {
        Some(kind) if !kinds.is_empty() => documents.known(kind).await,
        _ => None,
    };
    let params = match &known_params {
        Some(kind) => Params::Of(kind),
        None if has_params => Params::Unknown,
        None => Params::None,
    };
    Ok(type_warnings(&json!(policy), &kinds, params))
}

/// The OpenAPI documents that one policy needs, each read once.
struct Documents<'a> {
    client: &'a Client,
    read: HashMap<String, Document>,
}

impl Documents<'_> {
    /// How the objects of a kind look; `None` if the server does not tell, for then nothing is
    /// checked, and a policy does what it does without.
    async fn known(&mut self, kind: GroupVersionKind) -> Option<KnownKind> {
        let path = path(&kind);
        if !self.read.contains_key(&path) {
            let document = self.document(&path).await.unwrap_or_else(|error| {
                tracing::debug!(path, %error, "no schemas to check a policy against");
                Document::default()
            });
            self.read.insert(path.clone(), document);
        }
        let schema = self.read.get(&path)?.schema_of(&kind)?;
        let GroupVersionKind { group, version, kind } = kind;
        Some(KnownKind { group, version, kind, schema })
    }

    async fn document(&self, path: &str) -> Result<Document> {
        Ok(self.client.kube().request(Request::get(path).body(Vec::new())?).await?)
    }
}
