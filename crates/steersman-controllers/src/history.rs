//! ControllerRevisions: the templates that a StatefulSet or a DaemonSet has had, each under a name
//! with a hash and with a number that grows.
//!
//! A template that comes back gets a new number and keeps its name; so `kubectl rollout undo` costs
//! no further revision. Finding and forgetting revisions is pure; [`Snapshot::take`] writes one.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde_json::{Value, json};
use steersman::{Context, Object, ObjectKey, Result};

/// By which Pods say of which revision they are.
pub(crate) const REVISION_LABEL: &str = "controller-revision-hash";
/// The longest beginning that the name of a revision takes from its owner.
const PREFIX_MAX: usize = 223;

/// What a revision says of a template: a patch that brings an object back to it.
pub(crate) fn data_of(template: &PodTemplateSpec) -> Value {
    let mut template = serde_json::to_value(template).unwrap_or_default();
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".into(), "replace".into());
    }
    json!({"spec": {"template": template}})
}

/// The template that a revision says.
pub(crate) fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// The name of a revision.
pub(crate) fn name_of(revision: &ControllerRevision) -> &str {
    revision.metadata.name.as_deref().unwrap_or_default()
}

/// Whether this is what a revision says.
fn says(revision: &ControllerRevision, data: &Value) -> bool {
    revision.data.as_ref().is_some_and(|own| own.0 == *data)
}

/// What sorts revisions, the latest last.
fn rank(revision: &ControllerRevision) -> (i64, Option<Timestamp>, Option<String>) {
    let meta = &revision.metadata;
    let created = meta.creation_timestamp.as_ref().map(|time| time.0);
    (revision.revision, created, meta.name.clone())
}

/// All revisions of an owner, sorted by what they say.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Those that say what the owner says now, the latest last: one, unless the name of the first
    /// was made otherwise.
    pub(crate) same: Vec<Arc<ControllerRevision>>,
    /// The others, the latest last.
    pub(crate) others: Vec<Arc<ControllerRevision>>,
}

impl History {
    /// Sorts revisions by whether they say this.
    pub(crate) fn new(mut revisions: Vec<Arc<ControllerRevision>>, data: &Value) -> Self {
        revisions.sort_by_key(|revision| rank(revision));
        let (same, others) = revisions.into_iter().partition(|revision| says(revision, data));
        Self { same, others }
    }

    /// The number that the present revision must have.
    fn number(&self) -> i64 {
        self.others.last().map_or(0, |latest| latest.revision) + 1
    }

    /// The revision of that name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<ControllerRevision>> {
        self.same.iter().chain(&self.others).find(|revision| name_of(revision) == name)
    }

    /// The oldest revisions beyond `limit` among those that nobody uses. A negative limit keeps
    /// all.
    pub(crate) fn unused(
        &self,
        limit: Option<i32>,
        lives: impl Fn(&ControllerRevision) -> bool,
    ) -> Vec<Arc<ControllerRevision>> {
        let mut all: Vec<_> = self.same.iter().chain(&self.others).cloned().collect();
        all.sort_by_key(|revision| rank(revision));
        all.retain(|revision| !lives(revision));
        let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(usize::MAX);
        all.truncate(all.len().saturating_sub(limit));
        all
    }

    /// The oldest revisions beyond `limit` that nobody uses, where those in use count as well.
    pub(crate) fn surplus(
        &self,
        limit: Option<i32>,
        lives: impl Fn(&ControllerRevision) -> bool,
    ) -> Vec<Arc<ControllerRevision>> {
        let limit = usize::try_from(limit.unwrap_or(10)).unwrap_or(usize::MAX);
        let count = self.others.len().saturating_sub(limit);
        self.others.iter().filter(|revision| !lives(revision)).take(count).cloned().collect()
    }
}

/// What an owner says now, to be kept as a revision.
pub(crate) struct Snapshot<'a> {
    /// Whose it is.
    pub(crate) owner: &'a ObjectMeta,
    /// Its template, whose labels the revision has.
    pub(crate) template: &'a PodTemplateSpec,
    /// What is kept.
    pub(crate) data: &'a Value,
    /// The label of a revision that has its hash.
    pub(crate) label: &'static str,
    /// The hash, after so many collisions.
    pub(crate) hash: &'a (dyn Fn(i32) -> String + Send + Sync),
    /// How often a name was taken before.
    pub(crate) collisions: i32,
    /// Whether the latest revision says the same as the owner, though in other words.
    pub(crate) means_the_same: &'a (dyn Fn(&ControllerRevision) -> bool + Send + Sync),
}

