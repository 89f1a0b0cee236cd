//! A Pod has a network, processes and shared memory of its own.

use super::{Pod, Violation};

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared: Vec<String> = shared
        .filter(|namespace| pod.spec()[*namespace] == true)
        .map(|namespace| format!("{namespace}=true"))
        .collect();
    (!shared.is_empty()).then(|| Violation::new("host namespaces", shared.join(", ")))
}
