//! What columns mean, in Kubernetes' words.
//!
//! `descriptions.txt` has the words of the columns that have words of their own; those of most
//! columns are the documentation of a field, which k8s-openapi brings. They are collected when
//! the table of a kind is first asked for, and only those few are kept.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use schemars::SchemaGenerator;
use serde_json::{Map, Value};

use crate::schema::Text;

static KINDS: LazyLock<HashMap<&'static str, Kind>> =
    LazyLock::new(|| parse(include_str!("descriptions.txt")));

/// The columns of a kind.
#[derive(Default)]
struct Kind {
    /// As the table has them, by name.
    lines: Vec<(&'static str, Source)>,
    /// Their words, once they are known.
    words: OnceLock<HashMap<&'static str, Text>>,
}

/// Where the words of a column come from.
#[derive(Clone, Copy)]
enum Source {
    Words(&'static str),
    Field { r#type: &'static str, name: &'static str },
}

/// What a column of a built-in kind means; empty if nobody says.
pub(super) fn of(group: &str, kind: &str, column: &str) -> &'static str {
    let words = |key: &str| KINDS.get(key).and_then(|kind| kind.words().get(column));
    let found = words(&format!("{group}/{kind}")).or_else(|| words("*/*"));
    found.map_or("", |words| words)
}

fn parse(table: &'static str) -> HashMap<&'static str, Kind> {
    let mut kinds = HashMap::<_, Kind>::new();
    let mut current = "";
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix("  ") {
            Some(column) => kinds.entry(current).or_default().lines.extend(source(column)),
            None => current = line,
        }
    }
    kinds
}

/// `Status = The status of the node` or `Version < NodeSystemInfo.kubeletVersion`.
fn source(line: &'static str) -> Option<(&'static str, Source)> {
    if let Some((column, field)) = line.split_once(" < ") {
        let (r#type, name) = field.split_once('.')?;
        return Some((column, Source::Field { r#type, name }));
    }
    let (column, words) = line.split_once(" =")?;
    Some((column, Source::Words(words.trim_start())))
}

impl Kind {
    fn words(&self) -> &HashMap<&'static str, Text> {
        self.words.get_or_init(|| {
            let documentation = self.documentation();
            let words = |source: Source| match source {
                Source::Words(words) if words.contains('\\') => words.replace("\\n", "\n").into(),
                Source::Words(words) => words.into(),
                Source::Field { r#type, name } => {
                    documented(&documentation, r#type, name).to_owned().into()
                }
            };
            self.lines.iter().map(|(column, source)| (*column, words(*source))).collect()
        })
    }

    /// The types whose fields the columns show, with all that they contain.
    fn documentation(&self) -> Map<String, Value> {
        let mut generator = SchemaGenerator::default();
        for (_, source) in &self.lines {
            if let Source::Field { r#type, .. } = source {
                ask(&mut generator, r#type);
            }
        }
        generator.take_definitions(true)
    }
}

fn documented<'a>(types: &'a Map<String, Value>, r#type: &str, field: &str) -> &'a str {
    let of_type = |name: &str| name.rsplit('.').next() == Some(r#type);
    let found = types.iter().find(|(name, _)| of_type(name));
    found.and_then(|(_, t)| t["properties"][field]["description"].as_str()).unwrap_or_default()
}

/// Asks a generator for a type of `k8s_openapi::api` by its name.
macro_rules! types {
    ($( $group:ident $version:ident { $($type:ident)* } )*) => {
        fn ask(generator: &mut SchemaGenerator, name: &str) {
            match name {
                "ObjectMeta" => { generator.subschema_for::<meta::ObjectMeta>(); }
                $( $( stringify!($type) => {
                    generator.subschema_for::<k8s_openapi::api::$group::$version::$type>();
                } )* )*
                _ => {}
            }
        }
    };
}

types! {
    apiserverinternal v1alpha1 { StorageVersionStatus }
    apps v1 {
        ControllerRevision DaemonSetSpec DaemonSetStatus DeploymentSpec DeploymentStatus
        ReplicaSetSpec ReplicaSetStatus
    }
    autoscaling v1 { ScaleSpec ScaleStatus }
    autoscaling v2 { HorizontalPodAutoscalerSpec HorizontalPodAutoscalerStatus }
    batch v1 { CronJobSpec CronJobStatus JobSpec JobStatus }
    certificates v1 { CertificateSigningRequestSpec }
    coordination v1 { LeaseSpec }
    core v1 {
        ConfigMap Endpoints Event NodeStatus NodeSystemInfo ObjectReference
        PersistentVolumeClaimSpec PersistentVolumeClaimStatus PersistentVolumeSpec
        PersistentVolumeStatus PodSpec PodStatus ReplicationControllerSpec
        ReplicationControllerStatus Secret ServiceSpec
    }
    discovery v1 { EndpointSlice }
    flowcontrol v1 {
        FlowSchemaSpec LimitedPriorityLevelConfiguration PriorityLevelConfigurationReference
        PriorityLevelConfigurationSpec QueuingConfiguration
    }
    networking v1 { IPAddressSpec NetworkPolicySpec ServiceCIDRSpec }
    resource v1 { DeviceTaint ResourcePool ResourceSliceSpec }
    scheduling v1 { PriorityClass }
    storage v1 {
        CSIDriverSpec StorageClass VolumeAttachmentSource VolumeAttachmentSpec
        VolumeAttachmentStatus VolumeAttributesClass
    }
}
