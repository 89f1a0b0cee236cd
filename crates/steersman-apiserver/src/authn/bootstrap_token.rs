//! Bootstrap tokens: Secrets in `kube-system` by which a node may ask for its certificate.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::Refused;
use super::objects::{Secret, is_same, known};
use crate::state::Server;
use crate::user::User;

const ID_LENGTH: usize = 6;
const SECRET_LENGTH: usize = 16;
const GROUP: &str = "system:bootstrappers";
const GROUP_MAX: usize = 256;

/// Who bears a token, if it is a bootstrap token that may be used for requests.
pub(super) async fn user(server: &Server, token: &str) -> Result<Option<User>, Refused> {
    let Some((id, secret)) = parts(token) else { return Ok(None) };
    let now = (server.clock)();
    let key = format!("/registry/secrets/kube-system/bootstrap-token-{id}");
    // What this server has heard of is enough, as in Kubernetes: everybody can guess, and a guess
    // must not cost a question to those who keep the store.
    let found: Option<Secret> = known(server, &key).await?;
    let judged = found.ok_or("no such secret").and_then(|found| groups(&found, id, secret, now));
    match judged.map_err(Refused::from) {
        Ok(groups) => {
            let user = User { name: format!("system:bootstrap:{id}"), groups, ..User::default() };
            Ok(Some(user.authenticated()))
        }
        // As in Kubernetes, who guesses is not told how far the guess was off.
        Err(Refused::Token(why)) => {
            tracing::debug!(id, %why, "bootstrap token refused");
            Ok(None)
        }
        Err(unknown) => Err(unknown),
    }
}

/// The id and the secret of a token that looks like one.
fn parts(token: &str) -> Option<(&str, &str)> {
    let (id, secret) = token.split_once('.')?;
    let plain = |text: &str, length: usize| {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        text.len() == length && text.bytes().all(is_plain)
    };
    (plain(id, ID_LENGTH) && plain(secret, SECRET_LENGTH)).then_some((id, secret))
}

/// The groups of who bears the token of a Secret, or why it is none.
fn groups(
    found: &Secret,
    id: &str,
    secret: &str,
    now: Timestamp,
) -> Result<Vec<String>, &'static str> {
    if found.metadata.deletion_timestamp.is_some() {
        return Err("it is deleted and awaiting removal");
    }
    if found.kind != "bootstrap.kubernetes.io/token" {
        return Err("it has another type");
    }
    if !is_same(&found.get("token-secret"), secret.as_bytes()) {
        return Err("it has another value for key token-secret");
    }
    if found.text("token-id") != id {
        return Err("it has another value for key token-id");
    }
    let expiration = found.text("expiration");
    // What cannot be read is over.
    if !expiration.is_empty() && !expiration.parse().is_ok_and(|end: Timestamp| end > now) {
        return Err("it has expired");
    }
    if found.text("usage-bootstrap-authentication") != "true" {
        return Err("it is not marked usage-bootstrap-authentication=true");
    }
    let extra = found.text("auth-extra-groups");
    let extra: Vec<&str> = extra.split(',').filter(|_| !extra.is_empty()).collect();
    if !extra.iter().all(|group| is_bootstrap_group(group)) {
        return Err("it has a group that bootstrap tokens may not have");
    }
    let groups: BTreeSet<&str> = extra.into_iter().chain([GROUP]).collect();
    Ok(groups.into_iter().map(str::to_owned).collect())
}

fn is_bootstrap_group(group: &str) -> bool {
    let Some(rest) = group.strip_prefix("system:bootstrappers:") else { return false };
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    rest.len() <= GROUP_MAX
        && rest.bytes().all(|byte| plain(byte) || byte == b':' || byte == b'-')
        && rest.bytes().last().is_some_and(plain)
}

#[cfg(test)]
mod tests {
    use super::{is_bootstrap_group, parts};

    #[test]
    fn a_token_is_an_id_and_a_secret() {
        assert_eq!(parts("abcdef.0123456789abcdef"), Some(("abcdef", "0123456789abcdef")));
        for other in [
            "",
            ".",
            "abcdef",
            "abcde.0123456789abcdef",
            "abcdeF.0123456789abcdef",
            "abcdef.0123456789abcde",
            "abcdef.0123456789abcdefg",
            "../../.0123456789abcdef",
            "abcdef.0123456789abcd/f",
        ] {
            assert_eq!(parts(other), None, "{other}");
        }
    }

    #[test]
    fn groups_of_bootstrap_tokens_begin_alike() {
        assert!(is_bootstrap_group("system:bootstrappers:kubeadm:default-node-token"));
        for other in [
            "system:bootstrappers",
            "system:bootstrappers:",
            "system:bootstrappers:a-",
            "system:bootstrappers:A",
            "system:masters",
        ] {
            assert!(!is_bootstrap_group(other), "{other}");
        }
        assert!(!is_bootstrap_group(&format!("system:bootstrappers:{}", "a".repeat(257))));
    }
}
