//! In which form the two sides speak: `Accept` for answers, `Content-Type` for bodies.
//!
//! | what an answer shows | JSON | YAML | protobuf |
//! |---|---|---|---|
//! | a built-in object, a list, a Status | yes | yes | yes |
//! | a custom resource | yes | yes | no |
//! | a Table | yes | yes | no |
//! | metadata alone, of any kind | yes | yes | yes |
//!
//! A watch is never YAML. Bodies are JSON, YAML, or protobuf for built-in kinds; CBOR is refused
//! with 415, after which clients fall back.

use http::{HeaderMap, HeaderValue, Uri, header};
use serde_json::Value;
use steersman_rules::body::{syntax, yaml};
use steersman_rules::metadata::MetaVersion;
use steersman_rules::patch;
use steersman_rules::protobuf::{self, ProtobufError};

use crate::request::Query;
use crate::status::{Result, Status};

/// What can be written and read, in the order of preference.
const MEDIA_TYPES: [&str; 3] = ["application/json", "application/yaml", protobuf::MEDIA_TYPE];

/// What events can be written in.
const STREAM_TYPES: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Encoding {
    /// `application/json`
    #[default]
    Json,
    /// `application/yaml`
    Yaml,
    /// `application/vnd.kubernetes.protobuf`
    Protobuf,
}

/// What an answer shows of an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Shape {
    /// All of it.
    #[default]
    Object,
    /// A `meta.k8s.io` Table, as `kubectl get` prints it.
    Table,
    /// A `meta.k8s.io` `PartialObjectMetadata`.
    Metadata,
    /// Aggregated discovery, `apidiscovery.k8s.io/v2`.
    Discovery,
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Output {
    /// How it is written.
    pub(crate) encoding: Encoding,
    /// What it shows.
    pub(crate) shape: Shape,
    /// In which version a table, or metadata alone, is told.
    pub(crate) meta: MetaVersion,
    /// Whether the metadata of a list was asked for, and not that of one object.
    pub(crate) of_list: bool,
    /// Whether JSON is indented, for people. Events never are.
    pub(crate) pretty: bool,
}

/// What a path can answer with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    /// The transformations besides the object itself.
    pub(crate) shapes: &'a [Shape],
    /// Whether the object itself has a protobuf form.
    pub(crate) protobuf: bool,
    /// Whether the answer is a stream of events.
    pub(crate) stream: bool,
}

impl Encoding {
    const ALL: [Self; 3] = [Self::Json, Self::Yaml, Self::Protobuf];

    /// The media type on the wire.
    pub(crate) fn media_type(self) -> &'static str {
        MEDIA_TYPES[self as usize]
    }

    /// The media type of a stream of events.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            Self::Protobuf => STREAM_TYPES[1],
            _ => self.media_type(),
        }
    }
}

/// What a request says about the form of its answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    accept: Option<HeaderValue>,
    pretty: bool,
}

/// What a route answers in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A document that is no object of the API, in JSON only.
    Json,
    /// An object.
    Object,
    /// A collection, which is also watched.
    Collection,
}

/// Programs behind which people sit: what they get is indented.
const PEOPLE: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

impl Wishes {
    /// Reads the query and the headers of a request.
    pub(crate) fn of(uri: &Uri, headers: &HeaderMap) -> Self {
        let asked = uri.query().filter(|query| query.contains("pretty"));
        let asked = asked.map(Query::parse);
        let pretty = match asked.as_ref().and_then(|query| query.text("pretty")) {
            Some(text) => matches!(text, "1" | "t" | "T" | "true" | "TRUE" | "True"),
            None => {
                let agent = headers.get(header::USER_AGENT).map_or(&[][..], HeaderValue::as_bytes);
                PEOPLE.iter().any(|name| agent.starts_with(name.as_bytes()))
            }
        };
        Self { accept: headers.get(header::ACCEPT).cloned(), pretty }
    }

