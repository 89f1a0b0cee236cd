//! How one client sees stored objects: in which version, in which shape, in which encoding.
//!
//! JSON is spliced from stored bytes and protobuf is written straight from them; tables and YAML
//! are the forms that decode. Gets, lists and [watches](crate::read::watch) all write through here.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use steersman_rules::metadata::MetaVersion;
use steersman_rules::protobuf::{Format, ListFields, ProtobufError, Sealed};
use steersman_rules::resource::Resource;
use steersman_rules::table::{self, IncludeObject, TableForm};
use steersman_store::Revision;

use super::Page;
use super::body::PIECE;
use super::indent::Indenter;
use crate::call::Call;
use crate::clock::Clock;
use crate::document::{self, Stored, write_json};
use crate::negotiate::{Encoding, Output, Shape};
use crate::status::{Result, Status};

/// How one client sees stored objects.
pub(crate) struct View {
    pub(crate) resource: Arc<Resource>,
    /// The version the client speaks, as objects carry it.
    pub(crate) api_version: String,
    pub(crate) output: Output,
    include: IncludeObject,
    /// Whether a table has said what its columns are.
    headed: AtomicBool,
    clock: Clock,
    /// How objects are written in protobuf, if they are.
    format: Option<Format>,
}

impl View {
    /// What the caller wants to see.
    pub(crate) fn of(call: &Call) -> Result<Self> {
        let format = match call.output {
            Output { encoding: Encoding::Protobuf, shape: Shape::Metadata, .. } => {
                Format::metadata()
            }
            Output { encoding: Encoding::Protobuf, .. } => {
                Format::of(&call.api_version, &call.resource.kind)
            }
            _ => None,
        };
        Ok(Self {
            resource: Arc::clone(&call.resource),
            api_version: call.api_version.clone(),
            output: call.output,
            include: match call.output.shape {
                Shape::Table => call.include_object()?,
                _ => IncludeObject::None,
            },
            headed: AtomicBool::new(false),
            clock: Arc::clone(&call.server.clock),
            format,
        })
    }

    /// The same in JSON, on one line.
    pub(super) fn plain(call: &Call) -> Result<Self> {
        let output = Output { encoding: Encoding::Json, pretty: false, ..call.output };
        Ok(Self { output, format: None, ..Self::of(call)? })
    }

    /// An object as an answer.
    pub(super) fn object(&self, object: &Stored) -> Result<Bytes> {
        if let Some(format) = self.format {
            let (json, version) = self.text(object)?;
            let write = |out: &mut Vec<u8>| format.write(out, &json, version.as_deref());
            return Ok(self.sealed().bytes(json.len(), write)?);
        }
        let mut out = Vec::with_capacity(object.bytes.len() + 40);
        self.write_json(&mut out, object)?;
        Ok(encoded(self.output, out))
    }

