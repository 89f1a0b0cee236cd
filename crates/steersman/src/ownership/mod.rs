//! Adoption: which objects an owner keeps, adopts and releases, by labels.
//!
//! As a ReplicaSet does with Pods: an owner keeps what it controls and still selects, adopts what
//! it selects and nobody controls, and releases what it controls but selects no longer. Deciding
//! is pure ([`claim`]); [`claim_children`] also does it, and asks the server first whether the
//! owner itself still exists. [`Selectors`] wakes the owners that an orphan may belong to.
//!
//! ```
//! use k8s_openapi::api::apps::v1::ReplicaSet;
//! use k8s_openapi::api::core::v1::Pod;
//! use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
//! use steersman::ownership::{Selectors, claim_children};
//! use steersman::prelude::*;
//!
//! fn selector(set: &ReplicaSet) -> Option<&LabelSelector> {
//!     set.spec.as_ref().map(|spec| &spec.selector)
//! }
//!
//! async fn reconcile(set: Arc<ReplicaSet>, ctx: Context<ReplicaSet>) -> Result<Next> {
//!     let pods: Vec<Arc<Pod>> = claim_children(&ctx, selector(&set)).await?;
//!     tracing::info!(count = pods.len(), "pods of this set, adopted ones among them");
//!     Ok(Next::Settled)
//! }
//!
//! fn sets() -> Controller {
//!     let selectors = Selectors::new(selector);
//!     let orphans = selectors.clone();
//!     Controller::of::<ReplicaSet>()
//!         .observes(move |event| selectors.observe(event))
//!         .owns::<Pod>()
//!         .watches(move |pod: &Pod| orphans.of_orphan(&pod.metadata))
//!         .reconcile(reconcile)
//! }
//! # assert_eq!(sets().name(), "replicaset");
//! ```

mod selectors;

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::Resource;
use kube::core::{Selector, SelectorExt};
use serde_json::json;

use crate::client::{Answer, Pending};
use crate::codec::Codec;
use crate::context::{Context, ErasedContext, erased};
use crate::error::{Error, Result};
use crate::kind::{ErasedKind, Kind};
use crate::object::{
    AsObject, ErasedObject, Object, ObjectKey, controller_of, downcast, is_controlled_by,
};
use crate::owner::controller_reference_of;
pub use crate::owner::{
    OwnerReferenceError, remove_owner_reference, set_controller_reference, set_owner_reference,
};
pub use selectors::Selectors;

/// The index that finds objects by their controller, or by being nobody's in a namespace.
const CONTROLLER_INDEX: &str = "steersman.dev/controller";

/// What an owner does with the objects it could claim.
#[derive(Debug)]
pub struct Claims<C> {
    /// It controls and selects them.
    pub kept: Vec<Arc<C>>,
    /// It selects them and nobody controls them.
    pub adopted: Vec<Arc<C>>,
    /// It controls them and does not select them any more.
    pub released: Vec<Arc<C>>,
}

impl<C> Claims<C> {
    /// The same, but nothing changes hands that is not chosen.
    fn among(mut self, may_change: impl Fn(&C) -> bool) -> Self {
        self.adopted.retain(|object| may_change(object));
        self.released.retain(|object| may_change(object));
        self
    }
}

/// Sorts candidates into what the owner keeps, adopts and releases. An owner or an object
/// that is being deleted neither adopts nor is adopted.
pub fn claim<C: Resource>(
    owner: &ObjectMeta,
    selector: Option<&Selector>,
    candidates: Vec<Arc<C>>,
) -> Claims<C> {
    claim_where(owner, selector, candidates, |_| true)
}

/// The same with one more condition, besides the selector.
fn claim_where<C: Resource>(
    owner: &ObjectMeta,
    selector: Option<&Selector>,
    candidates: Vec<Arc<C>>,
    concerns: impl Fn(&C) -> bool,
) -> Claims<C> {
    let mut claims = Claims { kept: Vec::new(), adopted: Vec::new(), released: Vec::new() };
    for candidate in candidates {
        let selector = selector.filter(|_| concerns(&candidate));
        match decide(owner, selector, candidate.meta()) {
            Some(Fate::Kept) => claims.kept.push(candidate),
            Some(Fate::Adopted) => claims.adopted.push(candidate),
            Some(Fate::Released) => claims.released.push(candidate),
            None => {}
        }
    }
    claims
}

/// What becomes of an object that an owner could claim.
enum Fate {
    Kept,
    Adopted,
    Released,
}