    /// Chooses the form that is liked best among those on offer.
    pub(crate) fn choose(&self, offer: Offer<'_>) -> Result<Output> {
        let accept = self.accept.as_ref().and_then(|value| value.to_str().ok());
        let output = offer.accept(accept)?;
        Ok(Output { pretty: output.pretty || (self.pretty && !offer.stream), ..output })
    }

    /// Refuses a request that likes none of the media types of its route, whatever their
    /// parameters.
    pub(crate) fn check_route(&self, route: Route) -> Result<()> {
        let accept = self.accept.as_ref().and_then(|value| value.to_str().ok()).unwrap_or("");
        let (types, streams): (&[&str], &[&str]) = match route {
            Route::Json => (&MEDIA_TYPES[..1], &[]),
            Route::Object => (&MEDIA_TYPES, &[]),
            Route::Collection => (&MEDIA_TYPES, &STREAM_TYPES),
        };
        let likes = |clause: &str| {
            let media_type = clause.split(';').next().unwrap_or("").trim();
            matches!(media_type, "" | "*/*" | "application/*") || types.contains(&media_type)
        };
        if accept.split(',').any(likes) {
            return Ok(());
        }
        Err(Status::no_route_writes(&[types, streams].concat()))
    }

    /// The form for a document that has no kind of its own. `shapes` are the transformations that
    /// its path knows besides the document itself.
    pub(crate) fn choose_document(&self, shapes: &[Shape]) -> Result<Output> {
        self.choose(Offer { shapes, protobuf: true, stream: false })
    }

    /// The form for a page of text, which can be asked for as a document of a kind as well, and in
    /// which version; `None` is the text.
    pub(crate) fn choose_page(
        &self,
        kind: &str,
        group: &str,
        versions: &[&'static str],
    ) -> Result<Option<(Output, &'static str)>> {
        let accept = self.accept.as_ref().and_then(|value| value.to_str().ok());
        let accept = accept.unwrap_or("").trim();
        if accept.is_empty() {
            return Ok(None);
        }
        for clause in Clause::all(accept).iter().filter(|clause| clause.stream.is_empty()) {
            let version = versions.iter().find(|it| clause.convert == [kind, group, **it]);
            let encodings = [Encoding::Json, Encoding::Yaml];
            let encoding = encodings.into_iter().find(|encoding| clause.allows(*encoding));
            if let (Some(version), Some(encoding)) = (version, encoding) {
                let pretty = clause.pretty || self.pretty;
                return Ok(Some((Output { encoding, pretty, ..Output::default() }, *version)));
            }
            let is_text = matches!(clause.media_type, "*/*" | "text/*" | "text/plain");
            if is_text && clause.convert == [""; 3] {
                return Ok(None);
            }
        }
        Err(Status::not_acceptable(&[MEDIA_TYPES[0], MEDIA_TYPES[1], "text/plain"]))
    }

    /// The form for a failure: what is not on offer is told in JSON, for people.
    pub(crate) fn choose_failure(&self) -> Output {
        let plain = Output { pretty: true, ..Output::default() };
        let output = self.choose_document(&[]).unwrap_or(plain);
        Output { shape: Shape::Object, ..output }
    }
}

impl Offer<'_> {
    /// Chooses the form that the `Accept` header likes best among those on offer.
    pub(crate) fn accept(&self, header: Option<&str>) -> Result<Output> {
        let header = header.unwrap_or("").trim();
        if matches!(header, "" | "application/json" | "*/*") {
            return Ok(Output::default());
        }
        let clauses = Clause::all(header);
        let mut outputs = clauses.iter().filter_map(|clause| self.find(clause));
        let output = outputs.next().ok_or_else(|| {
            Status::not_acceptable(if self.stream { &STREAM_TYPES } else { &MEDIA_TYPES })
        })?;
        Ok(Output { pretty: output.pretty && !self.stream, ..output })
    }

