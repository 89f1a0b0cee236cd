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
    "{key:?} is no API that is served on request; known are {known}; api/beta and api/all stand for \
     all of them",
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
}

/// Every version that can be asked for.
fn known() -> BTreeSet<String> {
    kinds::on_request().iter().map(Resource::api_version).collect()
}

/// A list with commas of `KEY` or `KEY=BOOL`. What is said of one version counts before what is said of
/// all.
impl FromStr for RuntimeConfig {
    type Err = UnknownApi;

    fn from_str(text: &str) -> Result<Self, UnknownApi> {
        let known = known();
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        let mut served = BTreeSet::new();
        let mut switched = Vec::new();
        for item in items {
            let (key, value) = item.split_once('=').unwrap_or((item, "true"));
            match (key, value) {
                ("api/all" | "api/beta", "true") => served.clone_from(&known),
                ("api/all" | "api/beta", "false") => served.clear(),
                // Nothing of these is there to be switched on.
                ("api/alpha", "true" | "false") | ("api/ga", "true") => {}
                (key, "true" | "false") if known.contains(key) => switched.push((key, value)),
                _ => return Err(UnknownApi { key: item.to_owned() }),
            }
        }
        for (key, value) in switched {
            match value {
                "true" => served.insert(key.to_owned()),
                _ => served.remove(key),
            };
        }
        Ok(Self { served })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = "resource.k8s.io/v1beta2";
    const MIGRATIONS: &str = "storagemigration.k8s.io/v1beta1";

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
            ("resource.k8s.io/v1beta2=false,api/all", &[MIGRATIONS]),
            ("api/alpha=true,api/ga=true", &[]),
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