fn decide(owner: &ObjectMeta, selector: Option<&Selector>, object: &ObjectMeta) -> Option<Fate> {
    let no_labels = BTreeMap::new();
    let labels = object.labels.as_ref().unwrap_or(&no_labels);
    let selected = selector.is_some_and(|selector| selector.matches(labels));
    let owner_lives = owner.deletion_timestamp.is_none();
    if is_controlled_by(object, owner.uid.as_deref().unwrap_or_default()) {
        return match (selected, owner_lives) {
            (true, _) => Some(Fate::Kept),
            (false, true) => Some(Fate::Released),
            (false, false) => None,
        };
    }
    let adoptable = controller_of(object).is_none() && object.deletion_timestamp.is_none();
    (selected && owner_lives && adoptable).then_some(Fate::Adopted)
}

/// Makes the object being reconciled the controller of the `C`s in its namespace that its selector
/// matches and nobody controls, ends its control of those that the selector matches no longer,
/// and gives back everything that it then controls. `C` must be a kind that the controller
/// declared. A selector that is missing, invalid or empty matches nothing: an empty one would
/// claim the whole namespace.
pub async fn claim_children<K: Object, C: Object>(
    ctx: &Context<K>,
    selector: Option<&LabelSelector>,
) -> Result<Vec<Arc<C>>> {
    claim_children_where(ctx, selector, |_| true).await
}

/// The same for those alone that `concerns` chooses, such as the Pods whose name a StatefulSet
/// would give: others are as if the selector did not match them.
pub async fn claim_children_where<K: Object, C: Object>(
    ctx: &Context<K>,
    selector: Option<&LabelSelector>,
    concerns: impl Fn(&C) -> bool,
) -> Result<Vec<Arc<C>>> {
    let ctx = ctx.erased();
    let (mut owned, exchange) = claimed(ctx, selector, concerns)?;
    if let Some(exchange) = exchange {
        owned.extend(exchange.carry_out(ctx).await?.into_iter().filter_map(downcast));
    }
    Ok(owned)
}

/// The same, where only those change hands that `may_change` chooses: the others stay with whom they
/// are, as Pods that have ended do. Of them, too, are given back those that it controls and selects.
pub async fn claim_children_among<K: Object, C: Object>(
    ctx: &Context<K>,
    selector: Option<&LabelSelector>,
    may_change: impl Fn(&C) -> bool,
) -> Result<Vec<Arc<C>>> {
    let ctx = ctx.erased();
    let selector = selector.and_then(selectors::parsed);
    let claims = claim(ctx.meta(), selector.as_ref(), candidates::<C>(ctx)?);
    let (mut owned, exchange) = exchanged(claims.among(may_change));
    if let Some(exchange) = exchange {
        owned.extend(exchange.carry_out(ctx).await?.into_iter().filter_map(downcast));
    }
    Ok(owned)
}

/// The same with a finalizer, which whoever is adopted gets and whoever is released loses, in the
/// same write: so there is no moment at which it could be missed.
pub async fn claim_children_with_finalizer<K: Object, C: Object>(
    ctx: &Context<K>,
    selector: Option<&LabelSelector>,
    finalizer: &'static str,
) -> Result<Vec<Arc<C>>> {
    let ctx = ctx.erased();
    let (mut owned, exchange) = claimed(ctx, selector, |_| true)?;
    if let Some(exchange) = exchange {
        let exchange = Exchange { finalizer: Some(finalizer), ..exchange };
        owned.extend(exchange.carry_out(ctx).await?.into_iter().filter_map(downcast));
    }
    Ok(owned)
}

/// What the object being reconciled keeps, and what is to change hands, if anything is.
fn claimed<C: Object>(
    ctx: &ErasedContext,
    selector: Option<&LabelSelector>,
    concerns: impl Fn(&C) -> bool,
) -> Result<(Vec<Arc<C>>, Option<Exchange>)> {
    let selector = selector.and_then(selectors::parsed);
    let claims = claim_where(ctx.meta(), selector.as_ref(), candidates::<C>(ctx)?, concerns);
    Ok(exchanged(claims))
}

/// What is kept, and what is to change hands, if anything is.
fn exchanged<C: Object>(claims: Claims<C>) -> (Vec<Arc<C>>, Option<Exchange>) {
    if claims.adopted.is_empty() && claims.released.is_empty() {
        return (claims.kept, None);
    }
    let exchange = Exchange {
        kind: Kind::<C>::of().erased(),
        codec: Codec::of::<C>(),
        released: erased(&claims.released),
        adopted: erased(&claims.adopted),
        finalizer: None,
    };
    (claims.kept, Some(exchange))
}

