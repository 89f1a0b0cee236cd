//! What containers on the nodes of a group use.

use k8s_openapi::api::core::v1::Container;
use serde::Deserialize;
use steersman_values::Quantity;

/// How much a container uses: a quantity, or a part of what it asks for, such as `60%`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageProfile {
    /// Of processors.
    #[serde(default)]
    pub cpu: Option<String>,
    /// Of memory.
    #[serde(default)]
    pub memory: Option<String>,
}

impl UsageProfile {
    pub(super) fn check(&self) -> Result<(), String> {
        let texts = [&self.cpu, &self.memory].into_iter().flatten();
        match texts.into_iter().find(|text| Amount::of(text).is_none()) {
            Some(text) => Err(format!("usage: {text:?} is neither a quantity nor a percentage")),
            None => Ok(()),
        }
    }

    /// How much of processors a container uses, if it says that.
    pub(crate) fn cpu_of(&self, container: &Container) -> Option<Quantity> {
        Amount::of(self.cpu.as_ref()?)?.of_container(container, "cpu")
    }

    /// How much memory a container uses, if it says that.
    pub(crate) fn memory_of(&self, container: &Container) -> Option<Quantity> {
        Amount::of(self.memory.as_ref()?)?.of_container(container, "memory")
    }
}

#[derive(Clone, Copy)]
enum Amount {
    Fixed(Quantity),
    Percent(u32),
}

impl Amount {
    fn of(text: &str) -> Option<Self> {
        match text.strip_suffix('%') {
            Some(percent) => percent.trim().parse().ok().map(Self::Percent),
            None => Quantity::parse(text).ok().map(Self::Fixed),
        }
    }

    fn of_container(self, container: &Container, resource: &str) -> Option<Quantity> {
        let percent = match self {
            Self::Fixed(amount) => return Some(amount),
            Self::Percent(percent) => i128::from(percent),
        };
        let requests = container.resources.as_ref()?.requests.as_ref()?;
        let asked = Quantity::parse(&requests.get(resource)?.0).ok()?;
        let text = match resource {
            "cpu" => format!("{}m", i128::from(asked.milli_value()) * percent / 100),
            _ => (i128::from(asked.value()) * percent / 100).to_string(),
        };
        Quantity::parse(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn usage_is_an_amount_or_a_part_of_what_is_asked_for() {
        let resources = json!({"requests": {"cpu": "500m", "memory": "1Gi"}});
        let container = |resources: serde_json::Value| -> Container {
            serde_json::from_value(json!({"name": "c", "resources": resources})).unwrap()
        };
        let profile = |cpu: &str, memory: &str| UsageProfile {
            cpu: Some(cpu.to_owned()),
            memory: Some(memory.to_owned()),
        };
        let asking = container(resources);
        let used = |profile: &UsageProfile, container: &Container| {
            [profile.cpu_of(container), profile.memory_of(container)]
                .map(|amount| amount.map(|amount| amount.to_string()))
        };
        let half = profile("50%", "25%");
        assert_eq!(used(&half, &asking), [Some("250m".into()), Some("268435456".into())]);
        assert_eq!(used(&profile("2", "64Mi"), &asking), [Some("2".into()), Some("64Mi".into())]);
        assert_eq!(used(&half, &container(json!({}))), [None, None]);
    }
}
