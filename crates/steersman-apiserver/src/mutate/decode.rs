//! From a body to a document of the right type, with what the client should know about it.
//!
//! Bodies of a resource's own kind come through [`object`], configurations to apply through
//! [`configured`], what a patch makes of an object through [`patched`], and bodies of other kinds
//! through [`part`]. What strict decoding complains about is refused, told or passed over in
//! [`report`], as the query wants.

use serde_json::{Map, Value};
use steersman_rules::body::{Finding, json, syntax, yaml};
use steersman_rules::field::FieldError;
use steersman_rules::metadata;
use steersman_rules::patch::json_type as patch_type;
use steersman_rules::protobuf;
use steersman_rules::resource::Named;
use steersman_rules::schema::Schema;

use super::language::Language;
use super::options::{self, FieldValidation};
use crate::call::Call;
use crate::negotiate;
use crate::status::{Result, Status};
use crate::write::OTHER_NAMESPACE;

/// How much of a body that cannot be read is shown to its sender.
const SHOWN_MAX: usize = 30;

/// Reads the body as an object of the resource's kind.
pub(super) fn object(call: &Call) -> Result<Value> {
    options::check(call)?;
    let (object, found) = read(call)?;
    let mut object = accept(call, object, &found, |why| malformed(call, why))?;
    let again = metadata::drop_repeated_owners(&mut object);
    warn_of_owners(call, &again, "entries");
    Ok(object)
}

/// Tells that owners stood twice.
fn warn_of_owners(call: &Call, again: &[String], when: &str) {
    if !again.is_empty() {
        call.warn(format!(
            ".metadata.ownerReferences contains duplicate {when}; API server dedups owner \
             references in 1.20+, and may reject such requests as early as 1.24; please fix your \
             requests; duplicate UID(s) observed: {}",
            again.join(", ")
        ));
    }
}

/// Checks type and fields of a configuration, and drops what the schema does not know. The
/// object is restored from it, so that what does not fit is told as of a strategic patch.
pub(super) fn configured(call: &Call, mut object: Value) -> Result<Value> {
    let found = pruned(call, &mut object);
    call.resource.schema.wrap_integers(&mut object);
    let kind = || {
        let api_version = call.api_version.as_str();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        format!("{group}/{version}, Kind={}", call.resource.kind)
    };
    let named = |object: &Value| {
        let [namespace, name] = ["namespace", "name"].map(|f| metadata::text(object, f));
        format!("{namespace}/{name}; {}", kind())
    };
    if let Some(mistake) = call.resource.schema.restore_mistake(&object) {
        let (named, kind) = (named(&object), kind());
        return Err(Status::failure(format!(
            "failed to convert new object ({named}) to proper version: unable to convert \
             unstructured object to {kind}: {mistake}"
        )));
    }
    if let Some(mistake) = call.resource.rules.unreadable(&object) {
        let named = named(&object);
        return Err(Status::failure(format!(
            "failed to convert to unversioned ({named}): {mistake}"
        )));
    }
    accept(call, object, &found, |why| malformed(call, why))
}

/// Checks what a patch has made of an object. `found` is what is wrong with the patch itself;
/// what cannot be decoded now is an unprocessable patch, which is then `shown`. A strategic patch
/// makes a document from which the object is restored, the others make JSON.
pub(super) fn patched(
    call: &Call,
    old: &Value,
    mut object: Value,
    language: Language,
    mut found: Vec<Finding>,
    shown: impl Fn() -> String,
) -> Result<Value> {
    let refuse = |why: &str| {
        let error = FieldError::invalid("patch", &shown().into(), why);
        Status::invalid(Named { group: "", resource: "", name: "" }, &[error])
    };
    let untouched = untouched(call, old, &mut object);
    if language == Language::Strategic {
        // What it says of its type is passed over: it is restored as what the path says.
        for field in ["apiVersion", "kind"] {
            object[field] = Value::Null;
        }
        call.resource.schema.wrap_integers(&mut object);
        if let Some(mistake) = call.resource.schema.restore_mistake(&object) {
            return Err(refuse(&mistake));
        }
        if let Some(mistake) = call.resource.rules.unreadable(&object) {
            return Err(Status::failure(mistake));
        }
    }
    if let Err(wrong) = check_type(call, &mut object) {
        return Err(wrong.of_patched(call, &object, refuse));
    }
    found.extend(pruned(call, &mut object));
    let mut object = accept(call, object, &found, refuse)?;
    let again = metadata::drop_repeated_owners(&mut object);
    warn_of_owners(call, &again, "entries after mutating admission happens");
    if let Value::Object(fields) = &mut object {
        fields.extend(untouched);
    }
    Ok(object)
}

