//! Writes images as an OCI layout in an archive, which `ctr images import` reads.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::tar::{Entry, Tar};

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// An image to be written.
pub(crate) struct Image {
    pub name: &'static str,
    pub command: Vec<&'static str>,
    /// The lowest first.
    pub layers: Vec<Vec<u8>>,
}

/// What images are made of, by digest.
#[derive(Default)]
struct Blobs(BTreeMap<String, Vec<u8>>);

impl Blobs {
    /// Adds one, and says how others refer to it.
    fn add(&mut self, media_type: &str, content: Vec<u8>) -> Value {
        let hex: String =
            digest(&SHA256, &content).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let size = content.len();
        self.0.insert(hex.clone(), content);
        json!({"mediaType": media_type, "digest": format!("sha256:{hex}"), "size": size})
    }
}

/// The archive of these images.
pub(crate) fn archive(images: Vec<Image>) -> Vec<u8> {
    let mut blobs = Blobs::default();
    let manifests: Vec<Value> = images.into_iter().map(|image| add(&mut blobs, image)).collect();
    let index = json!({"schemaVersion": 2, "manifests": manifests}).to_string();
    let mut tar = Tar::default();
    let file = |content| Entry::File { mode: 0o644, content };
    tar.add("oci-layout", &file(br#"{"imageLayoutVersion":"1.0.0"}"#));
    tar.add("index.json", &file(index.as_bytes()));
    for (hex, content) in &blobs.0 {
        tar.add(&format!("blobs/sha256/{hex}"), &file(content));
    }
    tar.finish()
}

fn add(blobs: &mut Blobs, image: Image) -> Value {
    let layers: Vec<Value> =
        image.layers.into_iter().map(|layer| blobs.add(LAYER, layer)).collect();
    let digests: Vec<&Value> = layers.iter().map(|layer| &layer["digest"]).collect();
    let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let config = json!({
        "architecture": architecture,
        "os": "linux",
        "config": {"Cmd": image.command, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": digests},
    });
    let config = blobs.add(CONFIG, config.to_string().into_bytes());
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": config,
        "layers": layers,
    });
    let mut manifest = blobs.add(MANIFEST, manifest.to_string().into_bytes());
    manifest["annotations"] = json!({"io.containerd.image.name": image.name});
    manifest
}
