//! What becomes of a volume whose claim is gone.

use k8s_openapi::api::core::v1::PersistentVolume;
use steersman::volumes::{PROVISIONED_BY, annotation};

use super::provision::moved_to;

/// On a volume whose provisioner was part of Kubernetes once: the driver that took over.
const MIGRATED_TO: &str = "pv.kubernetes.io/migrated-to";

/// What becomes of a volume whose claim is gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reclaim {
    /// It stays, or whoever made it takes it away.
    Leave,
    /// It is deleted.
    Delete,
    /// What is on it is deleted, and it serves another claim.
    Recycle,
    /// It has failed for this reason, with this message.
    Fail(&'static str, String),
}

/// The volume that says which driver looks after it now, if it does not say so yet, or says so though
/// none took over from its provisioner.
pub(super) fn migrated(volume: &PersistentVolume) -> Option<PersistentVolume> {
    let driver = moved_to(annotation(&volume.metadata, PROVISIONED_BY)?);
    let said = annotation(&volume.metadata, MIGRATED_TO).filter(|said| !said.is_empty());
    if said == driver {
        return None;
    }
    let mut migrated = volume.clone();
    let annotations = migrated.metadata.annotations.get_or_insert_default();
    match driver {
        Some(driver) => annotations.insert(MIGRATED_TO.to_owned(), driver.to_owned()),
        None => annotations.remove(MIGRATED_TO),
    };
    Some(migrated)
}

/// What becomes of a volume.
pub(super) fn reclaim(volume: &PersistentVolume) -> Reclaim {
    let Some(spec) = &volume.spec else { return Reclaim::Leave };
    if annotation(&volume.metadata, MIGRATED_TO).is_some_and(|driver| !driver.is_empty()) {
        return Reclaim::Leave; // its driver takes it away
    }
    match spec.persistent_volume_reclaim_policy.as_deref() {
        Some("Retain") => Reclaim::Leave,
        Some("Delete") => match deletable(volume) {
            Ok(true) => Reclaim::Delete,
            Ok(false) => Reclaim::Leave,
            Err(why) => Reclaim::Fail("VolumeFailedDelete", why),
        },
        Some("Recycle") if spec.host_path.is_some() || spec.nfs.is_some() => Reclaim::Recycle,
        Some("Recycle") => {
            Reclaim::Fail("VolumeFailedRecycle", "No recycler plugin found for the volume!".into())
        }
        _ => Reclaim::Fail(
            "VolumeUnknownReclaimPolicy",
            "Volume has unrecognized PersistentVolumeReclaimPolicy".into(),
        ),
    }
}

/// Whether this controller deletes a volume, and not whoever made it.
fn deletable(volume: &PersistentVolume) -> Result<bool, String> {
    let by = annotation(&volume.metadata, PROVISIONED_BY).filter(|by| !by.is_empty());
    match by {
        Some(by) if !by.starts_with("kubernetes.io/") => return Ok(false),
        Some(by) if by != "kubernetes.io/host-path" => {
            return Err(format!("no volume plugin matched name: {by}"));
        }
        _ => {}
    }
    let Some(spec) = &volume.spec else { return Ok(false) };
    if spec.csi.is_some() {
        return Ok(false);
    }
    if let Some(host) = &spec.host_path {
        let is_temporary = host.path.split_once("/tmp/").is_some_and(|(_, rest)| !rest.is_empty());
        let path = &host.path;
        return match is_temporary {
            true => Ok(true),
            false => {
                Err(format!("host_path deleter only supports /tmp/.+ but received provided {path}"))
            }
        };
    }
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    Err(format!(
        "error getting deleter volume plugin for volume {name:?}: no deletable volume plugin matched"
    ))
}
