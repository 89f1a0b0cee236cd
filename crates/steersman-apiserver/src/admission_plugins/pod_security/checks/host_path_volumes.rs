//! A Pod does not see the files of its host.

use super::subject::text;
use super::wording::{plural, quoted};
use super::{Pod, Violation};

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    let bad = pod.volumes().iter().filter(|volume| !volume["hostPath"].is_null());
    let bad: Vec<&str> = bad.map(|volume| text(&volume["name"])).collect();
    let detail = || format!("{} {}", plural(bad.len(), "volume", "volumes"), quoted(&bad));
    (!bad.is_empty()).then(|| Violation::new("hostPath volumes", detail()))
}
