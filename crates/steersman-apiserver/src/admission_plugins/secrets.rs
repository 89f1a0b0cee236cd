//! The secrets that a pod refers to, and whether its account lets it.

use serde_json::Value;

use super::account::{Account, Reference};
use super::fields::{items, text};

/// The sources of volumes that may name a secret, and where.
const SOURCES: &[(&str, &str)] = &[
    ("azureFile", "/secretName"),
    ("cephfs", "/secretRef/name"),
    ("cinder", "/secretRef/name"),
    ("csi", "/nodePublishSecretRef/name"),
    ("flexVolume", "/secretRef/name"),
    ("iscsi", "/secretRef/name"),
    ("rbd", "/secretRef/name"),
    ("scaleIO", "/secretRef/name"),
    ("secret", "/secretName"),
    ("storageos", "/secretRef/name"),
];

/// Whether a pod refers to any secret.
pub(super) fn are_referenced(spec: &Value) -> bool {
    let pull = items(&spec["imagePullSecrets"]).iter().map(|secret| text(&secret["name"]));
    let volumes = items(&spec["volumes"]);
    let of_volumes = volumes.iter().flat_map(|volume| {
        SOURCES.iter().filter_map(|(source, at)| volume[*source].pointer(at)).map(text)
    });
    let projected = volumes.iter().flat_map(|volume| items(&volume["projected"]["sources"]));
    let projected = projected.map(|source| text(&source["secret"]["name"]));
    let lists = ["initContainers", "containers", "ephemeralContainers"];
    let containers = lists.into_iter().flat_map(|list| items(&spec[list]));
    let of_containers = containers.flat_map(|container| {
        let from = items(&container["envFrom"]).iter().map(|env| text(&env["secretRef"]["name"]));
        let keys = items(&container["env"]).iter();
        from.chain(keys.map(|env| text(&env["valueFrom"]["secretKeyRef"]["name"])))
    });
    pull.chain(of_volumes).chain(projected).chain(of_containers).any(|name| !name.is_empty())
}

/// Refuses secrets that the account of a pod does not name.
pub(super) fn limit(account: &Account, spec: &Value) -> Result<(), String> {
    for volume in items(&spec["volumes"]) {
        let name = text(&volume["secret"]["secretName"]);
        if volume["secret"].is_object() && !is_among(&account.secrets, name) {
            return Err(not_allowed(&format!("volume with secret.secretName=\"{name}\""), account));
        }
    }
    limit_containers(account, "init container", &spec["initContainers"])?;
    limit_containers(account, "container", &spec["containers"])?;
    for (n, secret) in items(&spec["imagePullSecrets"]).iter().enumerate() {
        let name = text(&secret["name"]);
        if !is_among(&account.image_pull_secrets, name) {
            let account = &account.metadata.name;
            return Err(format!(
                "imagePullSecrets[{n}].name=\"{name}\" is not allowed because service account \
                 {account} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// Refuses ephemeral containers with secrets that the account of their pod does not name.
pub(super) fn limit_ephemeral(account: &Account, spec: &Value) -> Result<(), String> {
    limit_containers(account, "ephemeral container", &spec["ephemeralContainers"])
}

fn limit_containers(account: &Account, sort: &str, containers: &Value) -> Result<(), String> {
    for container in items(containers) {
        let of = format!("{sort} {}", text(&container["name"]));
        for env in items(&container["env"]) {
            let secret = &env["valueFrom"]["secretKeyRef"];
            let name = text(&secret["name"]);
            if secret.is_object() && !is_among(&account.secrets, name) {
                let variable = text(&env["name"]);
                let what = format!("{of} with envVar {variable} referencing secret.secretName");
                return Err(not_allowed(&format!("{what}=\"{name}\""), account));
            }
        }
        for env in items(&container["envFrom"]) {
            let secret = &env["secretRef"];
            let name = text(&secret["name"]);
            if secret.is_object() && !is_among(&account.secrets, name) {
                let what = format!("{of} with envFrom referencing secret.secretName=\"{name}\"");
                return Err(not_allowed(&what, account));
            }
        }
    }
    Ok(())
}

fn is_among(references: &[Reference], name: &str) -> bool {
    references.iter().any(|reference| reference.name == name)
}

fn not_allowed(what: &str, account: &Account) -> String {
    let account = &account.metadata.name;
    format!(
        "{what} is not allowed because service account {account} does not reference that secret"
    )
}
