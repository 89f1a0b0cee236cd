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
const KNOWN: [&str; 6] = [
    "kubernetes.io/csi",
    "kubernetes.io/fc",
    "kubernetes.io/host-path",
    "kubernetes.io/iscsi",
    "kubernetes.io/local-volume",
    "kubernetes.io/nfs",
];

/// Who provisions for a class that names this provisioner.
pub(super) fn provisioner(name: &str) -> Provisioner {
    if !name.starts_with("kubernetes.io/") {
        return Provisioner::External(name.to_owned());
    }
    if let Some((_, driver)) = MOVED.iter().find(|(old, _)| *old == name) {
        return Provisioner::External((*driver).to_owned());
    }
    Provisioner::Unknown(match KNOWN.contains(&name) {
        true => "no provisionable volume plugin matched".to_owned(),
        false => format!("no volume plugin matched name: {name}"),
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
