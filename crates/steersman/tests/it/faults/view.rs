//! What a handler knows, learned from events alone, and what was wrong with them.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use steersman::cache::Item;
use steersman::informer::{Event, Informer};
use steersman::object::version_of;

/// The objects there are: by name, which one it is and in which version.
pub(super) type Objects = BTreeMap<String, Seen>;

/// One object in one version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Seen {
    pub(super) uid: String,
    pub(super) version: String,
}

/// Folds the events of one handler.
#[derive(Default)]
pub(super) struct View {
    pub(super) objects: Objects,
    /// Every state that was told as present.
    told: HashSet<Seen>,
    /// The uids that were told as deleted.
    deleted: HashSet<String>,
    /// What no handler should be told.
    pub(super) wrong: Vec<String>,
}

/// An object as it is compared.
pub(super) fn seen(item: &Item<ConfigMap>) -> (String, Seen) {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let seen = Seen { uid: text(item.uid()), version: text(item.resource_version()) };
    (item.key().to_string(), seen)
}

/// An informer of every ConfigMap.
pub(crate) fn config_maps(client: kube::Client) -> Informer<ConfigMap> {
    Informer::builder(client).start()
}

/// What the informer's cache holds.
pub(super) fn cached(informer: &Informer<ConfigMap>) -> Objects {
    informer.cache().snapshot().iter().map(|item| seen(&item)).collect()
}

impl View {
    /// A handler of this informer that folds what it hears; ready once the view is.
    pub(super) async fn attach(informer: &Informer<ConfigMap>, view: Arc<Mutex<Self>>) {
        let handler = informer.add_handler(move |event| view.lock().unwrap().fold(event)).await;
        handler.synced().await;
    }

    fn fold(&mut self, event: &Event<ConfigMap>) {
        match event {
            Event::Added { object, .. } => {
                let (name, new) = seen(object);
                if let Some(known) = self.objects.get(&name) {
                    self.wrong.push(format!("{name} was added as {new:?}, known as {known:?}"));
                }
                self.put(name, new);
            }
            // The same version again, after a copy of it that nobody could read.
            Event::Updated { old, new }
                if old.resource_version() == new.resource_version() && old.object().is_none() => {}
            Event::Updated { old, new } => {
                let (name, old) = seen(old);
                let (_, new) = seen(new);
                let known = self.objects.get(&name);
                if known != Some(&old) || old.uid != new.uid {
                    let known = format!("{name} was updated from {old:?}, known as {known:?}");
                    self.wrong.push(format!("{known} to {new:?}"));
                }
                if version_of(Some(&old.version)) >= version_of(Some(&new.version)) {
                    self.wrong.push(format!("{name} went back from {old:?} to {new:?}"));
                }
                self.put(name, new);
            }
            Event::Deleted { object, .. } => {
                let (name, last) = seen(object);
                if self.objects.remove(&name).is_none_or(|known| known.uid != last.uid) {
                    self.wrong.push(format!("{name} was deleted as {last:?}, but not known so"));
                }
                self.deleted.insert(last.uid);
            }
            Event::Resynced { object } | Event::Generic { object } => {
                self.wrong.push(format!("{object:?} was told without a change"));
            }
        }
    }

    fn put(&mut self, name: String, new: Seen) {
        if self.deleted.contains(&new.uid) {
            self.wrong.push(format!("{name} came back from the dead as {new:?}"));
        }
        if !self.told.insert(new.clone()) {
            self.wrong.push(format!("{name} was told twice as {new:?}"));
        }
        self.objects.insert(name, new);
    }

    /// The objects that were told as present, exist no more, and were never told as deleted.
    pub(super) fn lost_deletes(&self, truth: &Objects) -> Vec<&Seen> {
        let alive: HashSet<&str> = truth.values().map(|object| object.uid.as_str()).collect();
        let gone = |seen: &&Seen| !alive.contains(seen.uid.as_str());
        self.told.iter().filter(gone).filter(|seen| !self.deleted.contains(&seen.uid)).collect()
    }
}