    /// Objects as a list.
    pub(super) fn list(&self, page: &Page) -> Result<Bytes> {
        let metadata = page.metadata();
        let capacity = page.objects.iter().map(|o| o.bytes.len() + 40).sum();
        if let Some(format) = self.format {
            return self.protobuf_list(format, page, &metadata, capacity);
        }
        let mut out = Vec::with_capacity(capacity);
        if self.output.shape == Shape::Table {
            let objects = page.objects.iter().map(|object| object.decode(&self.api_version));
            self.write_table(&mut out, &objects.collect::<Result<Vec<_>>>()?, metadata);
            return Ok(encoded(self.output, out));
        }
        self.write_list_head(&mut out, page);
        for (index, object) in page.objects.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            self.write_item(&mut out, object);
        }
        out.extend_from_slice(b"]}");
        Ok(encoded(self.output, out))
    }

    /// Whether a list can be written piece by piece: as JSON, which needs no lengths in front.
    pub(super) fn comes_in_pieces(&self) -> bool {
        self.output.encoding == Encoding::Json && self.output.shape != Shape::Table
    }

    /// Objects as a list, piece by piece; they share their bytes with the store until then.
    pub(super) fn pieces(self, page: Page) -> impl Iterator<Item = Bytes> + Send + 'static {
        let mut out = Vec::with_capacity(PIECE * 2);
        self.write_list_head(&mut out, &page);
        let mut objects = page.objects.into_iter().enumerate();
        let mut ended = false;
        std::iter::from_fn(move || {
            if ended {
                return None;
            }
            while out.len() < PIECE {
                let Some((index, object)) = objects.next() else {
                    out.extend_from_slice(b"]}");
                    ended = true;
                    break;
                };
                if index > 0 {
                    out.push(b',');
                }
                self.write_item(&mut out, &object);
            }
            Some(std::mem::take(&mut out).into())
        })
    }

    /// Lists of custom resources say how to go on even where they end: Kubernetes has no struct
    /// for them whose fields could be left out.
    fn write_list_head(&self, out: &mut Vec<u8>, page: &Page) {
        let Sealed { api_version, kind } = self.sealed_list();
        let mut metadata = page.metadata();
        let is_custom = self.resource.is_custom();
        if is_custom && self.output.shape == Shape::Object && page.continue_token.is_none() {
            metadata["continue"] = "".into();
        }
        let head = format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"items":["#
        );
        out.extend_from_slice(head.as_bytes());
    }

    fn protobuf_list(
        &self,
        format: Format,
        page: &Page,
        metadata: &Value,
        capacity: usize,
    ) -> Result<Bytes> {
        self.sealed_list().bytes(capacity, |out| {
            let beta =
                self.output.shape == Shape::Metadata && self.output.meta == MetaVersion::V1beta1;
            let fields = if beta { ListFields::ITEMS_FIRST } else { ListFields::STANDARD };
            fields.write_metadata(out, metadata.to_string().as_bytes())?;
            for object in &page.objects {
                let (json, version) = self.text(object)?;
                fields.write_item(out, format, &json, version.as_deref())?;
            }
            Ok(())
        })
    }

    /// Appends an object as JSON.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>, object: &Stored) -> Result<()> {
        match self.output.shape {
            Shape::Table => {
                let metadata = Page { revision: object.revision, ..Page::default() }.metadata();
                self.write_table(out, &[object.decode(&self.api_version)?], metadata);
            }
            _ => self.write_plain(out, object),
        }
        Ok(())
    }

    /// Appends an object, or its metadata, as JSON.
    fn write_plain(&self, out: &mut Vec<u8>, object: &Stored) {
        match self.output.shape {
            Shape::Metadata => {
                self.shown(object).write_metadata_to(out, self.output.meta.api_version());
            }
            _ => object.write_to(out, &self.api_version),
        }
    }

    /// Appends an object, or its metadata, as an item of a list. Items of a built-in kind do not
    /// repeat what they are.
    fn write_item(&self, out: &mut Vec<u8>, object: &Stored) {
        let is_custom = self.resource.is_custom();
        match self.output.shape {
            Shape::Object if !is_custom => object.write_item_to(out, &self.api_version),
            _ => self.write_plain(out, object),
        }
    }

    /// Appends an object as protobuf, in its envelope.
    pub(crate) fn write_protobuf(&self, out: &mut Vec<u8>, object: &Stored) -> Result<()> {
        let Some(format) = self.format else { return Ok(()) };
        let (json, version) = self.text(object)?;
        Ok(self.sealed().write(out, |out| format.write(out, &json, version.as_deref()))?)
    }

    /// Appends objects as a table, as JSON.
    fn write_table(&self, out: &mut Vec<u8>, objects: &[Value], metadata: Value) {
        self.write_table_with(self.include, out, objects, metadata);
    }

    /// Appends a bookmark as a table with a row. That the initial events are over is told by its
    /// annotation, which is there even for those who want no objects.
    pub(crate) fn write_bookmark_table(
        &self,
        out: &mut Vec<u8>,
        bookmark: Value,
        metadata: Value,
        initial_end: bool,
    ) {
        let include = match self.include {
            IncludeObject::None if initial_end => IncludeObject::Metadata,
            include => include,
        };
        self.write_table_with(include, out, &[bookmark], metadata);
    }

    fn write_table_with(
        &self,
        include: IncludeObject,
        out: &mut Vec<u8>,
        objects: &[Value],
        metadata: Value,
    ) {
        let now = (self.clock)();
        let form = TableForm {
            include,
            api_version: self.output.meta.api_version(),
            headers: !self.headed.swap(true, Ordering::Relaxed),
        };
        let objects: Cow<'_, [Value]> = match include {
            IncludeObject::Metadata if self.hides() => {
                let mut objects = objects.to_vec();
                objects.iter_mut().for_each(|object| self.hide(object));
                objects.into()
            }
            _ => objects.into(),
        };
        let table = table::render(&self.resource.columns, &objects, metadata, form, now);
        write_json(out, &table);
    }

    /// An object as it is shown: metadata alone lacks what is a field of the whole.
    fn shown<'a>(&self, object: &'a Stored) -> Cow<'a, Stored> {
        if self.output.shape != Shape::Metadata || !self.hides() {
            return Cow::Borrowed(object);
        }
        let shown = object.decode_as_stored().and_then(|mut document| {
            self.hide(&mut document);
            Ok(Stored { bytes: document::encode(&document)?, revision: object.revision })
        });
        shown.map_or(Cow::Borrowed(object), Cow::Owned)
    }

    fn hides(&self) -> bool {
        !self.resource.rules.annotated_fields().is_empty()
    }

    fn hide(&self, object: &mut Value) {
        let Some(metadata) = object["metadata"].as_object_mut() else { return };
        let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut)
        else {
            return;
        };
        let hidden = self.resource.rules.annotated_fields();
        annotations.retain(|name, _| !hidden.contains(&name.as_str()));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }

    /// What stands on an object.
    pub(crate) fn sealed(&self) -> Sealed<'_> {
        match self.output.shape {
            Shape::Metadata => {
                let api_version = self.output.meta.api_version();
                Sealed { api_version, kind: "PartialObjectMetadata" }
            }
            _ => Sealed { api_version: &self.api_version, kind: &self.resource.kind },
        }
    }

    fn sealed_list(&self) -> Sealed<'_> {
        match self.output.shape {
            Shape::Metadata => {
                let api_version = self.output.meta.api_version();
                Sealed { api_version, kind: "PartialObjectMetadataList" }
            }
            _ => Sealed { api_version: &self.api_version, kind: &self.resource.list_kind },
        }
    }

    /// The text to write an object from, and the `resourceVersion` if the text lacks it. Only an
    /// object that was stored in another version is decoded.
    fn text(&self, object: &Stored) -> Result<(Bytes, Option<String>)> {
        let object = &*self.shown(object);
        if self.output.shape == Shape::Metadata || object.speaks(&self.api_version) {
            let told = object.revision != Revision(0);
            return Ok((object.bytes.clone(), told.then(|| object.revision.to_string())));
        }
        let mut json = Vec::new();
        write_json(&mut json, &object.decode(&self.api_version)?);
        Ok((json.into(), None))
    }
}

