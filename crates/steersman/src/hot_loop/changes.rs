//! What the writes of a suspected key keep changing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Objects that are compared per key, and paths that are named per object.
const OBJECTS_KEPT: usize = 4;
const PATHS_KEPT: usize = 8;

/// Fields of the metadata that every write changes, or the server sets.
const BOOKKEEPING: [&str; 5] =
    ["resourceVersion", "managedFields", "generation", "creationTimestamp", "uid"];

/// The objects that a key wrote, as they last were, and what changed in them.
#[derive(Default)]
pub(super) struct Samples(BTreeMap<String, Sample>);

struct Sample {
    last: Value,
    paths: BTreeSet<String>,
}

impl Samples {
    /// Compares a written object with how it was written before.
    pub(super) fn add(&mut self, object: String, content: Value) {
        if let Some(sample) = self.0.get_mut(&object) {
            if sample.last["metadata"]["uid"] != content["metadata"]["uid"] {
                sample.note("it is created anew".into());
            }
            compare(&sample.last, &content, &mut String::new(), &mut sample.paths);
            sample.last = content;
        } else if self.0.len() < OBJECTS_KEPT {
            self.0.insert(object, Sample { last: content, paths: BTreeSet::new() });
        }
    }

    /// What changed, as `Secret default/a: data.n`.
    pub(super) fn changing(self) -> Vec<String> {
        let changing = self.0.into_iter().filter(|(_, sample)| !sample.paths.is_empty());
        let texts = changing.map(|(object, sample)| {
            let paths: Vec<String> = sample.paths.into_iter().collect();
            format!("{object}: {}", paths.join(", "))
        });
        texts.collect()
    }
}

impl Sample {
    fn note(&mut self, what: String) {
        if self.paths.len() < PATHS_KEPT {
            self.paths.insert(what);
        }
    }
}

/// Collects the paths at which two documents differ.
fn compare(old: &Value, new: &Value, path: &mut String, paths: &mut BTreeSet<String>) {
    if paths.len() >= PATHS_KEPT || old == new {
        return;
    }
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            let in_metadata = path == "metadata";
            for name in names {
                if in_metadata && BOOKKEEPING.contains(&name.as_str()) {
                    continue;
                }
                let [old, new] = [old, new].map(|fields| fields.get(name).unwrap_or(&Value::Null));
                let separator = if path.is_empty() { "" } else { "." };
                descend(&format!("{separator}{name}"), old, new, path, paths);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (place, (old, new)) in old.iter().zip(new).enumerate() {
                descend(&format!("[{place}]"), old, new, path, paths);
            }
        }
        _ => _ = paths.insert(path.clone()),
    }
}

fn descend(step: &str, old: &Value, new: &Value, path: &mut String, paths: &mut BTreeSet<String>) {
    let above = path.len();
    path.push_str(step);
    compare(old, new, path, paths);
    path.truncate(above);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_fields_that_change_are_named() {
        let mut samples = Samples::default();
        for count in 0..3 {
            let object = json!({"metadata": {"name": "a", "resourceVersion": count},
                "spec": {"same": 1}, "status": {"checked": count, "conditions": [
                    {"type": "Ready", "at": count}]}});
            samples.add("Pod a".into(), object);
            samples.add("Pod b".into(), json!({"metadata": {"resourceVersion": count}}));
        }
        assert_eq!(samples.changing(), ["Pod a: status.checked, status.conditions[0].at"]);
    }

    #[test]
    fn an_object_that_is_made_anew_is_told_and_the_list_is_bounded() {
        let mut samples = Samples::default();
        for count in 0..2 {
            let fields: serde_json::Map<_, _> =
                (0..50).map(|field| (format!("f{field}"), json!(count))).collect();
            samples.add("Pod a".into(), json!({"metadata": {"uid": count}, "data": fields}));
        }
        let changing = samples.changing();
        assert!(changing[0].contains("it is created anew"), "{changing:?}");
        assert_eq!(changing[0].split(", ").count(), PATHS_KEPT);
    }
}
