//! What the files of a directory say.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Toleration, Volume, VolumeProjection};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use steersman_rules::kinds::{qos_class, rules_of};

use super::{HASH, SEEN, SOURCE};
use crate::objects::References;

/// How many digits the hash of a static Pod has.
const DIGITS: usize = 32;

/// A directory of manifests.
#[derive(Debug)]
pub(crate) struct Source {
    directory: PathBuf,
    node: String,
    /// What was read, by file.
    read: HashMap<PathBuf, File>,
}

/// A file as it was read last.
#[derive(Debug)]
struct File {
    changed: Option<SystemTime>,
    length: u64,
    pod: Option<Pod>,
}

impl Source {
    pub(crate) fn new(directory: PathBuf, node: &str) -> Self {
        Self { directory, node: node.to_owned(), read: HashMap::new() }
    }

    /// The Pods of all files now, by uid. Files that have not changed are not read again; one that
    /// cannot be understood any more is told of, and counts as gone.
    pub(crate) fn pods(&mut self, now: Timestamp) -> io::Result<BTreeMap<String, Pod>> {
        let files = files(&self.directory)?;
        self.read.retain(|path, _| files.iter().any(|(known, ..)| known == path));
        for (path, changed, length) in files {
            let known = self.read.get(&path);
            if known.is_some_and(|file| file.changed == changed && file.length == length) {
                continue;
            }
            let pod = fs::read_to_string(&path).map_err(|error| error.to_string());
            let pod = pod.and_then(|text| decode(&text, &path, &self.node, now));
            let pod = pod.map_err(|why| {
                tracing::error!(file = %path.display(), why, "cannot read a static Pod");
            });
            self.read.insert(path, File { changed, length, pod: pod.ok() });
        }
        let pods = self.read.values().filter_map(|file| file.pod.clone());
        Ok(pods.filter_map(|pod| Some((pod.metadata.uid.clone()?, pod))).collect())
    }
}

/// The files of a directory with when they changed and how long they are. A directory that is not
/// there has none, and what begins with a dot is somebody else's.
fn files(directory: &Path) -> io::Result<Vec<(PathBuf, Option<SystemTime>, u64)>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if metadata.is_file() && !hidden {
            files.push((path, metadata.modified().ok(), metadata.len()));
        }
    }
    Ok(files)
}

/// The Pod of a file, with what a kubelet adds.
fn decode(text: &str, path: &Path, node: &str, now: Timestamp) -> Result<Pod, String> {
    let mut document: Value =
        serde_saphyr::from_str(text).map_err(|error| format!("invalid pod: {error}"))?;
    if document["kind"] != "Pod" || document["apiVersion"] != "v1" {
        return Err("invalid pod: it is no Pod of v1".to_owned());
    }
    let rules = rules_of("", "Pod");
    rules.ok_or("no rules for Pods")?.fill_in(&mut document);
    // Nobody else says how well it is treated when there is not enough.
    document["status"] = json!({"qosClass": qos_class(&document["spec"])});
    let pod = serde_json::from_value(document).map_err(|error| format!("invalid pod: {error}"))?;
    let pod = complete(pod, path, node, now);
    refuse(&pod).map_or(Ok(pod), Err)
}

/// Adds what only the node knows: who runs it, and by what it is known.
fn complete(mut pod: Pod, path: &Path, node: &str, now: Timestamp) -> Pod {
    let meta = &mut pod.metadata;
    let spec = pod.spec.get_or_insert_default();
    if meta.uid.as_ref().is_none_or(String::is_empty) {
        let said = serde_json::to_vec(&(&meta, &spec)).unwrap_or_default();
        let told = [node.as_bytes(), path.as_os_str().as_encoded_bytes(), &said].concat();
        let hash = digest(&SHA256, &told);
        let text: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        meta.uid = Some(text[..DIGITS].to_owned());
    }
    let hash = meta.uid.clone().unwrap_or_default();
    meta.name = Some(format!("{}-{}", meta.name.clone().unwrap_or_default(), node.to_lowercase()));
    meta.namespace.get_or_insert_with(|| "default".into());
    let annotations = meta.annotations.get_or_insert_default();
    annotations.insert(SOURCE.into(), "file".into());
    annotations.insert(SEEN.into(), now.to_string());
    annotations.insert(HASH.into(), hash);
    spec.node_name = Some(node.to_owned());
    // Nothing that happens to the node drives it away.
    let everything = Toleration {
        operator: Some("Exists".into()),
        effect: Some("NoExecute".into()),
        ..Toleration::default()
    };
    let tolerations = spec.tolerations.get_or_insert_default();
    if !tolerations.contains(&everything) {
        tolerations.push(everything);
    }
    pod
}

/// Why a static Pod is not run: it may not depend on what the API server has.
fn refuse(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    if spec.containers.is_empty() {
        return Some("invalid pod: it has no containers".to_owned());
    }
    let References { config_maps, secrets } = References::of(pod);
    let pulls = spec.image_pull_secrets.iter().flatten().any(|secret| !secret.name.is_empty());
    let account = spec.service_account_name.as_ref().is_some_and(|name| !name.is_empty());
    let claims = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
    let of_spec = [
        (account, "serviceaccounts"),
        (!secrets.is_empty() || pulls, "secrets"),
        (!config_maps.is_empty(), "configmaps"),
        (claims, "resourceclaims"),
    ];
    let of_spec = of_spec.into_iter().find_map(|(found, what)| found.then_some(what));
    let what = of_spec.or_else(|| spec.volumes.iter().flatten().find_map(of_volume))?;
    Some(format!("static pods may not reference {what}"))
}

/// What of the API server a volume is made of, apart from ConfigMaps and Secrets.
fn of_volume(volume: &Volume) -> Option<&'static str> {
    let of_source = |source: &VolumeProjection| {
        let all = [
            (source.service_account_token.is_some(), "serviceaccounts (via projected volumes)"),
            (source.cluster_trust_bundle.is_some(), "clustertrustbundles"),
            (source.pod_certificate.is_some(), "podcertificates"),
        ];
        all.into_iter().find_map(|(found, what)| found.then_some(what))
    };
    let all = [
        (volume.csi.is_some(), "csidrivers (via CSI volumes)"),
        (volume.glusterfs.is_some(), "endpoints (via glusterFS volumes)"),
        (volume.persistent_volume_claim.is_some(), "persistentvolumeclaims"),
        (volume.ephemeral.is_some(), "persistentvolumeclaims (via ephemeral volumes)"),
        (volume.azure_file.is_some(), "secrets (via azureFile volumes)"),
    ];
    let whole = all.into_iter().find_map(|(found, what)| found.then_some(what));
    let sources = volume.projected.as_ref().and_then(|projected| projected.sources.as_ref());
    whole.or_else(|| sources.into_iter().flatten().find_map(of_source))
}
