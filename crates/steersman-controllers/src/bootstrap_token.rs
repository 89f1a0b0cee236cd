//! Bootstrap tokens as their Secrets in `kube-system` hold them.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use steersman::{Controller, Manager};

const TYPE: &str = "bootstrap.kubernetes.io/token";
const NAMESPACE: &str = "kube-system";
const NAME_PREFIX: &str = "bootstrap-token-";

/// Where the ConfigMap is that tokens sign, and its name.
pub(crate) const PUBLIC: &str = "kube-public";
pub(crate) const CLUSTER_INFO: &str = "cluster-info";

/// Until when a token is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// It does not end.
    Endless,
    /// It ends after this time.
    Left(Duration),
    /// It has ended, or says when in a way that nobody understands.
    Over,
}

/// Adds a controller of tokens, with caches of its own: it reads other ConfigMaps and Secrets than
/// all other controllers, and theirs would have to hold every one of the cluster for it.
pub(crate) fn install(manager: Manager, controller: Controller) -> Manager {
    let name = controller.name();
    let apart = manager
        .cluster(name, manager.client_of(name))
        .configured::<Secret>(|secrets| {
            secrets.namespaces([NAMESPACE]).fields(format!("type={TYPE}"))
        })
        .configured::<ConfigMap>(|maps| {
            maps.namespaces([PUBLIC]).fields(format!("metadata.name={CLUSTER_INFO}"))
        });
    manager.with_in(&apart, controller)
}

/// Whether a Secret holds a bootstrap token.
pub(crate) fn is_token(secret: &Secret) -> bool {
    secret.type_.as_deref() == Some(TYPE) && secret.metadata.namespace.as_deref() == Some(NAMESPACE)
}

/// Until when a token is good.
pub(crate) fn life(secret: &Secret, now: Timestamp) -> Life {
    let expiration = data(secret, "expiration");
    if expiration.is_empty() {
        return Life::Endless;
    }
    let end = expiration.parse::<Timestamp>().ok();
    let left = end.and_then(|end| Duration::try_from(end.duration_since(now)).ok());
    left.filter(|left| !left.is_zero()).map_or(Life::Over, Life::Left)
}

/// The id and the secret of a token that may sign, if it is good.
pub(crate) fn signing(secret: &Secret, now: Timestamp) -> Option<(String, String)> {
    let (id, key) = (data(secret, "token-id"), data(secret, "token-secret"));
    let named = secret.metadata.name.as_deref()?.strip_prefix(NAME_PREFIX)?;
    let is_sound = named == id && is_id(&id) && !key.is_empty();
    let may_sign = data(secret, "usage-bootstrap-signing") == "true";
    (is_sound && may_sign && life(secret, now) != Life::Over).then_some((id, key))
}

fn is_id(id: &str) -> bool {
    id.len() == 6 && id.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
}

fn data(secret: &Secret, field: &str) -> String {
    let value = secret.data.as_ref().and_then(|data| data.get(field));
    value.map(|value| String::from_utf8_lossy(&value.0).into_owned()).unwrap_or_default()
}

/// A token with this data, for tests.
#[cfg(test)]
pub(crate) fn test_token(id: &str, data: &[(&str, &str)]) -> Secret {
    use k8s_openapi::ByteString;
    let mut secret = Secret { type_: Some(TYPE.into()), ..Secret::default() };
    secret.metadata.namespace = Some(NAMESPACE.into());
    secret.metadata.name = Some(format!("{NAME_PREFIX}{id}"));
    let usual = [("token-id", id), ("token-secret", "0123456789abcdef")];
    let all = usual.iter().chain(data);
    let all = all.map(|(field, value)| ((*field).into(), ByteString(value.as_bytes().to_vec())));
    secret.data = Some(all.collect());
    secret
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_ends_when_it_says_or_if_nobody_understands_when() {
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        for (expiration, expected) in [
            (None, Life::Endless),
            (Some(""), Life::Endless),
            (Some("2030-01-01T00:01:00Z"), Life::Left(Duration::from_secs(60))),
            (Some("2030-01-01T01:01:00+01:00"), Life::Left(Duration::from_secs(60))),
            (Some("2030-01-01T00:00:00Z"), Life::Over),
            (Some("2029-01-01T00:00:00Z"), Life::Over),
            (Some("tomorrow"), Life::Over),
        ] {
            let data: Vec<(&str, &str)> =
                expiration.iter().map(|value| ("expiration", *value)).collect();
            assert_eq!(life(&test_token("abcdef", &data), now), expected, "{expiration:?}");
        }
    }

    #[test]
    fn only_a_sound_token_for_signing_signs() {
        let now: Timestamp = "2030-01-01T00:00:00Z".parse().unwrap();
        let may = ("usage-bootstrap-signing", "true");
        assert!(signing(&test_token("abcdef", &[may]), now).is_some());
        assert!(signing(&test_token("abcdef", &[]), now).is_none());
        assert!(signing(&test_token("ABCDEF", &[may]), now).is_none());
        assert!(signing(&test_token("abcdef", &[may, ("token-id", "fedcba")]), now).is_none());
        assert!(signing(&test_token("abcdef", &[may, ("token-secret", "")]), now).is_none());
        let over = ("expiration", "2029-01-01T00:00:00Z");
        assert!(signing(&test_token("abcdef", &[may, over]), now).is_none());
    }
}
