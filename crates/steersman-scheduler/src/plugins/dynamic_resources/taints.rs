//! Devices that are only for who tolerates what is wrong with them.

use k8s_openapi::api::resource::v1::{Device, DeviceTaint, DeviceToleration};

/// Whether a device is not for who tolerates only these taints.
pub(super) fn is_barred(device: &Device, tolerations: &[DeviceToleration]) -> bool {
    device.taints.iter().flatten().any(|taint| prevents(taint, tolerations))
}

/// Whether a taint keeps a device from who tolerates only these.
fn prevents(taint: &DeviceTaint, tolerations: &[DeviceToleration]) -> bool {
    matches!(taint.effect.as_str(), "NoExecute" | "NoSchedule")
        && !tolerations.iter().any(|it| tolerates(it, taint))
}

fn tolerates(toleration: &DeviceToleration, taint: &DeviceTaint) -> bool {
    let is_any = |wanted: Option<&str>, found: &str| {
        wanted.is_none_or(|wanted| wanted.is_empty() || wanted == found)
    };
    is_any(toleration.effect.as_deref(), &taint.effect)
        && is_any(toleration.key.as_deref(), &taint.key)
        && match toleration.operator.as_deref().unwrap_or_default() {
            "" | "Equal" => {
                toleration.value.as_deref().unwrap_or_default()
                    == taint.value.as_deref().unwrap_or_default()
            }
            operator => operator == "Exists",
        }
}
