//! What the query of a request may say, by what it does.
//!
//! kubectl reads these lists to learn what the server can do: `fieldValidation` and `dryRun`
//! on PATCH mean that it need not validate by itself. What a deletion understands is described in
//! Kubernetes' words, which its options have; the others have none here but ours.

use serde_json::{Value, json};
use steersman_rules::resource::Verb;

use super::descriptions::Common;
use super::{Dialect, names};

struct Parameter {
    name: &'static str,
    ty: &'static str,
    text: &'static str,
}

macro_rules! parameters {
    ($( $name:ident $ty:ident $text:literal )*) => {
        &[ $( Parameter { name: stringify!($name), ty: stringify!($ty), text: $text } ),* ]
    };
}

#[rustfmt::skip]
const ALL: &[Parameter] = parameters! {
    allowWatchBookmarks boolean "Whether a watch also reports how far it has come."
    continue string "Where a list that was cut by a limit goes on, as the answer said."
    dryRun string "`All` does everything but to store the result."
    fieldManager string "Who makes the change; the fields that change belong to that name."
    fieldSelector string "Only objects with these fields."
    fieldValidation string "What becomes of unknown and duplicate fields: Ignore, Warn or Strict."
    force boolean "Whether an apply takes over fields that belong to others."
    gracePeriodSeconds integer "How long the object may take to end; 0 ends it at once."
    ignoreStoreReadErrorWithClusterBreakingPotential boolean "Whether an object that cannot be read is removed all the same."
    labelSelector string "Only objects with these labels."
    limit integer "How many objects one answer may have."
    orphanDependents boolean "Whether dependents stay. Deprecated: see propagationPolicy."
    propagationPolicy string "What becomes of dependents: Orphan, Background or Foreground."
    resourceVersion string "The state of which moment is wanted."
    resourceVersionMatch string "How resourceVersion is meant: Exact or NotOlderThan."
    sendInitialEvents boolean "Whether a watch begins with the objects that exist."
    shardSelector string "Only objects in some ranges of hashes; an alpha feature, which is off."
    timeoutSeconds integer "How long the call may take."
    watch boolean "Whether changes follow, instead of a list."
};

const LIST: &[&str] = &[
    "allowWatchBookmarks",
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
    "watch",
];
const DELETE: &[&str] = &[
    "dryRun",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "orphanDependents",
    "propagationPolicy",
];
const DELETE_COLLECTION: &[&str] = &[
    "continue",
    "dryRun",
    "fieldSelector",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "labelSelector",
    "limit",
    "orphanDependents",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "shardSelector",
    "timeoutSeconds",
];
const WRITE: &[&str] = &["dryRun", "fieldManager", "fieldValidation"];
const PATCH: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force"];

/// Old versions of kubectl look for these in operations and do not follow references.
const NEVER_SHARED: [&str; 2] = ["dryRun", "fieldValidation"];

/// What an operation's query may say. Of custom resources Kubernetes says something else in
/// places.
pub(super) fn of(dialect: Dialect, verb: Verb, custom: bool) -> Vec<Value> {
    let names: &[&str] = match verb {
        Verb::Get if custom => &["resourceVersion"],
        Verb::Get => &[],
        Verb::DeleteCollection if custom => LIST,
        Verb::List | Verb::Watch => LIST,
        Verb::Create | Verb::Update => WRITE,
        Verb::Patch => PATCH,
        Verb::Delete => DELETE,
        Verb::DeleteCollection => DELETE_COLLECTION,
    };
    let known = ALL.iter().filter(|parameter| names.contains(&parameter.name));
    known.map(|parameter| parameter.value(dialect)).collect()
}

/// What all operations of a path understand: who or what is meant, and `pretty`.
pub(super) fn of_path(dialect: Dialect, path: &str, kind: &str) -> Vec<Value> {
    let mut parameters = Vec::new();
    if path.contains("{name}") {
        parameters.push(path_parameter(dialect, "name", &format!("name of the {kind}")));
    }
    if path.contains("{namespace}") {
        parameters.push(match dialect {
            Dialect::V2 => shared("namespace"),
            Dialect::V3 => path_parameter(dialect, "namespace", NAMESPACE),
        });
    }
    parameters.push(match dialect {
        Dialect::V2 => shared("pretty"),
        Dialect::V3 => PRETTY.inline(dialect),
    });
    parameters
}

/// The parameters that operations of a version 2 document refer to.
pub(super) fn shared_definitions() -> Value {
    let queries = ALL.iter().chain([&PRETTY]);
    let queries = queries.filter(|parameter| !NEVER_SHARED.contains(&parameter.name));
    let queries =
        queries.map(|parameter| (parameter.name.to_owned(), parameter.inline(Dialect::V2)));
    let namespace = path_parameter(Dialect::V2, "namespace", NAMESPACE);
    queries.chain([("namespace".to_owned(), namespace)]).collect()
}

/// The body of a request in a version 2 document, where it is a parameter.
pub(super) fn body(definition: &str, required: bool) -> Value {
    let reference = names::reference(Dialect::V2, definition);
    let mut body = json!({"in": "body", "name": "body", "schema": {"$ref": reference}});
    if required {
        body["required"] = true.into();
    }
    body
}

const NAMESPACE: &str = "the namespace that the object is in";
const PRETTY: Parameter = Parameter {
    name: "pretty",
    ty: "string",
    text: "Whether the answer is laid out for people to read.",
};

impl Parameter {
    fn value(&self, dialect: Dialect) -> Value {
        match dialect {
            Dialect::V2 if !NEVER_SHARED.contains(&self.name) => shared(self.name),
            _ => self.inline(dialect),
        }
    }

    fn inline(&self, dialect: Dialect) -> Value {
        let Self { name, ty, text } = self;
        // Where Kubernetes' own words are at hand, those.
        let text = match Common::texts().of_deletion(name) {
            "" => *text,
            text => text,
        };
        match dialect {
            Dialect::V2 => json!({
                "in": "query", "name": name, "description": text, "type": ty, "uniqueItems": true,
            }),
            Dialect::V3 => json!({
                "in": "query", "name": name, "description": text,
                "schema": {"type": ty, "uniqueItems": true},
            }),
        }
    }
}

fn shared(name: &str) -> Value {
    json!({"$ref": format!("#/parameters/{name}")})
}

fn path_parameter(dialect: Dialect, name: &str, text: &str) -> Value {
    let mut parameter = json!({
        "in": "path", "name": name, "description": text, "required": true,
    });
    match dialect {
        Dialect::V2 => {
            parameter["type"] = "string".into();
            parameter["uniqueItems"] = true.into();
        }
        Dialect::V3 => parameter["schema"] = json!({"type": "string", "uniqueItems": true}),
    }
    parameter
}