impl Snapshot<'_> {
    /// Finds or writes the revision that says what the owner says now. Gives it with the number
    /// of names that were taken.
    pub(crate) async fn take<K: Object>(
        &self,
        history: &History,
        ctx: &Context<K>,
    ) -> Result<(ControllerRevision, i32)> {
        let number = history.number();
        match history.same.last() {
            Some(known) if known.revision >= number => {
                Ok((ControllerRevision::clone(known), self.collisions))
            }
            Some(known) => {
                let renewed =
                    ControllerRevision { revision: number, ..ControllerRevision::clone(known) };
                Ok((ctx.update(&renewed).await?, self.collisions))
            }
            None => match history.others.last().filter(|latest| (self.means_the_same)(latest)) {
                Some(latest) => Ok((ControllerRevision::clone(latest), self.collisions)),
                None => self.create(number, ctx).await,
            },
        }
    }

    async fn create<K: Object>(
        &self,
        number: i64,
        ctx: &Context<K>,
    ) -> Result<(ControllerRevision, i32)> {
        let mut collisions = self.collisions;
        loop {
            let revision = self.revision(number, collisions);
            let key = ObjectKey::of(&revision);
            match ctx.create(revision).await {
                Err(error) if error.is_already_exists() => {
                    match ctx.live().get::<ControllerRevision>(&key).await? {
                        Some(existing) if says(&existing, self.data) => {
                            return Ok((existing, collisions));
                        }
                        Some(_) => collisions += 1,
                        None => return Err(error), // it has just been deleted: try again
                    }
                }
                created => return Ok((created?, collisions)),
            }
        }
    }

    fn revision(&self, number: i64, collisions: i32) -> ControllerRevision {
        let hash = (self.hash)(collisions);
        let owner = self.owner.name.as_deref().unwrap_or_default();
        let prefix = &owner[..owner.floor_char_boundary(PREFIX_MAX)];
        let labels = self.template.metadata.as_ref().and_then(|meta| meta.labels.clone());
        let mut labels: BTreeMap<_, _> = labels.unwrap_or_default();
        labels.insert(self.label.into(), hash.clone());
        ControllerRevision {
            metadata: ObjectMeta {
                name: Some(format!("{prefix}-{hash}")),
                namespace: self.owner.namespace.clone(),
                labels: Some(labels),
                annotations: self.owner.annotations.clone(),
                ..ObjectMeta::default()
            },
            data: Some(RawExtension(self.data.clone())),
            revision: number,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(image: &str) -> PodTemplateSpec {
        let template = json!({
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        });
        serde_json::from_value(template).unwrap()
    }

    fn revision(image: &str, number: i64) -> Arc<ControllerRevision> {
        Arc::new(ControllerRevision {
            metadata: ObjectMeta { name: Some(image.into()), ..ObjectMeta::default() },
            data: Some(RawExtension(data_of(&template(image)))),
            revision: number,
        })
    }

    #[test]
    fn a_revision_gives_back_its_template() {
        assert_eq!(template_of(&revision("nginx:1", 1)), Some(template("nginx:1")));
        assert_eq!(
            revision("nginx:1", 1).data.as_ref().unwrap().0["spec"]["template"]["$patch"],
            "replace"
        );
    }

    #[test]
    fn a_template_that_comes_back_needs_a_number_beyond_all_others() {
        let revisions = vec![revision("a", 1), revision("c", 3), revision("b", 2)];
        let history = History::new(revisions, &data_of(&template("a")));
        assert_eq!(history.same.len(), 1);
        assert_eq!(history.number(), 4);
        let history = History::new(vec![revision("a", 1)], &data_of(&template("a")));
        assert_eq!(history.number(), 1);
    }

    #[test]
    fn the_oldest_unused_revisions_beyond_the_limit_are_forgotten() {
        let revisions = (1..=5).map(|n| revision(&n.to_string(), n)).collect();
        let history = History::new(revisions, &data_of(&template("5")));
        let unused = |limit| -> Vec<String> {
            let lives = |revision: &ControllerRevision| ["2", "5"].contains(&name_of(revision));
            history.unused(limit, lives).iter().map(|r| name_of(r).to_owned()).collect()
        };
        assert_eq!(unused(Some(1)), ["1", "3"]);
        assert_eq!(unused(Some(0)), ["1", "3", "4"]);
        assert_eq!(unused(Some(-1)), [] as [String; 0]);
        assert_eq!(unused(None), [] as [String; 0]);
    }
}
