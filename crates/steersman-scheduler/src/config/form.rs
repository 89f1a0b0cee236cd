//! Which fields a configuration may have, and the arguments of plug-ins in it: a field that nobody reads
//! is a mistake.

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

const CHOICES: &Form = &List(&Fields(&[("name", LEAF), ("weight", LEAF)]));
const PLUGIN_SET: &Form = &Fields(&[("enabled", CHOICES), ("disabled", CHOICES)]);
const PROFILES: &Form = &List(&Fields(&[
    ("schedulerName", LEAF),
    ("percentageOfNodesToScore", LEAF),
    (
        "plugins",
        &Fields(&[
            ("multiPoint", PLUGIN_SET),
            ("preEnqueue", PLUGIN_SET),
            ("queueSort", PLUGIN_SET),
            ("preFilter", PLUGIN_SET),
            ("filter", PLUGIN_SET),
            ("postFilter", PLUGIN_SET),
            ("preScore", PLUGIN_SET),
            ("score", PLUGIN_SET),
            ("reserve", PLUGIN_SET),
            ("permit", PLUGIN_SET),
            ("preBind", PLUGIN_SET),
            ("bind", PLUGIN_SET),
            ("postBind", PLUGIN_SET),
            ("placementGenerate", PLUGIN_SET),
            ("placementScore", PLUGIN_SET),
        ]),
    ),
    ("pluginConfig", &List(&Fields(&[("name", LEAF), ("args", LEAF)]))),
]));
const EXTENDERS: &Form = &List(&Fields(&[
    ("urlPrefix", LEAF),
    ("filterVerb", LEAF),
    ("preemptVerb", LEAF),
    ("prioritizeVerb", LEAF),
    ("weight", LEAF),
    ("bindVerb", LEAF),
    ("enableHTTPS", LEAF),
    (
        "tlsConfig",
        &Fields(&[
            ("insecure", LEAF),
            ("serverName", LEAF),
            ("certFile", LEAF),
            ("keyFile", LEAF),
            ("caFile", LEAF),
            ("certData", LEAF),
            ("keyData", LEAF),
            ("caData", LEAF),
        ]),
    ),
    ("httpTimeout", LEAF),
    ("nodeCacheCapable", LEAF),
    ("managedResources", &List(&Fields(&[("name", LEAF), ("ignoredByScheduler", LEAF)]))),
    ("ignorable", LEAF),
]));
const LEADER_ELECTION: &Form = &Fields(&[
    ("leaderElect", LEAF),
    ("leaseDuration", LEAF),
    ("renewDeadline", LEAF),
    ("retryPeriod", LEAF),
    ("resourceLock", LEAF),
    ("resourceName", LEAF),
    ("resourceNamespace", LEAF),
]);
const CLIENT_CONNECTION: &Form = &Fields(&[
    ("kubeconfig", LEAF),
    ("acceptContentTypes", LEAF),
    ("contentType", LEAF),
    ("qps", LEAF),
    ("burst", LEAF),
]);

/// The fields of a configuration.
const DOCUMENT: &[(&str, &Form)] = &[
    ("parallelism", LEAF),
    ("leaderElection", LEADER_ELECTION),
    ("clientConnection", CLIENT_CONNECTION),
    ("enableProfiling", LEAF),
    ("enableContentionProfiling", LEAF),
    ("healthZBindAddress", LEAF),
    ("metricsBindAddress", LEAF),
    ("percentageOfNodesToScore", LEAF),
    ("podInitialBackoffSeconds", LEAF),
    ("podMaxBackoffSeconds", LEAF),
    ("profiles", PROFILES),
    ("extenders", EXTENDERS),
    ("delayCacheUntilActive", LEAF),
];

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

/// Whether a document with these profiles can be read to the last field.
pub(super) fn check(
    document: &Value,
    profiles: &[ProfileConfiguration],
) -> Result<(), ConfigurationError> {
    let mut unknown = unknown_fields(document, DOCUMENT);
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

fn unknown_fields(document: &Value, fields: &[(&str, &Form)]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in document.as_object().into_iter().flatten() {
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