/// Objects that change hands, whose type has been forgotten.
struct Exchange {
    kind: ErasedKind,
    codec: Codec,
    released: Vec<Arc<dyn ErasedObject>>,
    adopted: Vec<Arc<dyn ErasedObject>>,
    /// What those have that belong to the owner.
    finalizer: Option<&'static str>,
}

impl Exchange {
    /// Releases and adopts; gives back what was adopted, as it is then.
    fn carry_out(self, ctx: &ErasedContext) -> Pending<'_, Vec<Arc<dyn ErasedObject>>> {
        Box::pin(async move {
            for object in &self.released {
                self.release(object.metadata(), ctx).await?;
            }
            if !self.adopted.is_empty() {
                confirm_existence(ctx).await?;
            }
            let mut adopted = Vec::new();
            for object in &self.adopted {
                adopted.extend(self.adopt(object.metadata(), ctx).await?);
            }
            Ok(adopted)
        })
    }

    /// Makes the owner the controller of this object; `None` if the object is gone.
    async fn adopt(
        &self,
        object: &ObjectMeta,
        ctx: &ErasedContext,
    ) -> Result<Option<Arc<dyn ErasedObject>>> {
        let mut owners = object.owner_references.clone().unwrap_or_default();
        owners.extend(controller_reference_of(ctx.meta(), ctx.kind()));
        let mut finalizers = self.other_finalizers(object);
        finalizers.extend(self.finalizer.map(str::to_owned));
        match self.patch_owners(object, &owners, &finalizers, ctx).await {
            Err(error) if error.is_not_found() => Ok(None),
            adopted => adopted?.erased(self.codec).map(Some),
        }
    }

    /// Ends the owner's control over this object.
    async fn release(&self, object: &ObjectMeta, ctx: &ErasedContext) -> Result<()> {
        let mut owners = object.owner_references.clone().unwrap_or_default();
        owners.retain(|reference| Some(&reference.uid) != ctx.meta().uid.as_ref());
        let finalizers = self.other_finalizers(object);
        match self.patch_owners(object, &owners, &finalizers, ctx).await {
            Err(error) if error.is_not_found() => Ok(()),
            released => released?.metadata().map(drop),
        }
    }

    /// The finalizers of an object that are not the owner's.
    fn other_finalizers(&self, object: &ObjectMeta) -> Vec<String> {
        let mut finalizers = object.finalizers.clone().unwrap_or_default();
        finalizers.retain(|finalizer| Some(finalizer.as_str()) != self.finalizer);
        finalizers
    }

    /// Replaces the owners, and the finalizers if one belongs to them, of exactly the version of the
    /// object that was seen.
    fn patch_owners<'a>(
        &self,
        object: &ObjectMeta,
        owners: &[OwnerReference],
        finalizers: &[String],
        ctx: &'a ErasedContext,
    ) -> Pending<'a> {
        let mut patch = json!({"metadata": {
            "uid": object.uid,
            "resourceVersion": object.resource_version,
            "ownerReferences": owners,
        }});
        if self.finalizer.is_some() {
            patch["metadata"]["finalizers"] = json!(finalizers);
        }
        ctx.requests(self.kind.clone()).merge_patch(&ObjectKey::of_meta(object), patch)
    }
}

/// Fails unless the server says that this very owner exists and is not being deleted: the
/// cache may be late, and whoever was adopted by a dead owner would be deleted with it.
async fn confirm_existence(ctx: &ErasedContext) -> Result<()> {
    let live = ctx.own_requests().get(ctx.key().clone()).await?;
    let live = live.map(Answer::metadata).transpose()?;
    let same =
        live.is_some_and(|live| live.uid == ctx.meta().uid && live.deletion_timestamp.is_none());
    if same { Ok(()) } else { Err(Error::message("the owner is gone or being deleted")) }
}

