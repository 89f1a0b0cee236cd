//! Bodies that are small as long as nobody reads them.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Method;

use crate::caller::{Ask, Who, YAML};
use crate::field::{Field, HOSTILE, config_maps, storm};
use crate::seen::Seen;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Compressed bodies: a server that takes them as they are refuses them.
pub(super) async fn gzip(field: Field) -> Result<Seen, String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let chunk = vec![b' '; 1 << 20];
    for _ in 0..field.size(1024, 300) {
        encoder.write_all(&chunk).map_err(|error| error.to_string())?;
    }
    let body = Bytes::from(encoder.finish().map_err(|error| error.to_string())?);
    let ask = Ask::new(Method::POST, config_maps(), body).with("content-encoding", "gzip");
    let asks = std::iter::repeat_n(ask, field.size(8, 2));
    let attacker = field.caller(Who::Attacker)?;
    field.begin().await;
    let mut seen = storm(&attacker, 4, field.seconds(30, 5), asks).await;
    seen.fault_if(seen.good() > 0, "a body of spaces is an object");
    Ok(seen)
}

/// Messages of which two bytes are an object with defaults, that lie about their length, or that
/// stand within each other.
pub(super) async fn protobuf(field: Field) -> Result<Seen, String> {
    let pods = format!("/api/v1/namespaces/{HOSTILE}/pods");
    let empty = [0x12, 0].repeat(field.size(1_400_000, 150_000)); // containers, one after another
    let pod = [message(1, &message(1, b"bomb")), message(2, &empty)].concat();
    let entries = [0x12, 0].repeat(field.size(1_400_000, 300_000)); // entries of `data`
    let map = [message(1, &message(1, b"bomb")), entries].concat();
    let mut within = Vec::new();
    for _ in 0..field.size(3_000, 500) {
        within = [vec![0xe2, 0x01], varint(within.len()), within].concat(); // `not`, 28
    }
    let version = [message(1, b"v1"), message(4, &message(1, &within))].concat();
    let definition = [message(1, &message(1, b"bomb")), message(2, &message(7, &version))].concat();
    let lie = [message(1, b""), vec![0x12, 0xff, 0xff, 0xff, 0xff, 0x7f]].concat();
    let asks = [
        (pods, sealed("v1", "Pod", &pod)),
        (config_maps(), sealed("v1", "ConfigMap", &map)),
        (
            crate::field::DEFINITIONS.to_owned(),
            sealed("apiextensions.k8s.io/v1", "CustomResourceDefinition", &definition),
        ),
        (config_maps(), sealed("v1", "ConfigMap", &lie)),
    ];
    let asks = asks.map(|(path, body)| Ask::new(Method::POST, path, body).of(PROTOBUF));
    let asks: Vec<Ask> = asks.iter().cycle().take(field.size(16, 4)).cloned().collect();
    let attacker = field.caller(Who::Attacker)?;
    field.begin().await;
    let seen = storm(&attacker, 4, field.seconds(60, 10), asks.into_iter()).await;
    Ok(seen)
}

/// JSON and YAML that go down and never come up.
pub(super) async fn deep(field: Field) -> Result<Seen, String> {
    let depth = field.size(1_000_000, 100_000);
    let json =
        format!("{{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{}", "[".repeat(depth));
    let objects = format!("{{\"data\":{}", "{\"a\":".repeat(depth / 4));
    let yaml = format!("apiVersion: v1\nkind: ConfigMap\ndata: {}", "[".repeat(depth));
    let post = |body: String| Ask::new(Method::POST, config_maps(), body);
    let patch = |body: String, content| {
        let one = "/api/v1/namespaces/innocent/configmaps/mine";
        Ask::new(Method::PATCH, one, body).of(content)
    };
    let asks = vec![
        post(json.clone()),
        post(objects.clone()),
        post(yaml).of(YAML),
        patch(objects.clone(), "application/merge-patch+json"),
        patch(objects, "application/strategic-merge-patch+json"),
        patch(json, "application/apply-patch+yaml"),
        patch("[".repeat(depth), "application/json-patch+json"),
    ];
    let attacker = field.caller(Who::Attacker)?;
    field.begin().await;
    let mut seen = storm(&attacker, 4, field.seconds(60, 10), asks.into_iter()).await;
    seen.fault_if(seen.good() > 0, "half a document is taken for a whole one");
    Ok(seen)
}

/// A field of a message that holds another.
fn message(number: u8, content: &[u8]) -> Vec<u8> {
    [vec![number << 3 | 2], varint(content.len()), content.to_vec()].concat()
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// A message with what says which one it is.
fn sealed(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let types = [message(1, api_version.as_bytes()), message(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), message(1, &types), message(2, raw)].concat()
}
