//! Who is known, by what the command line says.

use std::fs;
use std::path::Path;

use steersman_cluster::Authentication;
use steersman_cluster::authentication::{
    FrontProxy, FrontProxyHeaders, TokenReviewVersion, TokenWebhook, WebhookEndpoint,
};
use steersman_cluster::pki::ClientAuthorities;

use crate::authentication_flags::AuthenticationFlags;
use crate::failure::told;

/// What the flags say, with the files that they name.
pub(crate) fn chosen(flags: &AuthenticationFlags) -> Result<Authentication, String> {
    let mut authentication = Authentication {
        bootstrap_tokens: flags.enable_bootstrap_token_auth,
        front_proxy: front_proxy(flags)?,
        ..Authentication::default()
    };
    if let Some(file) = &flags.token_auth_file {
        let read = authentication.read_tokens(file);
        read.map_err(|error| refused("--token-auth-file", file, &told(&error)))?;
    }
    if let Some(file) = &flags.authentication_config {
        let read = authentication.read_configuration(file);
        read.map_err(|error| refused("--authentication-config", file, &told(&error)))?;
    }
    authentication.webhook = webhook(flags)?;
    Ok(authentication)
}

fn webhook(flags: &AuthenticationFlags) -> Result<Option<TokenWebhook>, String> {
    let Some(file) = &flags.authentication_token_webhook_config_file else { return Ok(None) };
    let flag = "--authentication-token-webhook-config-file";
    let endpoint = WebhookEndpoint::of_kubeconfig(file);
    let endpoint = endpoint.map_err(|error| refused(flag, file, &told(&error)))?;
    Ok(Some(TokenWebhook {
        endpoint,
        version: match flags.authentication_token_webhook_version.as_str() {
            "v1" => TokenReviewVersion::V1,
            _ => TokenReviewVersion::V1Beta1,
        },
        cache_ttl: flags.authentication_token_webhook_cache_ttl,
    }))
}

fn front_proxy(flags: &AuthenticationFlags) -> Result<Option<FrontProxy>, String> {
    let Some(file) = &flags.requestheader_client_ca_file else { return Ok(None) };
    let refused = |why: &str| refused("--requestheader-client-ca-file", file, why);
    let pem = fs::read(file).map_err(|error| refused(&error.to_string()))?;
    let authorities = ClientAuthorities::from_pem(&pem).map_err(|error| refused(&told(&error)))?;
    Ok(Some(FrontProxy {
        authorities,
        allowed_names: flags.requestheader_allowed_names.clone(),
        headers: FrontProxyHeaders {
            username: flags.requestheader_username_headers.clone(),
            uid: flags.requestheader_uid_headers.clone(),
            group: flags.requestheader_group_headers.clone(),
            extra_prefix: flags.requestheader_extra_headers_prefix.clone(),
        },
    }))
}

/// One line, whatever a parser has to say.
pub(crate) fn refused(flag: &str, file: &Path, why: &str) -> String {
    let why: Vec<&str> = why.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    format!("{flag} {}: {}", file.display(), why.join(" "))
}