/// Takes out of a patched object what is as it was: of a built-in kind, that was looked at when it
/// was written. Most patches are of a status, and most of the object is not.
fn untouched(call: &Call, old: &Value, object: &mut Value) -> Map<String, Value> {
    let (false, Value::Object(fields)) = (call.resource.is_custom(), object) else {
        return Map::new();
    };
    let same = fields.iter().filter(|(field, value)| {
        !matches!(field.as_str(), "apiVersion" | "kind" | "metadata")
            && old.get(field) == Some(value)
    });
    let same: Vec<String> = same.map(|(field, _)| field.clone()).collect();
    same.iter().filter_map(|field| fields.remove_entry(field)).collect()
}

/// What strict decoding complains about in a patch: of JSON patch its operations, of the others
/// fields that stand twice. To find these, a patch is read: if it is a merge patch, that is it.
pub(super) fn patch_findings(call: &Call, language: Language) -> (Option<Value>, Vec<Finding>) {
    let (document, found) = match language {
        Language::Json => (None, json::operations(&call.body)),
        _ => json::plain(&call.body)
            .map(|(document, found)| (Some(document), found))
            .unwrap_or_default(),
    };
    let document = document.filter(|it| language == Language::Merge && it.is_object());
    match FieldValidation::of(call) {
        FieldValidation::Ignore => (document, Vec::new()),
        _ => (document, found),
    }
}

/// Reads a configuration to apply, and tells the keys that stand twice in it, or refuses it for
/// them. Most clients write JSON, of which YAML is an extension; as such it is read much faster.
pub(super) fn configuration(call: &Call) -> Result<Value> {
    let body = &call.body;
    let json =
        if body.trim_ascii_start().starts_with(b"{") { json::plain(body).ok() } else { None };
    if let Some((value, repeated)) = json {
        if !repeated.is_empty() {
            report_repeated_keys(call)?;
        }
        return Ok(value);
    }
    let undecodable = |why: String| Status::bad_request(format!("error decoding YAML: {why}"));
    let value = yaml::read(body).map_err(|error| {
        undecodable(format!("error converting YAML to JSON: {}", yaml::complaint(body, &error)))
    })?;
    match &value {
        Value::Object(_) => {}
        Value::Null => return Err(Status::bad_request("invalid object type: /, Kind=")),
        other => {
            return Err(undecodable(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go \
                 value of type map[string]interface {{}}",
                patch_type(other)
            )));
        }
    }
    report_repeated_keys(call)?;
    Ok(value)
}

fn report_repeated_keys(call: &Call) -> Result<()> {
    if FieldValidation::of(call) == FieldValidation::Ignore {
        return Ok(());
    }
    report(call, &yaml::repeated(&call.body), |why| {
        let why = why.trim_start_matches("strict decoding error: ");
        Status::bad_request(format!(
            "error strict decoding patch: error converting YAML to JSON: {why}"
        ))
    })
}

/// Reads a body that is not the resource's own kind, such as a Scale.
pub(super) fn other(call: &Call, api_version: &str, kind: &str) -> Result<Value> {
    let mut body = call.document().map_err(|refused| match refused.code {
        400 => {
            let why = refused.message.trim_start_matches("error converting YAML to JSON: ");
            unrecognised(call, kind, why)
        }
        _ => refused,
    })?;
    let given = |field: &str, wanted: &str| match body[field].as_str() {
        None | Some("") => wanted.to_owned(),
        Some(given) => given.to_owned(),
    };
    let sent_version = given("apiVersion", api_version);
    let sent_kind = given("kind", kind);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    // The old version of an Eviction is still taken.
    let old = (sent_version.as_str(), kind) == ("policy/v1beta1", "Eviction");
    if sent_kind != kind || (sent_version != api_version && !old) {
        return Err(cannot_handle(
            (&sent_version, &sent_kind),
            kind,
            &unconvertible(group, kind, &sent_version, &sent_kind),
        ));
    }
    part(call, Schema::builtin(group, version, kind), kind, &mut body)?;
    let namespace = metadata::text(&body, "namespace");
    if !namespace.is_empty() && namespace != call.namespace() {
        return Err(Status::bad_request(OTHER_NAMESPACE));
    }
    Ok(body)
}