/// The objects that the object being reconciled controls or might adopt.
fn candidates<C: Object>(ctx: &ErasedContext) -> Result<Vec<Arc<C>>> {
    let cache = ctx.of_kind(&Kind::<C>::of()).cache()?;
    // A function and no closure, so that controllers of different kinds share the index.
    cache.add_index(CONTROLLER_INDEX, controller_or_orphan::<C>);
    let uid = ctx.meta().uid.as_deref().unwrap_or_default();
    let namespace = ctx.key().namespace.as_deref().unwrap_or_default();
    let mut found = cache.by_index(CONTROLLER_INDEX, uid);
    found.extend(cache.by_index(CONTROLLER_INDEX, &orphan_of(namespace)));
    Ok(found)
}

fn controller_or_orphan<C: Object>(object: &C) -> Option<String> {
    Some(controller_or_namespace(object.meta()))
}

fn controller_or_namespace(meta: &ObjectMeta) -> String {
    match controller_of(meta) {
        Some(owner) => owner.uid.clone(),
        None => orphan_of(meta.namespace.as_deref().unwrap_or_default()),
    }
}

/// The index value of what nobody controls in a namespace; no uid looks like it.
fn orphan_of(namespace: &str) -> String {
    format!("orphan/{namespace}")
}

/// The reference that makes `owner` the controller of another object. It blocks the owner's
/// foreground deletion until that object is gone.
pub fn controller_reference<K: Object>(owner: &impl AsObject<K>) -> Option<OwnerReference> {
    controller_reference_of(owner.as_object().meta(), &Kind::<K>::of().erased())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::ReplicaSet;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::Value;

    use super::*;

    fn set() -> ReplicaSet {
        let set = json!({
            "metadata": {"namespace": "default", "name": "web", "uid": "set"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}},
        });
        serde_json::from_value(set).unwrap()
    }

    fn selector_of(set: &ReplicaSet) -> Option<Selector> {
        selectors::parsed(&set.spec.as_ref()?.selector)
    }

    fn pod(name: &str, app: &str, controller: Option<&str>) -> Arc<Pod> {
        let owners: Vec<Value> = controller
            .map(|uid| json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": uid, "controller": true}))
            .into_iter()
            .collect();
        let pod = json!({"metadata": {
            "namespace": "default", "name": name, "labels": {"app": app}, "ownerReferences": owners,
        }});
        Arc::new(serde_json::from_value(pod).unwrap())
    }

    fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
        pods.iter().map(|pod| pod.metadata.name.as_deref().unwrap()).collect()
    }

    fn claims(set: &ReplicaSet) -> Claims<Pod> {
        let candidates = vec![
            pod("mine", "web", Some("set")),
            pod("orphan", "web", None),
            pod("relabelled", "other", Some("set")),
            pod("foreign", "web", Some("another")),
            pod("unrelated", "other", None),
        ];
        claim(&set.metadata, selector_of(set).as_ref(), candidates)
    }

    #[test]
    fn an_owner_keeps_adopts_and_releases_by_its_selector() {
        let claims = claims(&set());
        assert_eq!(names(&claims.kept), ["mine"]);
        assert_eq!(names(&claims.adopted), ["orphan"]);
        assert_eq!(names(&claims.released), ["relabelled"]);
    }

    #[test]
    fn what_does_not_concern_an_owner_is_as_if_its_selector_did_not_match() {
        let set = set();
        let candidates = vec![pod("mine", "web", Some("set")), pod("orphan", "web", None)];
        let claims = claim_where(&set.metadata, selector_of(&set).as_ref(), candidates, |_| false);
        assert!(claims.kept.is_empty() && claims.adopted.is_empty());
        assert_eq!(names(&claims.released), ["mine"]);
    }

    #[test]
    fn what_may_not_change_hands_stays_where_it_is() {
        let set = set();
        let claims = claims(&set).among(|_| false);
        assert_eq!(names(&claims.kept), ["mine"]);
        assert!(claims.adopted.is_empty() && claims.released.is_empty());
    }

    #[test]
    fn an_owner_that_is_being_deleted_changes_nothing() {
        let mut set = set();
        set.metadata.deletion_timestamp = Some(crate::clock::now_time());
        let claims = claims(&set);
        assert_eq!(names(&claims.kept), ["mine"]);
        assert!(claims.adopted.is_empty() && claims.released.is_empty());
    }

    #[test]
    fn an_object_that_is_being_deleted_is_not_adopted() {
        let mut dying = Pod::clone(&pod("orphan", "web", None));
        dying.metadata.deletion_timestamp = Some(crate::clock::now_time());
        let set = set();
        let claims = claim(&set.metadata, selector_of(&set).as_ref(), vec![Arc::new(dying)]);
        assert!(claims.adopted.is_empty());
    }
}