    /// The first form on offer that an alternative allows.
    fn find(&self, clause: &Clause<'_>) -> Option<Output> {
        let (shape, meta) = clause.shape()?;
        let of_list = clause.convert[0] == "PartialObjectMetadataList";
        let pretty = clause.pretty;
        let outputs =
            Encoding::ALL.map(|encoding| Output { encoding, shape, meta, of_list, pretty });
        outputs.into_iter().find(|output| clause.allows(output.encoding) && self.has(*output))
    }

    fn has(&self, Output { encoding, shape, .. }: Output) -> bool {
        let possible = match (shape, encoding) {
            (Shape::Object, Encoding::Protobuf) => self.protobuf,
            (Shape::Table | Shape::Discovery, Encoding::Protobuf) => false,
            _ => true,
        };
        let known = shape == Shape::Object || self.shapes.contains(&shape);
        possible && known && !(self.stream && encoding == Encoding::Yaml)
    }
}

/// One alternative of an `Accept` header.
struct Clause<'a> {
    media_type: &'a str,
    quality: f32,
    convert: [&'a str; 3],
    stream: &'a str,
    pretty: bool,
}

impl<'a> Clause<'a> {
    /// The alternatives of a header, the one that is liked best first.
    fn all(header: &'a str) -> Vec<Self> {
        let mut clauses: Vec<Self> = header.split(',').map(Self::parse).collect();
        clauses.sort_by(|a, b| {
            b.quality.total_cmp(&a.quality).then(a.wildcards().cmp(&b.wildcards()))
        });
        clauses.retain(|clause| clause.quality > 0.0);
        clauses
    }

    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or("");
        let convert = [""; 3];
        let stream = "";
        let pretty = false;
        let mut clause = Self { media_type, quality: 1.0, convert, stream, pretty };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "q" => clause.quality = value.trim().parse().unwrap_or(0.0),
                "as" => clause.convert[0] = value.trim(),
                "g" => clause.convert[1] = value.trim(),
                "v" => clause.convert[2] = value.trim(),
                "stream" => clause.stream = value.trim(),
                "pretty" => clause.pretty = value.trim() == "1",
                _ => {}
            }
        }
        clause
    }

    /// Of two alternatives of the same quality, the more specific one is preferred.
    fn wildcards(&self) -> usize {
        self.media_type.matches('*').count()
    }

    /// What it asks to see; `None` if nobody knows that.
    fn shape(&self) -> Option<(Shape, MetaVersion)> {
        let [kind, group, version] = self.convert;
        let meta = match version {
            "v1" => Some(MetaVersion::V1),
            "v1beta1" => Some(MetaVersion::V1beta1),
            _ => None,
        };
        match (kind, group) {
            ("", "") if version.is_empty() => Some((Shape::Object, MetaVersion::V1)),
            ("Table", "meta.k8s.io") => Some((Shape::Table, meta?)),
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io") => {
                Some((Shape::Metadata, meta?))
            }
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io") if version == "v2" => {
                Some((Shape::Discovery, MetaVersion::V1))
            }
            _ => None,
        }
    }

    fn allows(&self, encoding: Encoding) -> bool {
        let streams = match self.stream {
            "" => true,
            stream => stream == "watch" && encoding != Encoding::Yaml,
        };
        let matches = match self.media_type {
            "*/*" | "application/*" => true,
            media_type => media_type == encoding.media_type(),
        };
        streams && matches
    }
}

/// Reads a body into a document; it must be an object.
pub(crate) fn decode(content_type: Option<&str>, body: &[u8]) -> Result<Value> {
    let value = match media_type(content_type) {
        "" | "application/json" => decode_json(body)?,
        "application/yaml" => decode_yaml(body)?,
        protobuf::MEDIA_TYPE => decode_protobuf(body)?,
        _ => return Err(unsupported()),
    };
    match value {
        Value::Object(_) => Ok(value),
        // Nothing is an object without fields.
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        value => Err(Status::bad_request(no_object(&value))),
    }
}

