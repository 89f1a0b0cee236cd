//! What the configuration says of an extender.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

/// How long an answer may take, if nothing is said.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Where an extender is, and what it is asked. A verb that is empty is not asked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ExtenderConfiguration {
    pub(crate) url_prefix: String,
    pub(crate) filter_verb: String,
    pub(crate) preempt_verb: String,
    pub(crate) prioritize_verb: String,
    pub(crate) weight: i64,
    pub(crate) bind_verb: String,
    #[serde(rename = "enableHTTPS")]
    enable_https: bool,
    tls_config: Option<TlsConfiguration>,
    #[serde(rename = "httpTimeout")]
    http_timeout: Option<String>,
    /// Whether it knows nodes, so that their names are enough.
    pub(crate) node_cache_capable: bool,
    pub(crate) managed_resources: Vec<ManagedResource>,
    pub(crate) ignorable: bool,
}

/// An extended resource that an extender looks after.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ManagedResource {
    pub(crate) name: String,
    pub(crate) ignored_by_scheduler: bool,
}

/// Whom to trust, and who we are. Data are in base64.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TlsConfiguration {
    insecure: bool,
    server_name: String,
    cert_file: String,
    key_file: String,
    ca_file: String,
    cert_data: String,
    key_data: String,
    ca_data: String,
}

impl ExtenderConfiguration {
    /// Which of its texts nobody can read: a field, what stands there, and what should.
    pub(crate) fn unreadable(&self) -> Option<(&'static str, &str, &'static str)> {
        if !self.url_prefix.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some()) {
            return Some(("urlPrefix", &self.url_prefix, "must be an absolute URL"));
        }
        let timeout = self.http_timeout.as_deref()?;
        let is_readable = steersman_cel::Duration::parse(timeout).is_some();
        (!is_readable).then_some(("httpTimeout", timeout, "must be a duration"))
    }

    pub(crate) fn timeout(&self) -> Duration {
        let given = self.http_timeout.as_deref().and_then(steersman_cel::Duration::parse);
        let given = given.and_then(|given| u64::try_from(given.nanos).ok());
        given.filter(|nanos| *nanos > 0).map_or(TIMEOUT, Duration::from_nanos)
    }

    /// How it is reached.
    pub(crate) fn client(&self) -> kube::Config {
        let url = self.url_prefix.parse().unwrap_or_default();
        let mut config = kube::Config::new(url);
        config.default_retry = false;
        let tls = self.tls_config.clone().unwrap_or_default();
        let given = |text: String| (!text.is_empty()).then_some(text);
        config.tls_server_name = given(tls.server_name);
        config.root_cert_file = given(tls.ca_file).map(PathBuf::from);
        config.root_cert = given(tls.ca_data).and_then(|data| certificates(&data));
        let is_unknown = config.root_cert_file.is_none() && config.root_cert.is_none();
        config.accept_invalid_certs = tls.insecure || (self.enable_https && is_unknown);
        config.auth_info.client_certificate = given(tls.cert_file);
        config.auth_info.client_certificate_data = given(tls.cert_data);
        config.auth_info.client_key = given(tls.key_file);
        config.auth_info.client_key_data = given(tls.key_data).map(Into::into);
        config
    }
}

/// The certificates of a text in base64 that holds PEM.
fn certificates(data: &str) -> Option<Vec<Vec<u8>>> {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let pem = String::from_utf8(engine.decode(data).ok()?).ok()?;
    let parts = pem.split("-----BEGIN CERTIFICATE-----").skip(1);
    let parts = parts.filter_map(|part| part.split("-----END CERTIFICATE-----").next());
    let decoded = parts.filter_map(|part| {
        let lines: String = part.split_whitespace().collect();
        engine.decode(lines).ok()
    });
    Some(decoded.collect())
}
