//! The types of the reviews that webhooks answer, as Go's structs have them. `*` in a name is the
//! version of the review.

use super::typed::{Struct, Type};

pub(crate) static ADMISSION_REVIEW: Struct = Struct {
    name: "*.AdmissionReview",
    fields: &[
        ("request", Type::Object(&ADMISSION_REQUEST)),
        ("response", Type::Object(&ADMISSION_RESPONSE)),
    ],
};

static ADMISSION_REQUEST: Struct = Struct {
    name: "*.AdmissionRequest",
    fields: &[
        ("uid", UID),
        ("kind", Type::Object(&KIND)),
        ("resource", Type::Object(&RESOURCE)),
        ("subResource", STRING),
        ("requestKind", Type::Object(&KIND)),
        ("requestResource", Type::Object(&RESOURCE)),
        ("requestSubResource", STRING),
        ("name", STRING),
        ("namespace", STRING),
        ("operation", Type::Text("*.Operation")),
        ("userInfo", Type::Object(&USER_INFO)),
        ("dryRun", Type::Bool),
    ],
};

static ADMISSION_RESPONSE: Struct = Struct {
    name: "*.AdmissionResponse",
    fields: &[
        ("uid", UID),
        ("allowed", Type::Bool),
        ("status", Type::Object(&STATUS)),
        ("patch", Type::Bytes),
        ("patchType", Type::Text("*.PatchType")),
        ("auditAnnotations", Type::Map { of: &STRING, name: "map[string]string" }),
        ("warnings", STRINGS),
    ],
};

pub(crate) static CONVERSION_REVIEW: Struct = Struct {
    name: "*.ConversionReview",
    fields: &[
        ("request", Type::Object(&CONVERSION_REQUEST)),
        ("response", Type::Object(&CONVERSION_RESPONSE)),
    ],
};

static CONVERSION_REQUEST: Struct = Struct {
    name: "*.ConversionRequest",
    fields: &[("uid", UID), ("desiredAPIVersion", STRING), ("objects", RAW_EXTENSIONS)],
};

static CONVERSION_RESPONSE: Struct = Struct {
    name: "*.ConversionResponse",
    fields: &[
        ("uid", UID),
        ("convertedObjects", RAW_EXTENSIONS),
        ("result", Type::Object(&STATUS)),
    ],
};

static KIND: Struct = Struct {
    name: "v1.GroupVersionKind",
    fields: &[("group", STRING), ("version", STRING), ("kind", STRING)],
};

static RESOURCE: Struct = Struct {
    name: "v1.GroupVersionResource",
    fields: &[("group", STRING), ("version", STRING), ("resource", STRING)],
};

static USER_INFO: Struct = Struct {
    name: "v1.UserInfo",
    fields: &[
        ("username", STRING),
        ("uid", STRING),
        ("groups", STRINGS),
        ("extra", Type::Map { of: &EXTRA_VALUE, name: "map[string]v1.ExtraValue" }),
    ],
};

static STATUS: Struct = Struct {
    name: "v1.Status",
    fields: &[
        ("metadata", Type::Object(&LIST_META)),
        ("status", STRING),
        ("message", STRING),
        ("reason", Type::Text("v1.StatusReason")),
        ("details", Type::Object(&DETAILS)),
        ("code", Type::Int32),
    ],
};

static LIST_META: Struct = Struct {
    name: "v1.ListMeta",
    fields: &[
        ("selfLink", STRING),
        ("resourceVersion", STRING),
        ("continue", STRING),
        ("remainingItemCount", Type::Int64),
    ],
};

static DETAILS: Struct = Struct {
    name: "v1.StatusDetails",
    fields: &[
        ("name", STRING),
        ("group", STRING),
        ("kind", STRING),
        ("uid", UID),
        ("causes", Type::List { of: &Type::Object(&CAUSE), name: "[]v1.StatusCause" }),
        ("retryAfterSeconds", Type::Int32),
    ],
};

static CAUSE: Struct = Struct {
    name: "v1.StatusCause",
    fields: &[("reason", Type::Text("v1.CauseType")), ("message", STRING), ("field", STRING)],
};

const STRING: Type = Type::Text("string");
const EXTRA_VALUE: Type = Type::List { of: &STRING, name: "v1.ExtraValue" };
const UID: Type = Type::Text("types.UID");
const STRINGS: Type = Type::List { of: &STRING, name: "[]string" };
const RAW_EXTENSIONS: Type = Type::List { of: &Type::Any, name: "[]runtime.RawExtension" };
