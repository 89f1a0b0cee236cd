//! SELinux labels are of the types that are meant for containers; user and role stay as they are.

use std::collections::BTreeSet;

use serde_json::Value;

use super::subject::text;
use super::wording::{plural, quoted, setters};
use super::{Pod, Violation};

const TYPES: [&str; 4] = ["", "container_t", "container_init_t", "container_kvm_t"];

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    check(pod, |name| TYPES.contains(&name))
}

pub(super) fn since_1_31(pod: Pod<'_>) -> Option<Violation> {
    check(pod, |name| TYPES.contains(&name) || name == "container_engine_t")
}

fn check(pod: Pod<'_>, is_allowed: fn(&str) -> bool) -> Option<Violation> {
    let mut found = Found::default();
    let mut is_bad = |security: &Value| {
        let more = Found::of(&security["seLinuxOptions"], is_allowed);
        let bad = more != Found::default();
        found.types.extend(more.types);
        found.user |= more.user;
        found.role |= more.role;
        bad
    };
    let of_pod = is_bad(pod.security());
    let bad = pod.names_of(|container| is_bad(container.security()));
    let setters = setters(of_pod, &bad)?;
    let found = found.shown();
    let detail = format!("{setters} set forbidden securityContext.seLinuxOptions: {found}");
    Some(Violation::new("seLinuxOptions", detail))
}

/// What is set that must not be.
#[derive(Default, PartialEq, Eq)]
struct Found {
    types: BTreeSet<String>,
    user: bool,
    role: bool,
}

impl Found {
    fn of(options: &Value, is_allowed: fn(&str) -> bool) -> Self {
        let name = text(&options["type"]);
        Self {
            types: (!is_allowed(name)).then(|| name.to_owned()).into_iter().collect(),
            user: !text(&options["user"]).is_empty(),
            role: !text(&options["role"]).is_empty(),
        }
    }

    fn shown(&self) -> String {
        let mut shown = Vec::new();
        if !self.types.is_empty() {
            let word = plural(self.types.len(), "type", "types");
            shown.push(format!("{word} {}", quoted(&self.types)));
        }
        if self.user {
            shown.push("user may not be set".to_owned());
        }
        if self.role {
            shown.push("role may not be set".to_owned());
        }
        shown.join("; ")
    }
}
