//! The flags that say who is known, under kube-apiserver's names.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::controller_flags;

/// Who is known, beside those whom the cluster itself has given a certificate or a token.
#[derive(Args)]
pub(crate) struct AuthenticationFlags {
    /// Users by static bearer tokens: a CSV file with `token,user,uid` and perhaps
    /// `"group1,group2"` on each line.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_auth_file: Option<PathBuf>,
    /// Let Secrets of the type bootstrap.kubernetes.io/token in kube-system be used as bearer
    /// tokens, as kubeadm has it.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", default_value_t = true, action = clap::ArgAction::Set)]
    pub(crate) enable_bootstrap_token_auth: bool,
    /// An AuthenticationConfiguration (apiserver.config.k8s.io/v1): whose JSON Web Tokens are
    /// taken, how their claims become users, and which paths anonymous requests may have.
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_config: Option<PathBuf>,
    /// Ask the webhook of this kubeconfig whose the bearer tokens are that nobody else knows.
    #[arg(long, value_name = "FILE")]
    pub(crate) authentication_token_webhook_config_file: Option<PathBuf>,
    /// The version of the TokenReviews that the webhook is sent.
    #[arg(long, value_name = "VERSION", default_value = "v1beta1", value_parser = ["v1", "v1beta1"])]
    pub(crate) authentication_token_webhook_version: String,
    /// How long an answer of the webhook counts; not at all, if 0.
    #[arg(long, value_name = "DURATION", default_value = "2m0s", value_parser = controller_flags::duration)]
    pub(crate) authentication_token_webhook_cache_ttl: Duration,
    /// Take the word of a proxy on who its clients are, if an authority of this PEM file has signed
    /// the proxy's certificate.
    #[arg(long, value_name = "FILE")]
    pub(crate) requestheader_client_ca_file: Option<PathBuf>,
    /// The common names that the proxy's certificate may have [default: any].
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        requires = "requestheader_client_ca_file"
    )]
    pub(crate) requestheader_allowed_names: Vec<String>,
    /// The headers in which the proxy names the user.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "X-Remote-User")]
    pub(crate) requestheader_username_headers: Vec<String>,
    /// The headers in which the proxy tells the user's uid.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "X-Remote-Uid")]
    pub(crate) requestheader_uid_headers: Vec<String>,
    /// The headers in which the proxy tells the user's groups.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "X-Remote-Group")]
    pub(crate) requestheader_group_headers: Vec<String>,
    /// How the headers begin in which the proxy tells more about the user.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "X-Remote-Extra-")]
    pub(crate) requestheader_extra_headers_prefix: Vec<String>,
}
