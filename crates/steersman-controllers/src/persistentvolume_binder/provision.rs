//! Who makes the volumes of a class.

/// Who makes the volumes of a class.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Provisioner {
    /// Somebody outside of this controller, by the name under which it listens.
    External(String),
    /// Nobody, in Kubernetes' words.
    Unknown(String),
}

/// Provisioners that were part of Kubernetes once, and the drivers that took over.
const MOVED: [(&str, &str); 7] = [
    ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    ("kubernetes.io/azure-file", "file.csi.azure.com"),
    ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
    ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
];

/// Kinds of volumes that Kubernetes knows, and makes none of.
const KNOWN: [&str; 5] = [
    "kubernetes.io/csi",
    "kubernetes.io/fc",
    "kubernetes.io/iscsi",
    "kubernetes.io/local-volume",
    "kubernetes.io/nfs",
];

/// The one that Kubernetes could make, for tests on one machine, and does not unless it is told to.
const HOST_PATH: &str = "kubernetes.io/host-path";

/// The driver that took over from a provisioner that was part of Kubernetes once.
pub(super) fn moved_to(provisioner: &str) -> Option<&'static str> {
    MOVED.iter().find(|(old, _)| *old == provisioner).map(|(_, driver)| *driver)
}

/// Who provisions for a class that names this provisioner.
pub(super) fn provisioner(name: &str) -> Provisioner {
    if !name.starts_with("kubernetes.io/") {
        return Provisioner::External(name.to_owned());
    }
    if let Some(driver) = moved_to(name) {
        return Provisioner::External(driver.to_owned());
    }
    Provisioner::Unknown(match name {
        HOST_PATH => format!(
            "Failed to create provisioner: provisioning in volume plugin {name:?} is disabled"
        ),
        _ if KNOWN.contains(&name) => "no provisionable volume plugin matched".to_owned(),
        _ => format!("no volume plugin matched name: {name}"),
    })
}

/// What a claim is told whose volume somebody else makes.
pub(super) fn waiting_for(provisioner: &str) -> String {
    format!(
        "Waiting for a volume to be created either by the external provisioner '{provisioner}' or \
         manually by the system administrator. If volume creation is delayed, please verify that \
         the provisioner is running and correctly registered."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_makes_no_volumes_says_why() {
        let unknown = |why: &str| Provisioner::Unknown(why.to_owned());
        for (name, expected) in [
            ("example.com/nfs", Provisioner::External("example.com/nfs".to_owned())),
            ("kubernetes.io/gce-pd", Provisioner::External("pd.csi.storage.gke.io".to_owned())),
            ("kubernetes.io/nfs", unknown("no provisionable volume plugin matched")),
            ("kubernetes.io/none", unknown("no volume plugin matched name: kubernetes.io/none")),
            (
                "kubernetes.io/host-path",
                unknown(
                    "Failed to create provisioner: provisioning in volume plugin \
                     \"kubernetes.io/host-path\" is disabled",
                ),
            ),
        ] {
            assert_eq!(provisioner(name), expected);
        }
    }
}
