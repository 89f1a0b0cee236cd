//! GET of one object, in every form.

use super::{FORMS, make};
use crate::corpus::kinds::{Kind, Place};
use crate::step::{Scenario, Step};

/// Forms that only single objects are asked for in.
const MORE: [(&str, &str); 7] = [
    ("metadata-v1beta1", "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io"),
    (
        "metadata-protobuf",
        "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    ),
    ("metadata-yaml", "application/yaml;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
    ("list-of-metadata", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
    ("table-protobuf", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io"),
    ("table-yaml", "application/yaml;as=Table;v=v1;g=meta.k8s.io"),
    ("odd-form", "application/json;as=Odd;v=v1;g=meta.k8s.io"),
];

pub(super) fn steps(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    make(kind, place, scenario);
    let path = kind.path(place, "x");
    scenario.add(Step::get("plain", &path));
    for (id, form) in FORMS.into_iter().chain(MORE) {
        scenario.add(Step::get(format!("as-{id}"), &path).accept(form));
    }
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for include in ["None", "Object", "Metadata", "Odd"] {
        let step = Step::get(format!("table-with-{}", include.to_lowercase()), &path);
        scenario.add(step.accept(table).query(&format!("includeObject={include}")));
    }
    let queries = [
        ("version-empty", "resourceVersion="),
        ("version-zero", "resourceVersion=0"),
        ("version-own", "resourceVersion=${object:/metadata/resourceVersion}"),
        ("version-odd", "resourceVersion=abc"),
        ("version-negative", "resourceVersion=-1"),
        ("pretty", "pretty=true"),
        ("pretty-odd", "pretty=x"),
        ("timeout-odd", "timeout=x"),
        ("watch", "watch=x&timeoutSeconds=1"),
    ];
    for (id, query) in queries {
        scenario.add(Step::get(id, &path).query(query));
    }
    scenario.add(Step::new("HEAD", "head", &path));
    scenario.add(Step::new("OPTIONS", "options", &path));
    scenario.add(Step::new("POST", "post", &path).body(kind.object(place, "x")));
    scenario.add(Step::get("slash", &format!("{path}/")));
    missing(kind, place, scenario);
}

/// What is not there.
pub(super) fn missing(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let path = kind.path(place, "missing");
    scenario.add(Step::get("missing", &path));
    scenario.add(Step::get("missing-yaml", &path).accept("application/yaml"));
    scenario
        .add(Step::get("missing-protobuf", &path).accept("application/vnd.kubernetes.protobuf"));
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    scenario.add(Step::get("missing-table", &path).accept(table));
    scenario.add(Step::get("missing-subresource", &format!("{path}/odd")));
    scenario.add(Step::get("odd-name", &format!("{}/Odd%20name", place.collection)));
    scenario.add(Step::get("deep", &format!("{path}/status/deep")));
}