/// Checks the types and fields of a body that is not the resource's own kind, such as a Scale.
pub(super) fn part(
    call: &Call,
    schema: Option<Schema>,
    kind: &str,
    body: &mut Value,
) -> Result<()> {
    let schema = schema.ok_or_else(|| Status::internal("a kind without a schema"))?;
    schema.normalise(body);
    let refuse = |why: &str| cannot_handle(("v1", kind), kind, why);
    match schema.type_errors(body).first() {
        None => known_fields(call, &schema, body, refuse),
        Some(error) => Err(refuse(error)),
    }
}

/// Takes the fields out of a body that its kind does not have, and tells of them.
fn known_fields(
    call: &Call,
    schema: &Schema,
    body: &mut Value,
    refuse: impl FnOnce(&str) -> Status,
) -> Result<()> {
    let unknown = schema.unknown_fields(body).into_iter().map(Finding::Unknown);
    report(call, &unknown.collect::<Vec<_>>(), refuse)?;
    schema.prune(body);
    Ok(())
}

/// Checks the types of what a patch has made of something that is not the resource's own kind.
pub(super) fn patched_part(
    call: &Call,
    schema: Option<Schema>,
    (api_version, kind): (&str, &str),
    language: Language,
    patched: &mut Value,
    shown: impl Fn() -> String,
) -> Result<()> {
    let schema = schema.ok_or_else(|| Status::internal("a kind without a schema"))?;
    schema.normalise(patched);
    let text = |field: &str| patched[field].as_str().unwrap_or_default();
    let sent_version = text("apiVersion");
    let sent_kind = text("kind");
    let mistake = match language {
        // It is restored as what the path says, whatever it says of itself.
        Language::Strategic => schema.restore_mistake(patched),
        _ if (sent_version, sent_kind) != (api_version, kind) => {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            Some(unconvertible(group, kind, sent_version, sent_kind))
        }
        _ => schema.type_errors(patched).first().cloned(),
    };
    let refuse = |why: &str| {
        let error = FieldError::invalid("patch", &shown().into(), why);
        Status::invalid(Named { group: "", resource: "", name: "" }, &[error])
    };
    match mistake {
        None => known_fields(call, &schema, patched, refuse),
        Some(mistake) => Err(refuse(&mistake)),
    }
}

/// The document of the body without its unknown fields, and what was found in it.
fn read(call: &Call) -> Result<(Value, Vec<Finding>)> {
    let (mut object, mut found) = match negotiate::media_type(call.content_type()) {
        "" | "application/json" => {
            let read = json::read(&call.body, &call.resource.schema);
            let (object, found) = read.map_err(|error| {
                let why = syntax::complaint(&call.body, &error);
                unrecognised(
                    call,
                    &call.resource.kind,
                    &format!("couldn't get version/kind; json parse error: {why}"),
                )
            })?;
            return match object {
                Value::Object(_) => Ok((object, found)),
                // Nothing is an object without fields.
                Value::Null => Ok((Value::Object(Map::new()), found)),
                other => {
                    Err(unrecognised(call, &call.resource.kind, &negotiate::no_object(&other)))
                }
            };
        }
        "application/yaml" => {
            let object = yaml::read(&call.body).map_err(|error| {
                unrecognised(call, &call.resource.kind, &yaml::complaint(&call.body, &error))
            })?;
            (object, yaml::repeated(&call.body))
        }
        protobuf::MEDIA_TYPE if !call.resource.is_custom() && !protobuf::is_framed(&call.body) => {
            let why = "provided data does not appear to be a protobuf message, expected prefix \
                       [107 56 115 0]";
            return Err(unrecognised(call, &call.resource.kind, why));
        }
        _ => (call.document()?, Vec::new()),
    };
    match object {
        Value::Object(_) => {}
        Value::Null => object = Value::Object(Map::new()),
        other => {
            return Err(unrecognised(call, &call.resource.kind, &negotiate::no_object(&other)));
        }
    }
    found.extend(pruned(call, &mut object));
    Ok((object, found))
}

