use std::sync::Arc;

use k8s_openapi::api::core::v1::AttachedVolume;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use serde_json::json;

use super::plan::{Wanted, name, plan};

#[test]
fn what_pods_use_is_attached_and_what_nobody_uses_detached() {
    let wanted = |handle: &str| Wanted {
        volume: format!("pv-{handle}"),
        driver: "example.com".into(),
        handle: handle.into(),
        exclusive: true,
    };
    let attachment = |handle: &str, attached: bool| -> Arc<VolumeAttachment> {
        let source = json!({"persistentVolumeName": format!("pv-{handle}")});
        let attachment = json!({
            "metadata": {"name": name(&wanted(handle), "n")},
            "spec": {"attacher": "example.com", "nodeName": "n", "source": source},
            "status": {"attached": attached},
        });
        Arc::new(serde_json::from_value(attachment).unwrap())
    };
    let says = |handles: &[&str]| -> Vec<AttachedVolume> {
        let names = handles.iter().map(|handle| wanted(handle).unique_name());
        names.map(|name| AttachedVolume { name, device_path: String::new() }).collect()
    };
    // One is new, one is being attached, one has been, one is not needed any more.
    let all = ["new", "slow", "done"].map(wanted);
    let there = [attachment("slow", false), attachment("done", true), attachment("old", true)];
    let planned = plan("n", &all, &there, &says(&["old"]), |_| true);
    let created: Vec<_> = planned.create.iter().map(|it| &it.spec.source).collect();
    assert_eq!(created.len(), 1);
    assert_eq!(created[0].persistent_volume_name.as_deref(), Some("pv-new"));
    assert_eq!(planned.delete, [name(&wanted("old"), "n")]);
    assert_eq!(planned.attached, Some(says(&["done"])));
    assert_eq!(planned.new, [wanted("done")]);
    let planned = plan("n", &all[2..], &there[1..2], &says(&["done"]), |_| true);
    assert_eq!((planned.attached, planned.new), (None, Vec::new()));
    assert_eq!(wanted("v").unique_name(), "kubernetes.io/csi/example.com^v");
    assert_eq!(name(&wanted("v"), "n").len(), "csi-".len() + 64);
}
