//! The tokens controller: a Secret of the type `kubernetes.io/service-account-token` gets a token
//! of the ServiceAccount that it names, which never expires, the certificates of the API server
//! and the namespace. A Secret whose account is gone, or was made anew, is deleted; an account that
//! refers to a Secret that is gone refers to it no longer.

mod plan;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{DeleteParams, Preconditions};
use steersman::controller::Gone;
use steersman::{Client, Context, Controller, Error, Manager, Next, ObjectKey, Reconciler, Result};

use crate::authority::{Authority, TokenOf};
use crate::namespace::refuses_content;

/// The tokens controller, which signs with these keys and hands out these certificates in PEM.
pub(crate) fn controller(authority: Arc<dyn Authority>, root_ca: Option<&str>) -> Controller {
    Controller::of::<Secret>()
        .named("serviceaccount-token-controller")
        .only(plan::is_token)
        .watches_referenced::<ServiceAccount, _>(plan::account_of)
        .on_deleted(forget)
        .reconcile(Tokens { authority, root_ca: root_ca.map(Into::into) })
}

/// Keeps all other Secrets out of the cache.
pub(crate) fn restrict_cache(manager: Manager) -> Manager {
    manager.cache::<Secret>(|cache| cache.fields(format!("type={}", plan::TYPE)))
}

struct Tokens {
    authority: Arc<dyn Authority>,
    root_ca: Option<Arc<str>>,
}

impl Reconciler<Secret> for Tokens {
    async fn reconcile(&self, secret: Arc<Secret>, ctx: Context<Secret>) -> Result<Next> {
        let Some(name) = plan::account_of(&secret) else { return Ok(Next::Settled) };
        let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
        let key = ObjectKey::namespaced(namespace, name.as_str());
        let known = ctx.cache::<ServiceAccount>()?.get(&key);
        let known = known.filter(|account| plan::is_owner(&secret, account));
        let account = match known {
            Some(account) => account,
            // The Secret may be known before its account: only the server can tell.
            None => match ctx.live().get::<ServiceAccount>(key).await? {
                Some(account) if plan::is_owner(&secret, &account) => Arc::new(account),
                _ => return delete(&secret, &ctx).await,
            },
        };
        let token = || {
            self.authority.sign_token(TokenOf {
                namespace,
                secret: secret.metadata.name.as_deref().unwrap_or_default(),
                account: &name,
                account_uid: account.metadata.uid.as_deref().unwrap_or_default(),
            })
        };
        let filled = plan::filled(&secret, &account, self.root_ca.as_deref(), token);
        let Some(filled) = filled.map_err(Error::message)? else { return Ok(Next::Settled) };
        match ctx.live().update(&filled).await {
            Ok(_) => Ok(Next::Settled),
            // Somebody was faster: the cache will show it.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Next::Settled),
            Err(error) if refuses_content(&error) => Ok(Next::Settled),
            Err(error) => Err(error),
        }
    }
}

/// Deletes a Secret whose account is not there, unless it is another one by now.
async fn delete(secret: &Secret, ctx: &Context<Secret>) -> Result<Next> {
    let preconditions = Preconditions { uid: secret.metadata.uid.clone(), resource_version: None };
    let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    match ctx.live().delete::<Secret>(ObjectKey::of(secret), &params).await {
        Ok(_) => Ok(Next::Settled),
        Err(error) if error.is_conflict() => Ok(Next::Settled),
        Err(error) => Err(error),
    }
}

/// Takes a Secret that is gone out of the list of its account. If somebody changes the account
/// meanwhile, the framework tries again.
async fn forget(gone: Gone<Secret>, client: Client) -> Result<()> {
    let Some(secret) = gone.last else { return Ok(()) };
    let Some(name) = plan::account_of(&secret) else { return Ok(()) };
    let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
    let key = ObjectKey::namespaced(namespace, name.as_str());
    let account = client.get::<ServiceAccount>(key).await?;
    let account = account.filter(|account| plan::is_owner(&secret, account));
    let Some(account) = account else { return Ok(()) };
    let Some(changed) = plan::without_reference(&account, &gone.key.name) else { return Ok(()) };
    match client.update(&changed).await {
        // Until this is done nobody looks at a new Secret of that name: who refuses it refuses it.
        Err(error) if error.status().is_some() && !error.is_conflict() => {
            tracing::warn!(secret = %gone.key, %error, "cannot forget a token's Secret");
            Ok(())
        }
        written => written.map(drop),
    }
}