/// Takes out of an object the fields that its kind does not have, and tells them if anybody wants
/// to know.
fn pruned(call: &Call, object: &mut Value) -> Vec<Finding> {
    let schema = &call.resource.schema;
    if FieldValidation::of(call) == FieldValidation::Ignore {
        schema.prune(object);
        return Vec::new();
    }
    let unknown = schema.unknown_fields(object);
    if !unknown.is_empty() {
        schema.prune(object);
    }
    unknown.into_iter().map(Finding::Unknown).collect()
}

/// Checks a document that has lost its unknown fields; `refuse` words what is wrong.
fn accept(
    call: &Call,
    mut object: Value,
    found: &[Finding],
    refuse: impl FnOnce(&str) -> Status,
) -> Result<Value> {
    if let Err(wrong) = check_type(call, &mut object) {
        return Err(wrong.of_body(call, &object));
    }
    call.resource.schema.normalise(&mut object);
    if let Some(error) = call.resource.schema.type_errors(&object).first() {
        return Err(refuse(error));
    }
    if let Some(why) = call.resource.rules.unreadable(&object) {
        return Err(refuse(&why));
    }
    metadata::of(&mut object).retain(|field, value| {
        let is_list = matches!(field.as_str(), "finalizers" | "ownerReferences");
        !(value.is_null() || is_list && value.as_array().is_some_and(Vec::is_empty))
    });
    report(call, found, refuse)?;
    Ok(object)
}

/// Makes of findings an error, warnings or nothing.
fn report(call: &Call, found: &[Finding], refuse: impl FnOnce(&str) -> Status) -> Result<()> {
    match FieldValidation::of(call) {
        _ if found.is_empty() => {}
        FieldValidation::Ignore => {}
        FieldValidation::Warn => {
            for finding in found {
                call.warn(finding.to_string());
            }
        }
        FieldValidation::Strict => {
            return Err(refuse(&format!("strict decoding error: {}", joined(found))));
        }
    }
    Ok(())
}

/// All findings in one text; YAML's parser lists its own with a head and a line each.
fn joined(found: &[Finding]) -> String {
    let (yaml, fields): (Vec<_>, Vec<_>) =
        found.iter().partition(|finding| matches!(finding, Finding::Repeated { .. }));
    let mut texts = Vec::new();
    if !yaml.is_empty() {
        let lines: Vec<String> = yaml.iter().map(|finding| format!("\n  {finding}")).collect();
        texts.push(format!("yaml: unmarshal errors:{}", lines.concat()));
    }
    texts.extend(fields.iter().map(ToString::to_string));
    texts.join(", ")
}

/// Refuses a document of another type than the path's, and fills in what it leaves out.
fn check_type(call: &Call, object: &mut Value) -> Result<(), WrongType> {
    for field in ["apiVersion", "kind"] {
        if !(object[field].is_string() || object[field].is_null()) {
            let found = patch_type(&object[field]);
            return Err(WrongType::Unreadable(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into \
                 Go struct field .{field} of type string"
            )));
        }
    }
    // A custom resource has no Go type that could stand in for a kind that is not named.
    let custom = call.resource.is_custom();
    if custom && object["kind"].as_str().is_none_or(str::is_empty) {
        return Err(WrongType::Missing);
    }
    let given = |field: &str, wanted: &str| match object[field].as_str() {
        None | Some("") if custom => String::new(),
        None | Some("") => wanted.to_owned(),
        Some(given) => given.to_owned(),
    };
    let resource = &call.resource;
    let api_version = given("apiVersion", &call.api_version);
    let kind = given("kind", &resource.kind);
    if api_version != call.api_version || kind != resource.kind {
        return Err(WrongType::Other { api_version, kind });
    }
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    Ok(())
}

/// Why a document is not what its path is for.
enum WrongType {
    /// It has no type that can be read.
    Unreadable(String),
    /// It has none where it must have one.
    Missing,
    /// It is something else.
    Other { api_version: String, kind: String },
}

