//! `Priority` gives every pod the priority of its class, or of the class that is the default.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;

use super::fields::{set, text};
use super::stored;
use crate::admission_registration::Operation;
use crate::state::Server;
use crate::state::plugins::{Attributes, Plugin};
use crate::status::Result;

const FOLDER: &str = "/registry/priorityclasses/";
const GROUP: &str = "scheduling.k8s.io";

/// Resolves priorities, and lets only one class be the default.
pub(super) struct Priority;

/// A priority class, as far as pods are concerned.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Class {
    metadata: Metadata,
    #[serde(default)]
    value: i64,
    #[serde(default)]
    global_default: bool,
    #[serde(default)]
    preemption_policy: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
}

impl Class {
    /// What pods have where nobody says anything.
    fn none() -> Self {
        Self {
            metadata: Metadata { name: String::new() },
            value: 0,
            global_default: false,
            preemption_policy: Some("PreemptLowerPriority".to_owned()),
        }
    }
}

impl Plugin for Priority {
    fn handles(&self, write: &Attributes<'_>) -> bool {
        write.writes("", "pods") || write.writes(GROUP, "priorityclasses")
    }

    fn admit<'a>(
        &'a self,
        write: Attributes<'a>,
        new: &'a mut Value,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            if !write.resource.is("", "pods") {
                return Ok(false);
            }
            match old.filter(|_| write.operation == Operation::Update) {
                Some(old) => Ok(keep(&old["spec"], &mut new["spec"])),
                None => prioritise(&write, new).await,
            }
        })
    }

    fn validate<'a>(
        &'a self,
        write: Attributes<'a>,
        new: Option<&'a Value>,
        _old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            // Pods are never the default of anything.
            let Some(class) = new.filter(|new| new["globalDefault"] == true) else {
                return Ok(());
            };
            let Some(default) = default_class(write.server).await? else { return Ok(()) };
            let default = default.metadata.name;
            if write.operation == Operation::Update && default == write.place.name {
                return Ok(());
            }
            let why = format!(
                "PriorityClass {default} is already marked as default. Only one default can exist"
            );
            Err(write.forbidden(class, &why))
        })
    }
}

/// Whoever replaces a pod need not repeat its priority.
fn keep(old: &Value, new: &mut Value) -> bool {
    let mut changed = false;
    for field in ["priority", "preemptionPolicy"] {
        if new[field].is_null() && !old[field].is_null() {
            changed |= set(new, field, old[field].clone());
        }
    }
    changed
}

async fn prioritise(write: &Attributes<'_>, pod: &mut Value) -> Result<bool> {
    let class = class_of(write, pod).await?;
    let (priority, given) = (class.value, pod["spec"]["priority"].as_i64());
    if let Some(given) = given.filter(|given| *given != priority) {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {priority} from the given PriorityClass name"
        );
        return Err(write.forbidden(pod, &why));
    }
    let policy = class.preemption_policy;
    let given = text(&pod["spec"]["preemptionPolicy"]);
    if let Some(policy) = policy.as_ref().filter(|policy| !given.is_empty() && given != **policy) {
        let why = format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        );
        return Err(write.forbidden(pod, &why));
    }
    let spec = &mut pod["spec"];
    let mut changed = set(spec, "priority", priority);
    if let Some(policy) = policy {
        changed |= set(spec, "preemptionPolicy", policy);
    }
    if !class.metadata.name.is_empty() {
        changed |= set(spec, "priorityClassName", class.metadata.name);
    }
    Ok(changed)
}

/// The class of a pod: the one that it names, or the default.
async fn class_of(write: &Attributes<'_>, pod: &Value) -> Result<Class> {
    let name = text(&pod["spec"]["priorityClassName"]);
    if name.is_empty() {
        return Ok(default_class(write.server).await?.unwrap_or_else(Class::none));
    }
    let class = stored::known(write.server, &format!("{FOLDER}{name}")).await?;
    class.ok_or_else(|| {
        write.forbidden(pod, &format!("no PriorityClass with name {name} was found"))
    })
}

/// The class of pods that name none; of several, which two writers at once can make, the lowest.
async fn default_class(server: &Server) -> Result<Option<Class>> {
    let classes: Vec<Class> = stored::all(server, FOLDER).await?;
    Ok(classes.into_iter().filter(|class| class.global_default).min_by_key(|class| class.value))
}