/// A document that is not stored as a client wants to see it: of those, a Scale has columns, and
/// all but a Status have metadata.
pub(super) fn shaped(call: &Call, document: Value) -> Result<Value> {
    match (call.output.shape, document["kind"].as_str()) {
        (Shape::Metadata, kind) if kind != Some("Status") => {
            return Ok(json!({
                "kind": "PartialObjectMetadata", "apiVersion": call.output.meta.api_version(),
                "metadata": document.get("metadata").unwrap_or(&json!({})),
            }));
        }
        (Shape::Table, Some("Scale")) => {}
        _ => return Ok(document),
    }
    let metadata = json!({"resourceVersion": document["metadata"]["resourceVersion"]});
    let columns = table::scale_columns();
    let now = (call.server.clock)();
    let api_version = call.output.meta.api_version();
    let form = TableForm { include: call.include_object()?, api_version, headers: true };
    Ok(table::render(&columns, &[document], metadata, form, now))
}

/// A document that is not stored, in a form that its kind has: what has no protobuf form is JSON.
pub(super) fn document(output: Output, value: &impl Serialize) -> (Encoding, Bytes) {
    let json = serde_json::to_vec(value).expect("writing to memory cannot fail");
    if output.encoding != Encoding::Protobuf {
        return (output.encoding, encoded(output, json));
    }
    match protobuf_document(&json) {
        Some(bytes) => (Encoding::Protobuf, bytes),
        None => (Encoding::Json, encoded(Output { encoding: Encoding::Json, ..output }, json)),
    }
}

fn protobuf_document(json: &[u8]) -> Option<Bytes> {
    let value: Value = serde_json::from_slice(json).ok()?;
    let sealed = Sealed::of(&value)?;
    let format = match sealed.kind {
        "PartialObjectMetadata" => Format::metadata()?,
        kind => Format::of(sealed.api_version, kind)?,
    };
    let written = sealed.bytes(json.len(), |out| format.write(out, json, None));
    written.inspect_err(|error| tracing::error!(?sealed, %error, "cannot encode response")).ok()
}

fn encoded(output: Output, json: Vec<u8>) -> Bytes {
    match output.encoding {
        Encoding::Json if output.pretty => return Indenter::whole(&json),
        Encoding::Json | Encoding::Protobuf => return json.into(),
        Encoding::Yaml => {}
    }
    let value: Value = serde_json::from_slice(&json).unwrap_or_default();
    serde_saphyr::to_string(&value).unwrap_or_default().into()
}

/// What is stored and cannot be written is a mistake of the server.
impl From<ProtobufError> for Status {
    fn from(error: ProtobufError) -> Self {
        Self::internal(&format!("stored object: {error}"))
    }
}
