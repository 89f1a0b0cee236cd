//! Which fields the arguments of plug-ins may have: a field that nobody reads is a mistake.

use serde_json::Value;

use super::args::try_read;
use super::{API_VERSION, ConfigurationError, ProfileConfiguration};

/// What a document may hold.
enum Form {
    /// What is read there knows itself what it is.
    Leaf,
    List(&'static Form),
    Fields(&'static [(&'static str, &'static Form)]),
}

use Form::{Fields, Leaf, List};

const LEAF: &Form = &Leaf;
const POINTS: &Form = &List(&Fields(&[("utilization", LEAF), ("score", LEAF)]));
const RESOURCES: &Form = &List(&Fields(&[("name", LEAF), ("weight", LEAF)]));
const REQUIREMENTS: &Form = &List(&Fields(&[("key", LEAF), ("operator", LEAF), ("values", LEAF)]));
const TERM: &Form = &Fields(&[("matchExpressions", REQUIREMENTS), ("matchFields", REQUIREMENTS)]);
const LABEL_SELECTOR: &Form = &Fields(&[("matchLabels", LEAF), ("matchExpressions", REQUIREMENTS)]);
const NODE_AFFINITY: &Form = &Fields(&[
    (
        "requiredDuringSchedulingIgnoredDuringExecution",
        &Fields(&[("nodeSelectorTerms", &List(TERM))]),
    ),
    (
        "preferredDuringSchedulingIgnoredDuringExecution",
        &List(&Fields(&[("weight", LEAF), ("preference", TERM)])),
    ),
]);
const CONSTRAINTS: &Form = &List(&Fields(&[
    ("maxSkew", LEAF),
    ("topologyKey", LEAF),
    ("whenUnsatisfiable", LEAF),
    ("labelSelector", LABEL_SELECTOR),
    ("minDomains", LEAF),
    ("nodeAffinityPolicy", LEAF),
    ("nodeTaintsPolicy", LEAF),
    ("matchLabelKeys", LEAF),
]));
const SCORING_STRATEGY: &Form = &Fields(&[
    ("type", LEAF),
    ("resources", RESOURCES),
    ("requestedToCapacityRatio", &Fields(&[("shape", POINTS)])),
]);

/// The fields of the arguments of each plug-in that has any.
const ARGUMENTS: [(&str, &[(&str, &Form)]); 8] = [
    (
        "DefaultPreemption",
        &[("minCandidateNodesPercentage", LEAF), ("minCandidateNodesAbsolute", LEAF)],
    ),
    ("DynamicResources", &[("filterTimeout", LEAF), ("bindingTimeout", LEAF)]),
    (
        "InterPodAffinity",
        &[("hardPodAffinityWeight", LEAF), ("ignorePreferredTermsOfExistingPods", LEAF)],
    ),
    ("NodeAffinity", &[("addedAffinity", NODE_AFFINITY)]),
    ("NodeResourcesBalancedAllocation", &[("resources", RESOURCES)]),
    (
        "NodeResourcesFit",
        &[
            ("ignoredResources", LEAF),
            ("ignoredResourceGroups", LEAF),
            ("scoringStrategy", SCORING_STRATEGY),
        ],
    ),
    ("PodTopologySpread", &[("defaultConstraints", CONSTRAINTS), ("defaultingType", LEAF)]),
    ("VolumeBinding", &[("bindTimeoutSeconds", LEAF), ("shape", POINTS)]),
];

/// Whether the arguments of all plug-ins can be read.
pub(super) fn check(profiles: &[ProfileConfiguration]) -> Result<(), ConfigurationError> {
    let mut unknown = Vec::new();
    for (number, profile) in profiles.iter().enumerate() {
        for (place, config) in profile.plugin_config.iter().enumerate() {
            let name = &config.name;
            let Some((_, fields)) = ARGUMENTS.iter().find(|(known, _)| known == name) else {
                continue; // it is no plug-in of Kubernetes', or is told nothing
            };
            let at = format!("decoding .profiles[{number}].pluginConfig[{place}]");
            kind(name, &config.args)
                .and_then(|()| try_read(name, &config.args))
                .map_err(|why| ConfigurationError::Malformed(format!("{at}: {why}")))?;
            let found = unknown_fields(&config.args, fields);
            if !found.is_empty() {
                let found = found.join(", ");
                unknown.push(format!(
                    "{at}: strict decoding error: decoding args for plugin {name}: strict decoding \
                     error: {found}"
                ));
            }
        }
    }
    match unknown.is_empty() {
        true => Ok(()),
        false => {
            let unknown = unknown.join(", ");
            Err(ConfigurationError::Malformed(format!("strict decoding error: {unknown}")))
        }
    }
}

/// Whether arguments are those of this plug-in, if they say whose they are.
fn kind(plugin: &str, args: &Value) -> Result<(), String> {
    let group = |version: &str| version.rsplit_once('/').map_or("", |(group, _)| group).to_owned();
    let expected = format!("{plugin}Args");
    let kind = args["kind"].as_str().unwrap_or(&expected);
    let ours = group(API_VERSION);
    let theirs = args["apiVersion"].as_str().map_or_else(|| ours.clone(), group);
    if kind == expected && ours == theirs {
        return Ok(());
    }
    Err(format!("args for plugin {plugin} were not of type {expected}.{ours}, got {kind}.{theirs}"))
}

fn unknown_fields(args: &Value, fields: &[(&str, &Form)]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in args.as_object().into_iter().flatten() {
        match fields.iter().find(|(known, _)| known == name) {
            Some((_, form)) => form.look(value, name, &mut found),
            None if matches!(name.as_str(), "apiVersion" | "kind") => {}
            None => found.push(format!("unknown field {name:?}")),
        }
    }
    found
}

impl Form {
    /// Notes what of a value is not known.
    fn look(&self, value: &Value, path: &str, found: &mut Vec<String>) {
        match (self, value) {
            (List(form), Value::Array(items)) => {
                for (place, item) in items.iter().enumerate() {
                    form.look(item, &format!("{path}[{place}]"), found);
                }
            }
            (Fields(fields), Value::Object(object)) => {
                for (name, value) in object {
                    let path = format!("{path}.{name}");
                    match fields.iter().find(|(known, _)| known == name) {
                        Some((_, form)) => form.look(value, &path, found),
                        None => found.push(format!("unknown field {path:?}")),
                    }
                }
            }
            _ => {}
        }
    }
}
