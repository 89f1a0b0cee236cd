//! Who this server is to the servers behind it: a client certificate of an authority that signs
//! nothing else, so that nobody else can say in headers who a user is. The ConfigMap
//! `extension-apiserver-authentication` tells them of that authority.
//!
//! The authority lies in the store, for all servers over it to share.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_rules::metadata;
use steersman_rules::resource::Place;

use crate::authentication::FrontProxyHeaders;
use crate::identity::{FRONT_PROXY_KEY, Identity};
use crate::pki;
use crate::state::Server;
use crate::state::remotes::Front;
use crate::status::{Result, Status};
use crate::webhook_client::ClientIdentity;
use crate::write::own::{amend, ensure};

/// The common name of the certificate.
const NAME: &str = "front-proxy-client";

const CONFIG_MAP: [&str; 3] = ["", "v1", "configmaps"];
const NAMESPACE: &str = "kube-system";
const CONFIG_MAP_NAME: &str = "extension-apiserver-authentication";

/// What this server shows of itself, made when first needed.
pub(super) async fn identity(server: &Server) -> Result<&Front> {
    server.remotes.front.get_or_try_init(|| make(server)).await
}

async fn make(server: &Server) -> Result<Front> {
    let authority = Identity::kept_at(&*server.store, FRONT_PROXY_KEY).await?;
    let made = pki::client_certificate(&authority, NAME, &[]);
    let made = made.map_err(|error| Status::internal(&error.to_string()))?;
    let client =
        ClientIdentity { certificate: made.certificate.into_bytes(), key: made.key.into_bytes() };
    Ok(Front { authority, client })
}

/// Keeps the ConfigMap by which servers behind this one know it, and its clients' certificates.
pub(crate) async fn publish(server: &Arc<Server>) -> Result<()> {
    let front = identity(server).await?;
    let clients = Identity::of(&*server.store).await?;
    let headers = FrontProxyHeaders::default();
    let list = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| canonical(name)).collect();
        Value::from(json!(names).to_string())
    };
    let data = json!({
        "client-ca-file": clients.ca(),
        "requestheader-allowed-names": json!([NAME]).to_string(),
        "requestheader-client-ca-file": front.authority.ca(),
        "requestheader-extra-headers-prefix": list(&headers.extra_prefix),
        "requestheader-group-headers": list(&headers.group),
        "requestheader-uid-headers": list(&headers.uid),
        "requestheader-username-headers": list(&headers.username),
    });
    let object = || {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": CONFIG_MAP_NAME, "namespace": NAMESPACE}, "data": data,
        })
    };
    ensure(server, CONFIG_MAP, NAMESPACE, CONFIG_MAP_NAME, object).await?;
    let place = Place { namespace: NAMESPACE, name: CONFIG_MAP_NAME };
    let kept = amend(server, CONFIG_MAP, place, |map| {
        if !metadata::is_deleting(map) {
            map["data"] = data.clone();
        }
    });
    match kept.await {
        // Deleted this very moment: next time it is made anew.
        Err(status) if status.code == 404 => Ok(()),
        kept => kept,
    }
}

/// A header as Go writes it: `X-Remote-User`.
fn canonical(name: &str) -> String {
    let mut begins = true;
    let letter = |letter: char| {
        let upper = std::mem::replace(&mut begins, letter == '-');
        if upper { letter.to_ascii_uppercase() } else { letter }
    };
    name.chars().map(letter).collect()
}
