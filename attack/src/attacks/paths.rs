//! Paths that lead elsewhere, and requests that are hardly ones.

use std::time::Duration;

use crate::caller::{Ask, Who};
use crate::field::{Field, storm};
use crate::seen::Seen;

/// Names that no object and no namespace has; those of dots would lead elsewhere in a store.
const NOWHERE: &[&str] = &[
    "/api/v1/namespaces/%2e%2e/configmaps",
    "/api/v1/namespaces/%2E%2E/secrets",
    "/api/v1/namespaces/%2e/configmaps",
    "/api/v1/namespaces/a%2fb/configmaps",
    "/api/v1/namespaces/%00/configmaps",
    "/api/v1/namespaces/default/configmaps/%2e%2e",
    "/api/v1/namespaces/default/configmaps/%2e%2e%2fsecrets",
    "/api/v1/namespaces/%c0%ae/configmaps",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/api/v1/nodes/%2e%2e/proxy/",
    "/api/v1/namespaces/default/pods/%2e%2e/log",
    "/apis/%2e%2e/v1/x",
];

/// Each of them, read by a user who may read everything.
pub(super) async fn run(field: Field) -> Result<Seen, String> {
    let attacker = field.caller(Who::Attacker)?;
    field.begin().await;
    let mut seen = Seen::default();
    for path in NOWHERE {
        let ask = std::iter::once(Ask::get(*path));
        let answers = storm(&attacker, 1, Duration::from_secs(10), ask).await;
        // A namespace that nobody has is empty; one that leads out of its folder is none.
        let leads_out = path.to_ascii_lowercase().contains("%2e");
        let done = leads_out && answers.good() > 0;
        let broken = !answers.answers.keys().all(|name| name.parse::<u16>().is_ok());
        seen.fault_if(done, format!("{path} is answered as if it were there"));
        seen.fault_if(broken, format!("{path} breaks something: {}", answers.described()));
        seen.merge(answers);
    }
    Ok(seen)
}
