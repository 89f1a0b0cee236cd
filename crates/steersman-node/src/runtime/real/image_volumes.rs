//! Volumes that are images: pulled as those of containers are, and mounted so that they can only be
//! read.
//!
//! containerd's CRI can do that by itself from 2.1 on. Its snapshots are older than that and do the same
//! in every version, so they are asked for a view of the image's layers, which is mounted into the
//! Pod's directory like any other volume and goes with it. The directory is made before the view and
//! removed after it: whenever an agent is killed, the next one knows which views there can be.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Container, Pod, Secret};

use super::places::entries;
use super::prepare::{ImageVolume, Volumes};
use super::pulls::{self, Found, Wanted};
use super::{Shared, uid_of};
use crate::cri::CriError;
use crate::cri::wire::sandbox::PodSandboxConfig;
use crate::cri::wire::snapshot;
use crate::runtime::StartError;
use crate::volumes::{self, LinuxMounter, Mounter, NewMount};

/// How far the images are that a container mounts.
pub(super) enum Images {
    Mounted,
    Pulling,
    Failed(StartError),
}

/// Mounts the images that a container wants to see, if they are there; else they are pulled from now
/// on.
pub(super) async fn mount(
    shared: &Arc<Shared>,
    pod: &Pod,
    container: &Container,
    volumes: &Volumes,
    sandbox: &PodSandboxConfig,
    secrets: &[Secret],
) -> Result<Images, CriError> {
    let wanted = |volume: &ImageVolume<'_>| {
        container.volume_mounts.iter().flatten().any(|mount| mount.name == volume.name)
    };
    for volume in volumes.images().filter(wanted) {
        match LinuxMounter.is_mounted(volume.path) {
            Ok(true) => continue,
            Ok(false) => {}
            Err(error) => return Ok(failed(&volume, &error)),
        }
        let name = &container.name;
        let wanted = Wanted { container: name, image: volume.reference, policy: volume.policy };
        let image = match pulls::image(shared, pod, wanted, sandbox, secrets).await? {
            Found::Here(image, _) => image,
            Found::Pulling => return Ok(Images::Pulling),
            Found::Failed(why) => return Ok(Images::Failed(why)),
        };
        if let Err(error) = view(shared, uid_of(pod), &volume, &image.id).await {
            return Ok(failed(&volume, &error));
        }
    }
    Ok(Images::Mounted)
}

/// As runtimes say it that mount images by themselves.
fn failed(volume: &ImageVolume<'_>, error: &dyn std::error::Error) -> Images {
    let why = format!("ImageVolumeMountFailed: volume {:?}: {error}", volume.name);
    Images::Failed(StartError::Create(why))
}

/// Why an image is not mounted, or still is.
#[derive(Debug, thiserror::Error)]
pub(super) enum ImageVolumeError {
    #[error(transparent)]
    Runtime(#[from] CriError),
    #[error(transparent)]
    Files(#[from] io::Error),
    #[error("the container runtime does not say which layers the image {0} has")]
    Layers(String),
}

async fn view(
    shared: &Shared,
    uid: &str,
    volume: &ImageVolume<'_>,
    image: &str,
) -> Result<(), ImageVolumeError> {
    let cri = &shared.cri;
    let layers =
        cri.layers(image).await?.ok_or_else(|| ImageVolumeError::Layers(image.to_owned()))?;
    let snapshotter = cri.snapshotter().await?;
    fs::create_dir_all(volume.path)?;
    let key = key(uid, volume.name);
    // One of an agent that did not come to mount it may be of another image.
    cri.remove_snapshot(&snapshotter, &key).await?;
    for mount in cri.view_snapshot(&snapshotter, &key, &layers).await? {
        LinuxMounter.mount(&new_mount(mount, volume.path))?;
    }
    Ok(())
}

fn key(uid: &str, volume: &str) -> String {
    format!("steersman/{uid}/{volume}")
}

/// What containerd says is to be mounted, as it is mounted here.
fn new_mount(mount: snapshot::Mount, target: &Path) -> NewMount {
    let target = target.to_owned();
    if mount.kind == "bind" {
        return NewMount::ReadOnlyBind { source: mount.source.into(), target };
    }
    let is_data = |option: &String| option != "ro" && option != "rw";
    let options: Vec<String> = mount.options.into_iter().filter(is_data).collect();
    NewMount::ReadOnly {
        kind: mount.kind,
        source: mount.source,
        options: options.join(","),
        target,
    }
}

/// Gives back the views of a Pod whose containers have ended.
pub(super) async fn remove(shared: &Shared, uid: &str) -> Result<(), ImageVolumeError> {
    let images = entries(&shared.places.of_pod(uid).join(volumes::images()));
    if images.is_empty() {
        return Ok(());
    }
    let snapshotter = shared.cri.snapshotter().await?;
    for path in images {
        for mounted in LinuxMounter.mounted_below(&path)? {
            LinuxMounter.unmount(&mounted)?;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        shared.cri.remove_snapshot(&snapshotter, &key(uid, name)).await?;
        fs::remove_dir(&path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_mounted_so_that_they_can_only_be_read() {
        let mount = |kind: &str, source: &str, options: &[&str]| snapshot::Mount {
            kind: kind.into(),
            source: source.into(),
            target: String::new(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
        };
        let target = Path::new("/pods/u/v");
        assert_eq!(
            new_mount(mount("bind", "/snapshots/1/fs", &["ro", "rbind"]), target),
            NewMount::ReadOnlyBind { source: "/snapshots/1/fs".into(), target: target.into() }
        );
        assert_eq!(
            new_mount(mount("overlay", "overlay", &["index=off", "ro", "lowerdir=/2:/1"]), target),
            NewMount::ReadOnly {
                kind: "overlay".into(),
                source: "overlay".into(),
                options: "index=off,lowerdir=/2:/1".into(),
                target: target.into(),
            }
        );
    }
}