/// Why a body that is no object has no kind, in the words of Go.
pub(crate) fn no_object(value: &Value) -> String {
    let found = patch::json_type(value);
    format!(
        "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go \
         value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
         Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

fn unsupported() -> Status {
    Status::unsupported_media_type(&MEDIA_TYPES)
}

/// The media type of a `Content-Type` header, without its parameters.
pub(crate) fn media_type(content_type: Option<&str>) -> &str {
    content_type.unwrap_or("").split(';').next().unwrap_or("").trim()
}

fn decode_json(body: &[u8]) -> Result<Value> {
    serde_json::from_slice(body).map_err(|error| {
        let why = syntax::complaint(body, &error);
        Status::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
    })
}

/// Reads YAML, of which JSON is a part.
pub(crate) fn decode_yaml(body: &[u8]) -> Result<Value> {
    yaml::read(body).map_err(|error| {
        let why = yaml::complaint(body, &error);
        Status::bad_request(format!("error converting YAML to JSON: {why}"))
    })
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
    use super::{Encoding, Offer, Output, Shape, Wishes, decode};
    use crate::status::Result;
    use http::{HeaderMap, header};
    use serde_json::json;

    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    const TABLE: &str = ";as=Table;v=v1;g=meta.k8s.io";
    const METADATA: &str = ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    const BUILTIN: Offer<'_> =
        Offer { shapes: &[Shape::Table, Shape::Metadata], protobuf: true, stream: false };
    const CUSTOM: Offer<'_> = Offer { protobuf: false, ..BUILTIN };

    fn accept(accept: Option<&str>, shapes: &[Shape]) -> Result<Output> {
        Offer { shapes, protobuf: true, stream: false }.accept(accept)
    }

    fn wishes(query: &str, headers: &[(header::HeaderName, &str)]) -> Wishes {
        let values = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
        let headers: HeaderMap = values.collect();
        Wishes::of(&format!("/version{query}").parse().unwrap(), &headers)
    }

    #[test]
    fn json_is_indented_for_people_and_for_who_asks() {
        let curl = (header::USER_AGENT, "curl/8.5.0");
        let pretty = (header::ACCEPT, "application/json;pretty=1");
        for (query, headers, expected) in [
            ("", vec![], false),
            ("?pretty=true", vec![], true),
            ("?pretty=T", vec![], true),
            ("?pretty=yes", vec![], false),
            ("?pretty", vec![], false),
            ("", vec![curl.clone()], true),
            ("?pretty", vec![curl.clone()], true),
            ("?pretty=0", vec![curl.clone()], false),
            ("", vec![(header::USER_AGENT, "Wget/1.21")], true),
            ("", vec![(header::USER_AGENT, "Mozilla/5.0 (X11)")], true),
            ("", vec![(header::USER_AGENT, "Mozilla/4.0")], false),
            ("", vec![(header::USER_AGENT, "kubectl/v1.36 curl")], false),
            ("?pretty=0", vec![pretty.clone()], true),
            ("", vec![(header::ACCEPT, "application/json;pretty=true")], false),
        ] {
            let wishes = wishes(query, &headers);
            let output = wishes.choose_document(&[]).unwrap();
            assert_eq!(output.pretty, expected, "{query} {headers:?}");
            assert_eq!(wishes.choose_failure().pretty, expected);
            assert!(!wishes.choose(Offer { stream: true, ..BUILTIN }).unwrap().pretty);
        }
    }

    fn chosen(offer: Offer<'_>, header: &str) -> (Encoding, Shape) {
        let output = offer.accept(Some(header)).unwrap();
        (output.encoding, output.shape)
    }

    #[test]
    fn builtin_kinds_are_protobuf_where_that_is_liked_best() {
        assert_eq!(chosen(BUILTIN, PROTOBUF), (Encoding::Protobuf, Shape::Object));
        let both = format!("{PROTOBUF}, */*");
        assert_eq!(chosen(BUILTIN, &both), (Encoding::Protobuf, Shape::Object));
        let second = format!("application/json,{PROTOBUF}");
        assert_eq!(chosen(BUILTIN, &second), (Encoding::Json, Shape::Object));
        let less = format!("{PROTOBUF};q=0.5,application/yaml;q=0.6");
        assert_eq!(chosen(BUILTIN, &less), (Encoding::Yaml, Shape::Object));
    }

    #[test]
    fn custom_resources_have_no_protobuf_but_their_metadata_has() {
        let refused = CUSTOM.accept(Some(PROTOBUF)).unwrap_err();
        assert_eq!(refused.code, 406);
        assert_eq!(
            refused.message,
            "only the following media types are accepted: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf"
        );
        let both = format!("{PROTOBUF},application/json");
        assert_eq!(chosen(CUSTOM, &both), (Encoding::Json, Shape::Object));
        let metadata = format!("{PROTOBUF}{METADATA},application/json{METADATA}");
        assert_eq!(chosen(CUSTOM, &metadata), (Encoding::Protobuf, Shape::Metadata));
    }

    #[test]
    fn a_table_is_never_protobuf() {
        let refused = BUILTIN.accept(Some(&format!("{PROTOBUF}{TABLE}"))).unwrap_err();
        assert_eq!(refused.code, 406);
        let both = format!("{PROTOBUF}{TABLE},application/json{TABLE},application/json");
        assert_eq!(chosen(BUILTIN, &both), (Encoding::Json, Shape::Table));
    }

    #[test]
    fn events_are_json_or_protobuf() {
        let stream = Offer { stream: true, ..BUILTIN };
        let header = format!("{PROTOBUF};stream=watch");
        assert_eq!(chosen(stream, &header), (Encoding::Protobuf, Shape::Object));
        let header = "application/yaml, application/json;stream=watch";
        assert_eq!(chosen(stream, header), (Encoding::Json, Shape::Object));
        let refused = stream.accept(Some("application/yaml")).unwrap_err();
        assert_eq!(
            refused.message,
            "only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch"
        );
        assert_eq!(BUILTIN.accept(Some("application/json;stream=x")).unwrap_err().code, 406);
    }

    #[test]
    fn quality_decides_and_wildcards_mean_json() {
        let yaml = accept(Some("application/json;q=0.5, application/yaml"), &[]).unwrap();
        assert_eq!(yaml.encoding, Encoding::Yaml);
        assert_eq!(accept(Some("text/html, */*;q=0.8"), &[]).unwrap().encoding, Encoding::Json);
        assert_eq!(accept(Some("*/*, application/yaml"), &[]).unwrap().encoding, Encoding::Yaml);
        for header in ["application/json;q=0", "application/cbor", "application/cbor-seq", "a"] {
            assert_eq!(accept(Some(header), &[]).unwrap_err().code, 406, "{header}");
        }
        let cbor = accept(Some("application/cbor, application/json;q=0.9"), &[]).unwrap();
        assert_eq!(cbor.encoding, Encoding::Json);
    }

    #[test]
    fn kubectl_gets_tables_where_they_exist_and_objects_elsewhere() {
        let header = format!("application/json{TABLE},application/json");
        assert_eq!(accept(Some(&header), &[Shape::Table]).unwrap().shape, Shape::Table);
        assert_eq!(accept(Some(&header), &[]).unwrap().shape, Shape::Object);
    }

    #[test]
    fn a_failure_is_written_as_asked_for_or_else_in_json() {
        let failure =
            |accept: &str| wishes("", &[(header::ACCEPT, accept)]).choose_failure().encoding;
        assert_eq!(failure(PROTOBUF), Encoding::Protobuf);
        assert_eq!(failure("text/html"), Encoding::Json);
        assert_eq!(failure(&format!("application/yaml{TABLE}")), Encoding::Json);
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
        for other in ["application/cbor", "application/cbor-seq", "text/plain", "*/*"] {
            assert_eq!(decode(Some(other), b"{}").unwrap_err().code, 415);
        }
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