impl WrongType {
    /// Why such a body is refused.
    fn of_body(self, call: &Call, object: &Value) -> Status {
        let (api_version, kind) = match self {
            Self::Unreadable(why) => return unrecognised(call, &call.resource.kind, &why),
            Self::Missing => {
                let body = String::from_utf8_lossy(&call.body);
                return unrecognised(
                    call,
                    &call.resource.kind,
                    &format!("Object 'Kind' is missing in '{body}'"),
                );
            }
            Self::Other { api_version, kind } => (api_version, kind),
        };
        let wanted = &call.resource.kind;
        if !call.resource.is_custom() {
            let why = unconvertible(&call.resource.group, wanted, &api_version, &kind);
            return cannot_handle((&api_version, &kind), wanted, &why);
        }
        if api_version != call.api_version {
            return Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API \
                 version ({})",
                call.api_version
            ));
        }
        not_as_defined(call, object, &api_version, &kind)
    }

    /// Why what a patch has made is refused.
    fn of_patched(
        self,
        call: &Call,
        patched: &Value,
        refuse: impl FnOnce(&str) -> Status,
    ) -> Status {
        let resource = &call.resource;
        match self {
            Self::Unreadable(why) => refuse(&why),
            Self::Missing => refuse(&format!("Object 'Kind' is missing in '{patched}'")),
            // Custom resources are decoded whatever they are, and looked at afterwards.
            Self::Other { api_version, kind } if resource.is_custom() => {
                not_as_defined(call, patched, &api_version, &kind)
            }
            Self::Other { api_version, kind } => {
                refuse(&unconvertible(&resource.group, &resource.kind, &api_version, &kind))
            }
        }
    }
}

/// A custom resource is of another type than its definition says.
fn not_as_defined(call: &Call, object: &Value, api_version: &str, kind: &str) -> Status {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let what = Named { group, resource: kind, name: metadata::text(object, "name") };
    let pairs = [
        ("kind", kind, call.resource.kind.as_ref()),
        ("apiVersion", api_version, call.api_version.as_str()),
    ];
    let wrong = pairs.into_iter().filter(|(_, given, wanted)| given != wanted);
    let errors: Vec<FieldError> = wrong
        .map(|(field, given, wanted)| {
            FieldError::invalid(field, &given.into(), &format!("must be {wanted}"))
        })
        .collect();
    Status::invalid(what, &errors)
}

/// Why one kind cannot be made of another, in the words of Kubernetes.
fn unconvertible(group: &str, wanted: &str, api_version: &str, kind: &str) -> String {
    let (sent_group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    // These are of no group, so every group knows them.
    let common = api_version == "v1" && matches!(kind, "Status" | "APIGroup" | "APIResourceList");
    if !common && Schema::builtin(sent_group, version, kind).is_none() {
        return unregistered(kind, api_version);
    }
    let package = match group.split('.').next() {
        None | Some("") => "core",
        Some(package) => package,
    };
    format!("converting ({version}.{kind}) to ({package}.{wanted}): unknown conversion")
}

/// Nobody knows such a kind, in the words of Kubernetes.
pub(super) fn unregistered(kind: &str, api_version: &str) -> String {
    format!(
        "no kind {kind:?} is registered for version {api_version:?} in scheme \
         \"pkg/runtime/scheme.go:111\""
    )
}

/// A document of the given API version and kind is not what is wanted, or not as that must be.
fn cannot_handle((api_version, kind): (&str, &str), wanted: &str, why: &str) -> Status {
    let version = api_version.rsplit('/').next().unwrap_or_default();
    Status::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {wanted}: {why}"
    ))
}

/// A document of the resource's kind is not as it must be.
fn malformed(call: &Call, why: &str) -> Status {
    let kind = &call.resource.kind;
    cannot_handle((&call.api_version, kind), kind, why)
}

/// The body is not even a document with a kind; a little of it is shown.
fn unrecognised(call: &Call, kind: &str, why: &str) -> Status {
    let shown = match &call.body[..] {
        [] => "<empty>".to_owned(),
        body @ [b'{', ..] => {
            String::from_utf8_lossy(&body[..body.len().min(SHOWN_MAX)]).into_owned()
        }
        body => body.iter().take(SHOWN_MAX).map(|byte| format!("{byte:02x}")).collect(),
    };
    let more = if call.body.len() > SHOWN_MAX { " ..." } else { "" };
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({shown}{more})"
    ))
}
