//! What is served that Kubernetes serves on request only, chosen as by kube-apiserver's flag
//! `--runtime-config`.

use std::collections::BTreeSet;
use std::str::FromStr;

use steersman_rules::kinds;
use steersman_rules::resource::Resource;

/// The versions of APIs that are served beside those that always are: kinds of theirs that are built in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeConfig {
    /// Such as `resource.k8s.io/v1beta2`.
    served: BTreeSet<String>,
}

/// There is no such API, or none that could be switched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{key:?} is no API that is served on request; known are {known}; api/all stands for all of them, \
     api/beta and api/alpha for those of such versions",
    known = known().into_iter().collect::<Vec<_>>().join(", ")
)]
pub struct UnknownApi {
    /// What was asked for.
    pub key: String,
}

impl RuntimeConfig {
    /// Whether this version of a group was asked for.
    pub fn serves(&self, group: &str, version: &str) -> bool {
        self.served.contains(&format!("{group}/{version}"))
    }

    /// The versions that were asked for.
    pub(crate) fn served(&self) -> impl Iterator<Item = &str> {
        self.served.iter().map(String::as_str)
    }
}

/// Every version that can be asked for.
fn known() -> BTreeSet<String> {
    kinds::on_request().iter().map(Resource::api_version).collect()
}

/// The versions that a word stands for, and how much more than others what is said by it counts.
fn named(key: &str, known: &BTreeSet<String>) -> Option<(usize, Vec<String>)> {
    let of = |level: &str| known.iter().filter(|it| it.contains(level)).cloned().collect();
    Some(match key {
        "api/all" => (0, of("")),
        "api/beta" => (1, of("beta")),
        "api/alpha" => (1, of("alpha")),
        key => (2, vec![known.get(key)?.clone()]),
    })
}

/// A list with commas of `KEY` or `KEY=BOOL`. What is said of one version counts before what is said of
/// a level, and that before what is said of all.
impl FromStr for RuntimeConfig {
    type Err = UnknownApi;

    fn from_str(text: &str) -> Result<Self, UnknownApi> {
        let known = known();
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let mut said = Vec::new();
        for item in items {
            let unknown = || UnknownApi { key: item.to_owned() };
            let (key, value) = item.split_once('=').unwrap_or((item, "true"));
            let value: bool = value.parse().map_err(|_| unknown())?;
            if (key, value) != ("api/ga", true) {
                let (weight, versions) = named(key, &known).ok_or_else(unknown)?;
                said.push((weight, versions, value));
            }
        }
        said.sort_by_key(|(weight, ..)| *weight);
        let mut served = BTreeSet::new();
        for (_, versions, value) in said {
            match value {
                true => served.extend(versions),
                false => served.retain(|it| !versions.contains(it)),
            }
        }
        Ok(Self { served })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "resource.k8s.io/v1beta2";
    const MIGRATIONS: &str = "storagemigration.k8s.io/v1beta1";
    const VERSIONS: &str = "internal.apiserver.k8s.io/v1alpha1";

    #[test]
    fn apis_are_switched_on_by_name_or_all_at_once() {
        for (text, expected) in [
            ("", &[][..]),
            (RULES, &[RULES]),
            (
                "resource.k8s.io/v1beta2=true, storagemigration.k8s.io/v1beta1=true",
                &[RULES, MIGRATIONS],
            ),
            ("api/beta=true", &[RULES, MIGRATIONS]),
            ("api/all", &[VERSIONS, RULES, MIGRATIONS]),
            ("resource.k8s.io/v1beta2=false,api/all", &[VERSIONS, MIGRATIONS]),
            ("api/alpha=true,api/ga=true", &[VERSIONS]),
            ("api/beta=false,api/all=true", &[VERSIONS]),
            (
                "api/alpha=false,internal.apiserver.k8s.io/v1alpha1,api/beta",
                &[VERSIONS, RULES, MIGRATIONS],
            ),
        ] {
            let chosen: RuntimeConfig = text.parse().unwrap();
            let served: Vec<&str> = chosen.served.iter().map(String::as_str).collect();
            assert_eq!(served, expected, "{text}");
        }
        let chosen: RuntimeConfig = RULES.parse().unwrap();
        assert!(chosen.serves("resource.k8s.io", "v1beta2"));
        assert!(!chosen.serves("storagemigration.k8s.io", "v1beta1"));
    }

    #[test]
    fn what_cannot_be_switched_is_told() {
        for key in ["apps/v1=false", "resource.k8s.io/v1beta2=maybe", "nonsense", "api/ga=false"] {
            let error = key.parse::<RuntimeConfig>().unwrap_err();
            assert_eq!(error.key, key);
            assert!(error.to_string().contains(RULES), "{error}");
        }
    }
}
