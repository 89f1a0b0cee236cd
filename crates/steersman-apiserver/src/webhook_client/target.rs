//! Whom a `clientConfig` names: a URL or a service, and the authority that vouches for it. Open
//! connections that nobody uses wait there for the next request.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Uri;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use serde_json::Value;

use super::backend::Service;
use super::path;
use super::trust::{ClientIdentity, Trust, client_config};

const HTTPS_PORT: u16 = 443;

/// How many unused connections to one target stay open.
const IDLE_MAX: usize = 8;

/// An open connection.
pub(super) type Connection = SendRequest<Full<Bytes>>;

/// One whom webhooks' requests go to, with the connections that are open to it.
#[derive(Debug)]
pub(crate) struct Target {
    /// Where requests go: origin and path, as Go writes them, without a query.
    pub(crate) url: String,
    /// Scheme, host and port.
    pub(super) origin: String,
    pub(super) host: String,
    pub(super) port: u16,
    /// The service, if it is one: where it is, is found out at each connection.
    pub(crate) service: Option<Service>,
    /// Who must vouch for it.
    trust: Trust,
    /// What the server shows of itself, if it does.
    identity: Option<ClientIdentity>,
    /// Made at the first connection.
    tls: OnceLock<Result<Arc<rustls::ClientConfig>, String>>,
    /// Connections that nobody uses now. The lock is held for moments, never over a wait.
    idle: Mutex<Vec<Connection>>,
}

impl Target {
    /// Reads a `clientConfig`, which was validated when it was written.
    pub(crate) fn of(config: &Value) -> Self {
        let service = config.get("service").filter(|service| service.is_object());
        let url = match service {
            Some(service) => service_url(service),
            None => path::cleaned(config["url"].as_str().unwrap_or("")),
        };
        let bundle = STANDARD.decode(config["caBundle"].as_str().unwrap_or(""));
        Self { service: service.map(service_of), ..Self::at(&url, bundle.unwrap_or_default()) }
    }

    /// Reads the `spec` of an APIService that names a service.
    pub(crate) fn of_api_service(spec: &Value) -> Self {
        let target = Self::of(spec);
        let target = Self { url: target.url.trim_end_matches('/').to_owned(), ..target };
        match spec["insecureSkipTLSVerify"] == true {
            true => Self { trust: Trust::Anyone, ..target },
            false => target,
        }
    }

    /// Who is at a URL, and who vouches for it, in PEM; nobody stands for whom the system trusts.
    pub(crate) fn at(url: &str, authorities: Vec<u8>) -> Self {
        let uri: Uri = url.parse().unwrap_or_default();
        let host = uri.host().unwrap_or("").trim_matches(['[', ']']).to_owned();
        Self {
            origin: normal_origin(url),
            host,
            port: uri.port_u16().unwrap_or(HTTPS_PORT),
            service: None,
            trust: Trust::Authorities(authorities),
            identity: None,
            tls: OnceLock::new(),
            idle: Mutex::default(),
            url: url.to_owned(),
        }
    }

    /// The same; the server shows who it is.
    pub(crate) fn showing(self, identity: Option<ClientIdentity>) -> Self {
        Self { identity, ..self }
    }

    /// How TLS is spoken with this target.
    pub(super) fn tls(&self) -> Result<Arc<rustls::ClientConfig>, String> {
        self.tls.get_or_init(|| client_config(&self.trust, self.identity.as_ref())).clone()
    }

    /// A connection that is open and unused.
    pub(super) fn unused(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|connection| !connection.is_closed());
        idle.pop()
    }

    /// Keeps a connection for the next request.
    pub(super) fn keep(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(connection);
        }
    }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or("")
}

fn service_of(service: &Value) -> Service {
    let port = service["port"].as_u64().and_then(|port| u16::try_from(port).ok());
    Service {
        namespace: text(service, "namespace").to_owned(),
        name: text(service, "name").to_owned(),
        port: port.unwrap_or(HTTPS_PORT),
    }
}

fn service_url(service: &Value) -> String {
    let Service { namespace, name, port } = service_of(service);
    let path = path::of_service(text(service, "path"));
    format!("https://{name}.{namespace}.svc:{port}{path}")
}

/// `https://host:port` of a URL, in small letters; the port is always told.
pub(super) fn normal_origin(url: &str) -> String {
    let uri: Uri = url.parse().unwrap_or_default();
    let scheme = uri.scheme_str().unwrap_or("https");
    let host = uri.host().unwrap_or("");
    let port = uri.port_u16().unwrap_or(if scheme == "http" { 80 } else { HTTPS_PORT });
    format!("{scheme}://{host}:{port}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::{Target, normal_origin};
    use serde_json::json;

    #[test]
    fn an_origin_is_the_same_with_its_default_port_and_in_any_case() {
        assert_eq!(normal_origin("https://Hooks.test"), "https://hooks.test:443");
        assert_eq!(normal_origin("https://hooks.test:443/a/b"), "https://hooks.test:443");
        assert_ne!(normal_origin("https://hooks.test:8443"), "https://hooks.test:443");
    }

    #[test]
    fn the_service_of_an_api_is_at_the_port_that_the_api_names() {
        let spec = json!({"service": {"name": "api", "namespace": "ns", "port": 8443}});
        assert_eq!(Target::of_api_service(&spec).url, "https://api.ns.svc:8443");
    }

    #[test]
    fn a_service_is_called_by_its_name_in_the_cluster() {
        let config = json!({"service": {"name": "hooks", "namespace": "ns", "path": "/m"}});
        let target = Target::of(&config);
        assert_eq!(target.url, "https://hooks.ns.svc:443/m");
        let service = target.service.unwrap();
        assert_eq!((service.name.as_str(), service.port), ("hooks", 443));
    }
}
