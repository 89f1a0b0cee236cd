//! In which form the two sides speak: `Accept` for answers, `Content-Type` for bodies.
//!
//! Answers are JSON or YAML, as the object itself, as a `Table` or as its metadata alone.
//! Bodies are JSON, YAML, or protobuf for built-in kinds; CBOR is refused with 415, after which
//! clients fall back.

use serde_json::Value;

use crate::protobuf::{self, ProtobufError};
use crate::status::{Result, Status};

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`
    #[default]
    Json,
    /// `application/yaml`
    Yaml,
}

/// What an answer shows of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// All of it.
    #[default]
    Object,
    /// A `meta.k8s.io/v1` Table, as `kubectl get` prints it.
    Table,
    /// A `meta.k8s.io/v1` `PartialObjectMetadata`.
    Metadata,
    /// Aggregated discovery, `apidiscovery.k8s.io/v2`.
    Discovery,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// How it is written.
    pub encoding: Encoding,
    /// What it shows.
    pub shape: Shape,
}

impl Encoding {
    /// The media type on the wire.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

/// Chooses the form that the `Accept` header likes best among those this server has.
/// `shapes` are the transformations that this path knows besides the object itself.
pub fn accept(header: Option<&str>, shapes: &[Shape]) -> Result<Output> {
    choose(header, shapes, |_| true)
}

/// Like [`accept`], for a stream of events: only JSON documents can follow each other.
pub fn accept_stream(header: Option<&str>, shapes: &[Shape]) -> Result<Output> {
    choose(header, shapes, |output| output.encoding == Encoding::Json)
}

fn choose(header: Option<&str>, shapes: &[Shape], possible: fn(&Output) -> bool) -> Result<Output> {
    let Some(header) = header.filter(|header| !header.trim().is_empty()) else {
        return Ok(Output::default());
    };
    let mut clauses: Vec<Clause<'_>> = header.split(',').map(Clause::parse).collect();
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    let chosen = clauses.iter().filter(|clause| clause.quality > 0.0);
    let mut outputs = chosen.filter_map(|clause| clause.output(shapes));
    outputs.find(possible).ok_or_else(Status::not_acceptable)
}

/// One alternative of an `Accept` header.
struct Clause<'a> {
    media_type: &'a str,
    quality: f32,
    convert: [&'a str; 3],
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let mut clause =
            Self { media_type: parts.next().unwrap_or(""), quality: 1.0, convert: [""; 3] };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "q" => clause.quality = value.trim().parse().unwrap_or(0.0),
                "as" => clause.convert[0] = value.trim(),
                "g" => clause.convert[1] = value.trim(),
                "v" => clause.convert[2] = value.trim(),
                _ => {}
            }
        }
        clause
    }

    fn output(&self, shapes: &[Shape]) -> Option<Output> {
        let encoding = match self.media_type {
            "application/json" | "application/*" | "*/*" => Encoding::Json,
            "application/yaml" => Encoding::Yaml,
            _ => return None,
        };
        let shape = match self.convert {
            ["", ..] => Shape::Object,
            ["Table", "meta.k8s.io", "v1"] => Shape::Table,
            ["PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1"] => {
                Shape::Metadata
            }
            ["APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2"] => Shape::Discovery,
            _ => return None,
        };
        let known = shape == Shape::Object || shapes.contains(&shape);
        known.then_some(Output { encoding, shape })
    }
}

/// Reads a body into a document; it must be an object.
pub fn decode(content_type: Option<&str>, body: &[u8]) -> Result<Value> {
    let value = match media_type(content_type) {
        "" | "application/json" => decode_json(body)?,
        "application/yaml" => decode_yaml(body)?,
        protobuf::MEDIA_TYPE => decode_protobuf(body)?,
        _ => return Err(unsupported()),
    };
    if value.is_object() {
        Ok(value)
    } else {
        Err(Status::bad_request("couldn't get version/kind; json parse error: not an object"))
    }
}

fn unsupported() -> Status {
    Status::unsupported_media_type(&["application/json", "application/yaml", protobuf::MEDIA_TYPE])
}

/// The media type of a `Content-Type` header, without its parameters.
pub fn media_type(content_type: Option<&str>) -> &str {
    content_type.unwrap_or("").split(';').next().unwrap_or("").trim()
}

fn decode_json(body: &[u8]) -> Result<Value> {
    serde_json::from_slice(body).map_err(|error| {
        Status::bad_request(format!("couldn't get version/kind; json parse error: {error}"))
    })
}

/// Reads YAML, of which JSON is a part.
pub fn decode_yaml(body: &[u8]) -> Result<Value> {
    serde_saphyr::from_slice(body)
        .map_err(|error| Status::bad_request(format!("error converting YAML to JSON: {error}")))
}

/// Kinds that Kubernetes does not define have no protobuf form.
fn decode_protobuf(body: &[u8]) -> Result<Value> {
    protobuf::decode(body).map_err(|error| match error {
        ProtobufError::UnknownKind { .. } => unsupported(),
        error => Status::bad_request(error.to_string()),
    })
}

#[cfg(test)]
mod tests {
    use super::{Encoding, Output, Shape, accept, decode};
    use serde_json::json;

    #[test]
    fn protobuf_alone_is_not_acceptable_and_falls_back_to_json_where_allowed() {
        assert_eq!(accept(Some("application/vnd.kubernetes.protobuf"), &[]).unwrap_err().code, 406);
        let both = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(accept(Some(both), &[]).unwrap(), Output::default());
    }

    #[test]
    fn quality_decides_and_wildcards_mean_json() {
        let yaml = accept(Some("application/json;q=0.5, application/yaml"), &[]).unwrap();
        assert_eq!(yaml.encoding, Encoding::Yaml);
        assert_eq!(accept(Some("text/html, */*;q=0.8"), &[]).unwrap().encoding, Encoding::Json);
        assert_eq!(accept(Some("application/json;q=0"), &[]).unwrap_err().code, 406);
    }

    #[test]
    fn kubectl_gets_tables_where_they_exist_and_objects_elsewhere() {
        let header = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        assert_eq!(accept(Some(header), &[Shape::Table]).unwrap().shape, Shape::Table);
        assert_eq!(accept(Some(header), &[]).unwrap().shape, Shape::Object);
    }

    #[test]
    fn protobuf_bodies_are_read_and_broken_ones_are_bad_requests() {
        let protobuf = Some("application/vnd.kubernetes.protobuf");
        let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x05\x0a\x03\x0a\x01a";
        let expected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        assert_eq!(decode(protobuf, body).unwrap(), expected);
        assert_eq!(decode(protobuf, b"{}").unwrap_err().code, 400);
        assert_eq!(decode(protobuf, &body[..20]).unwrap_err().code, 400);
    }

    #[test]
    fn yaml_and_json_bodies_are_read_and_others_are_unsupported() {
        let yaml = decode(Some("application/yaml"), b"kind: Pod\nspec: {a: 1}\n").unwrap();
        assert_eq!(yaml, json!({"kind": "Pod", "spec": {"a": 1}}));
        assert_eq!(decode(Some("application/vnd.kubernetes.protobuf"), b"").unwrap_err().code, 400);
        assert_eq!(decode(Some("application/cbor"), b"").unwrap_err().code, 415);
        assert_eq!(decode(None, b"[1]").unwrap_err().code, 400);
        assert_eq!(decode(None, b"{\"a\":").unwrap_err().code, 400);
    }

    #[test]
    fn bodies_that_are_deep_or_grow_are_refused_before_they_hurt() {
        let deep = "[".repeat(100_000);
        assert_eq!(decode(None, deep.as_bytes()).unwrap_err().code, 400);
        assert_eq!(decode(Some("application/yaml"), deep.as_bytes()).unwrap_err().code, 400);
        let mut laughs = "a0: &a0 [lol, lol]\n".to_owned();
        for level in 1..30 {
            let below = level - 1;
            laughs +=
                &format!("a{level}: &a{level} [*a{below}, *a{below}, *a{below}, *a{below}]\n");
        }
        assert_eq!(decode(Some("application/yaml"), laughs.as_bytes()).unwrap_err().code, 400);
    }
}
