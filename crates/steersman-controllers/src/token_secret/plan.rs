//! Which Secrets hold tokens, whose, and what they lack.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ObjectReference, Secret, ServiceAccount};

/// The type of Secrets that hold tokens.
pub(super) const TYPE: &str = "kubernetes.io/service-account-token";

const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Whether a Secret is to hold a token.
pub(super) fn is_token(secret: &Secret) -> bool {
    secret.type_.as_deref() == Some(TYPE)
}

/// The name of the account whose token a Secret is to hold.
pub(super) fn account_of(secret: &Secret) -> Option<String> {
    annotation(secret, ACCOUNT).filter(|_| is_token(secret)).map(str::to_owned)
}

/// Whether the token of a Secret is that of this very account.
pub(super) fn is_owner(secret: &Secret, account: &ServiceAccount) -> bool {
    let uid = annotation(secret, ACCOUNT_UID);
    let is_same = uid.is_none_or(|uid| Some(uid) == account.metadata.uid.as_deref());
    account_of(secret) == account.metadata.name && is_same
}

fn annotation<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    let value = secret.metadata.annotations.as_ref()?.get(key)?;
    Some(value.as_str()).filter(|value| !value.is_empty())
}

/// The Secret with what it lacks, if it lacks anything.
pub(super) fn filled<E>(
    secret: &Secret,
    account: &ServiceAccount,
    root_ca: Option<&str>,
    token: impl FnOnce() -> Result<String, E>,
) -> Result<Option<Secret>, E> {
    let mut filled = secret.clone();
    let data = filled.data.get_or_insert_default();
    let before = data.clone();
    let lacks = |key: &str| before.get(key).is_none_or(|value| value.0.is_empty());
    if let Some(root_ca) = root_ca {
        data.insert("ca.crt".into(), bytes(root_ca));
    }
    if lacks("namespace") {
        let namespace = secret.metadata.namespace.as_deref().unwrap_or_default();
        data.insert("namespace".into(), bytes(namespace));
    }
    if lacks("token") {
        data.insert("token".into(), bytes(&token()?));
    }
    if *data == before {
        return Ok(None);
    }
    let annotations = filled.metadata.annotations.get_or_insert_default();
    let owner = &account.metadata;
    annotations.insert(ACCOUNT.into(), owner.name.clone().unwrap_or_default());
    annotations.insert(ACCOUNT_UID.into(), owner.uid.clone().unwrap_or_default());
    Ok(Some(filled))
}

/// The account without its reference to the Secret of this name, if it has one.
pub(super) fn without_reference(account: &ServiceAccount, secret: &str) -> Option<ServiceAccount> {
    let is_other = |reference: &ObjectReference| reference.name.as_deref() != Some(secret);
    let secrets = account.secrets.as_deref().unwrap_or_default();
    let others: Vec<_> = secrets.iter().filter(|it| is_other(it)).cloned().collect();
    if others.len() == secrets.len() {
        return None;
    }
    let secrets = (!others.is_empty()).then_some(others);
    Some(ServiceAccount { secrets, ..account.clone() })
}

fn bytes(text: &str) -> ByteString {
    ByteString(text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        let mut secret = Secret { type_: Some(TYPE.into()), ..Secret::default() };
        secret.metadata.namespace = Some("team".into());
        secret.metadata.annotations = Some([(ACCOUNT.into(), "robot".into())].into());
        secret
    }

    fn account(uid: &str) -> ServiceAccount {
        let mut account = ServiceAccount::default();
        account.metadata.name = Some("robot".into());
        account.metadata.uid = Some(uid.into());
        account
    }

    #[test]
    fn a_secret_is_of_the_account_that_it_names() {
        let mut secret = secret();
        assert!(is_owner(&secret, &account("1")) && is_owner(&secret, &account("2")));
        let annotations = secret.metadata.annotations.get_or_insert_default();
        annotations.insert(ACCOUNT_UID.into(), "1".into());
        assert!(is_owner(&secret, &account("1")) && !is_owner(&secret, &account("2")));
        secret.type_ = Some("Opaque".into());
        assert_eq!(account_of(&secret), None);
    }

    #[test]
    fn an_account_keeps_its_references_to_other_secrets() {
        let with = |names: &[&str]| {
            let reference = |name: &&str| ObjectReference {
                name: Some((*name).into()),
                ..ObjectReference::default()
            };
            let secrets: Vec<_> = names.iter().map(reference).collect();
            let secrets = (!secrets.is_empty()).then_some(secrets);
            ServiceAccount { secrets, ..account("1") }
        };
        for (before, after) in [
            (&["a", "gone", "b"][..], Some(with(&["a", "b"]))),
            (&["gone", "gone"][..], Some(with(&[]))),
            (&["a"][..], None),
            (&[][..], None),
        ] {
            assert_eq!(without_reference(&with(before), "gone"), after, "{before:?}");
        }
    }

    #[test]
    fn what_is_missing_is_filled_in_and_the_rest_stays() {
        let sign = || Ok::<_, ()>("signed".to_owned());
        let full = filled(&secret(), &account("1"), Some("pem"), sign).unwrap().unwrap();
        let data = full.data.clone().unwrap();
        for (key, value) in [("token", "signed"), ("ca.crt", "pem"), ("namespace", "team")] {
            assert_eq!(data[key], bytes(value));
        }
        assert_eq!(full.metadata.annotations.as_ref().unwrap()[ACCOUNT_UID], "1");
        let not_again = || Err::<String, _>(());
        assert_eq!(filled(&full, &account("1"), Some("pem"), not_again), Ok(None));
        let renewed = filled(&full, &account("1"), Some("new"), not_again).unwrap().unwrap();
        assert_eq!(renewed.data.unwrap()["token"], bytes("signed"));
        assert_eq!(filled(&secret(), &account("1"), None, not_again), Err(()));
    }
}
