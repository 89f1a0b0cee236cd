//! Reading policies and bindings, of which what has not changed stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use steersman_store::{Entry, RangeRequest, Revision, Store};

use super::hook::{Binding, Hook, Registered};
use super::index::Index;
use super::{GROUP, Kinds};
use crate::document::Stored;
use crate::registry::Table;
use crate::status::{Result, Status};

/// What was made of the objects of a kind, by their keys, and of which revision of them.
#[derive(Debug)]
struct Known<T>(BTreeMap<String, (Revision, Arc<T>)>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

/// The policies of one sort.
#[derive(Debug, Default)]
pub(super) struct Side {
    policies: Known<Registered>,
    bindings: Known<Binding>,
    /// The policies that a binding names, by name.
    pub(super) hooks: Vec<Hook>,
    pub(super) index: Index,
}

impl Side {
    /// What the store holds at a revision, or now.
    pub(super) async fn refreshed(
        &self,
        store: &dyn Store,
        table: &Table,
        kinds: Kinds,
        at: Option<Revision>,
    ) -> Result<(Self, Revision)> {
        let (policies, at) = read(store, table, kinds.policies, at).await?;
        let (bindings, revision) = read(store, table, kinds.bindings, Some(at)).await?;
        let policies = self.policies.refreshed(&policies, |d| Registered::of(d, kinds.compile))?;
        let bindings = self.bindings.refreshed(&bindings, Binding::of)?;
        Ok((Self::bound(policies, bindings), revision))
    }

    /// What these documents say.
    #[cfg(test)]
    pub(super) fn of(policies: &[Value], bindings: &[Value], kinds: Kinds) -> Self {
        fn known<T>(documents: &[Value], make: impl Fn(&Value) -> T) -> Known<T> {
            let named = documents.iter().enumerate();
            Known(
                named.map(|(n, d)| (format!("{n:09}"), (Revision(1), Arc::new(make(d))))).collect(),
            )
        }
        let policies = known(policies, |document| Registered::of(document, kinds.compile));
        Self::bound(policies, known(bindings, Binding::of))
    }

    fn bound(policies: Known<Registered>, bindings: Known<Binding>) -> Self {
        let mut by_policy: BTreeMap<&str, Vec<Arc<Binding>>> = BTreeMap::new();
        for (_, binding) in bindings.0.values() {
            by_policy.entry(&binding.policy).or_default().push(Arc::clone(binding));
        }
        let hooks = policies.0.values().filter_map(|(_, policy)| {
            let bindings = by_policy.remove(policy.policy.name.as_str())?;
            Some(Hook { policy: Arc::clone(policy), bindings })
        });
        let hooks: Vec<Hook> = hooks.collect();
        let index = Index::of(&hooks);
        Self { policies, bindings, hooks, index }
    }
}

impl<T> Known<T> {
    fn refreshed(&self, entries: &[Entry], make: impl Fn(&Value) -> T) -> Result<Self> {
        let mut refreshed = BTreeMap::new();
        for entry in entries {
            let key = entry.key.to_string();
            let same = self.0.get(&key).filter(|(revision, _)| *revision == entry.modified);
            let known = match same {
                Some((_, known)) => Arc::clone(known),
                None => Arc::new(make(&Stored::from(entry).decode(&format!("{GROUP}/v1"))?)),
            };
            refreshed.insert(key, (entry.modified, known));
        }
        Ok(Self(refreshed))
    }
}

async fn read(
    store: &dyn Store,
    table: &Table,
    plural: &str,
    at: Option<Revision>,
) -> Result<(Vec<Entry>, Revision)> {
    let resource = table.get(GROUP, "v1", plural).ok_or_else(Status::no_such_resource)?;
    let prefix = resource.prefix("");
    let state = store.range(RangeRequest { prefix, at, ..RangeRequest::default() }).await?;
    Ok((state.entries, state.revision))
}
