use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{AttachedVolume, Node};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use serde_json::json;

use super::detach::{Detach, Unneeded, detach};
use super::plan::plan;
use super::wanted::{Wanted, name};

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
    let none = BTreeMap::new();
    let planned = plan("n", &all, &there, &says(&["old"]), &none, |_| true);
    let created: Vec<_> = planned.create.iter().map(|it| &it.spec.source).collect();
    assert_eq!(created.len(), 1);
    assert_eq!(created[0].persistent_volume_name.as_deref(), Some("pv-new"));
    assert_eq!(planned.delete, [name(&wanted("old"), "n")]);
    assert_eq!(planned.attached, Some(says(&["done"])));
    assert_eq!(planned.new, [wanted("done")]);
    let planned = plan("n", &all[2..], &there[1..2], &says(&["done"]), &none, |_| true);
    assert_eq!((planned.attached, planned.new), (None, Vec::new()));
    // What nobody needs stays while it is mounted.
    let mounted = [(name(&wanted("old"), "n"), Detach::Wait(wanted("old")))].into();
    let planned = plan("n", &all, &there, &says(&["old"]), &mounted, |_| true);
    assert_eq!(planned.delete, [] as [String; 0]);
    assert_eq!(planned.attached, Some(says(&["done", "old"])));
    assert_eq!(wanted("v").unique_name(), "kubernetes.io/csi/example.com^v");
    assert_eq!(name(&wanted("v"), "n").len(), "csi-".len() + 64);
}

/// An attachment of a volume to the node `n`, and the volume.
fn attached() -> (VolumeAttachment, Wanted) {
    let disk = Wanted {
        volume: "pv".into(),
        driver: "example.com".into(),
        handle: "disk^1".into(),
        exclusive: false,
    };
    let attachment = json!({
        "metadata": {"name": name(&disk, "n")},
        "spec": {"attacher": "example.com", "nodeName": "n",
                 "source": {"persistentVolumeName": "pv"}},
        "status": {"attached": true},
    });
    (serde_json::from_value(attachment).unwrap(), disk)
}

/// The node `n`, whether it is ready, and what it has mounted.
fn node(ready: &str, in_use: &[&str], taint: Option<&str>) -> Node {
    let taints: Vec<_> =
        taint.iter().map(|key| json!({"key": key, "effect": "NoExecute"})).collect();
    let node = json!({
        "metadata": {"name": "n"},
        "spec": {"taints": taints},
        "status": {"conditions": [{"type": "Ready", "status": ready}], "volumesInUse": in_use},
    });
    serde_json::from_value(node).unwrap()
}

#[test]
fn what_is_mounted_stays_until_it_is_not_or_nobody_waits_any_longer() {
    let (attachment, disk) = attached();
    let unique_name = disk.unique_name();
    let mounted = [unique_name.as_str(), "kubernetes.io/csi/example.com^other"];
    let waits = Detach::Wait(disk);
    let (timeout, out) = (Detach::Forced("timeout"), Detach::Forced("out-of-service"));
    let taint = Some("node.kubernetes.io/out-of-service");
    for (ready, in_use, taint, seconds, expected) in [
        ("True", &mounted[1..], None, 0, &Detach::Now),
        ("True", &mounted[..], None, 0, &waits),
        ("True", &mounted[..], None, 3600, &waits),
        ("Unknown", &mounted[..], None, 360, &waits),
        ("Unknown", &mounted[..], None, 361, &timeout),
        ("False", &mounted[..], None, 361, &timeout),
        ("True", &mounted[1..], None, 361, &timeout),
        ("Unknown", &mounted[..], taint, 0, &out),
        ("Unknown", &mounted[..], taint, 361, &timeout),
        ("True", &mounted[..], Some("example.com/other"), 0, &waits),
    ] {
        let node = node(ready, in_use, taint);
        let found = detach(&node, &attachment, Duration::from_secs(seconds));
        assert_eq!(found, *expected, "{ready} {in_use:?} {taint:?} {seconds}");
    }
}

#[tokio::test(start_paused = true)]
async fn time_counts_from_when_nobody_needs_a_volume_any_more() {
    let (attachment, disk) = attached();
    let lost = node("Unknown", &[&disk.unique_name()], None);
    let unneeded = Unneeded::default();
    let judge =
        |attachments: &[&VolumeAttachment]| unneeded.judge(&lost, attachments).into_values().next();
    let waits = Detach::Wait(disk);
    let timeout = Detach::Forced("timeout");
    let minutes = |minutes: u64| tokio::time::advance(Duration::from_secs(60 * minutes));
    assert_eq!(judge(&[&attachment]).as_ref(), Some(&waits));
    minutes(4).await;
    assert_eq!(judge(&[]), None, "a Pod needs it again");
    assert_eq!(judge(&[&attachment]).as_ref(), Some(&waits));
    minutes(4).await;
    assert_eq!(judge(&[&attachment]).as_ref(), Some(&waits));
    minutes(3).await;
    assert_eq!(judge(&[&attachment]).as_ref(), Some(&timeout));
    // Of a node that is gone, what it said last counts for as long.
    assert_eq!(unneeded.judge_stranded(&attachment), Detach::Now);
    unneeded.forget("n", Some(&lost));
    assert_eq!(unneeded.judge_stranded(&attachment), waits);
    minutes(7).await;
    assert_eq!(unneeded.judge_stranded(&attachment), timeout);
}
