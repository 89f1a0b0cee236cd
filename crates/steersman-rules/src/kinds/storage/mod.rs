//! The kinds of `storage.k8s.io`: classes of storage, and what CSI drivers say of themselves, of
//! nodes and of attachments.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod parameters;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "storage.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[
    csi_driver::KIND,
    csi_node::KIND,
    csi_storage_capacity::KIND,
    storage_class::KIND,
    volume_attachment::KIND,
    volume_attributes_class::KIND,
];
