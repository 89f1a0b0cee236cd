//! The columns of every kind, and what stands in them for an object of that kind.

use serde_json::{Value, json};

use crate::table::{Column, IncludeObject, cells, render};
use crate::{kinds, resource::Resource};

/// One line a kind: its group and plural, then its columns. `*` marks those that only
/// `-o wide` shows, `:int`, `:bool` and `:date` those that are not announced as text.
const COLUMNS: &str = "
/componentstatuses Status|Message|Error
/configmaps Data|Age
/endpoints Endpoints|Age
/events Last Seen|Type|Reason|Object|Subobject*|Source*|Message|First Seen*|Count*|Name*
/limitranges Created At:date
/namespaces Status|Age
/nodes Status|Roles|Age|Version|Internal-IP*|External-IP*|OS-Image*|Kernel-Version*|Container-Runtime*
/persistentvolumeclaims Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|VolumeMode*
/persistentvolumes Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age|VolumeMode*
/pods Ready|Status|Restarts|Age|IP*|Node*|Nominated Node*|Readiness Gates*
/podtemplates Containers|Images|Pod Labels
/replicationcontrollers Desired:int|Current:int|Ready:int|Age|Containers*|Images*|Selector*
/resourcequotas Request|Limit|Age
/secrets Type|Data|Age
/serviceaccounts Age
/services Type|Cluster-IP|External-IP|Port(s)|Age|Selector*
apiregistration.k8s.io/apiservices Service|Available|Age
apps/controllerrevisions Controller|Revision|Age
apps/daemonsets Desired:int|Current:int|Ready:int|Up-to-date:int|Available:int|Node Selector|Age|Containers*|Images*|Selector*
apps/deployments Ready|Up-to-date|Available|Age|Containers*|Images*|Selector*
apps/replicasets Desired:int|Current:int|Ready:int|Age|Containers*|Images*|Selector*
apps/statefulsets Ready|Age|Containers*|Images*
events.k8s.io/events Last Seen|Type|Reason|Object|Subobject*|Source*|Message|First Seen*|Count*|Name*
autoscaling/horizontalpodautoscalers Reference|Targets|MinPods|MaxPods|Replicas|Age
batch/cronjobs Schedule|Timezone|Suspend:bool|Active:int|Last Schedule|Age|Containers*|Images*|Selector*
batch/jobs Status|Completions|Duration|Age|Containers*|Images*|Selector*
certificates.k8s.io/certificatesigningrequests Age|SignerName|Requestor|RequestedDuration|Condition
networking.k8s.io/ingressclasses Name|Controller|Parameters|Age
networking.k8s.io/ingresses Class|Hosts|Address|Ports|Age
networking.k8s.io/ipaddresses ParentRef|Age
networking.k8s.io/networkpolicies Pod-Selector|Age
networking.k8s.io/servicecidrs CIDRs|Age
policy/poddisruptionbudgets Min Available|Max Unavailable|Allowed Disruptions:int|Age
rbac.authorization.k8s.io/clusterrolebindings Role|Age|Users*|Groups*|ServiceAccounts*
rbac.authorization.k8s.io/clusterroles Created At:date
rbac.authorization.k8s.io/rolebindings Role|Age|Users*|Groups*|ServiceAccounts*
rbac.authorization.k8s.io/roles Created At:date
storage.k8s.io/csidrivers AttachRequired:bool|PodInfoOnMount:bool|StorageCapacity:bool|TokenRequests|RequiresRepublish:bool|Modes|Age
storage.k8s.io/csinodes Drivers:int|Age
storage.k8s.io/csistoragecapacities Created At:date
storage.k8s.io/storageclasses Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age
storage.k8s.io/volumeattachments Attacher|PV|Node|Attached:bool|Age
storage.k8s.io/volumeattributesclasses DriverName|Age
admissionregistration.k8s.io/mutatingadmissionpolicies Mutations:int|ParamKind|Age
admissionregistration.k8s.io/mutatingadmissionpolicybindings PolicyName|ParamRef|Age
admissionregistration.k8s.io/mutatingwebhookconfigurations Webhooks:int|Age
admissionregistration.k8s.io/validatingadmissionpolicies Validations:int|ParamKind|Age
admissionregistration.k8s.io/validatingadmissionpolicybindings PolicyName|ParamRef|Age
admissionregistration.k8s.io/validatingwebhookconfigurations Webhooks:int|Age
apiextensions.k8s.io/customresourcedefinitions Created At:date
scheduling.k8s.io/priorityclasses Value:int|Global-Default:bool|Age|PreemptionPolicy
coordination.k8s.io/leases Holder|Age
node.k8s.io/runtimeclasses Handler|Age
discovery.k8s.io/endpointslices AddressType|Ports|Endpoints|Age
resource.k8s.io/deviceclasses Age
resource.k8s.io/resourceclaims State|Age
resource.k8s.io/resourceclaimtemplates Age
resource.k8s.io/resourceslices Node|Driver|Pool|Age
flowcontrol.apiserver.k8s.io/flowschemas PriorityLevel|MatchingPrecedence|DistinguisherMethod|Age|MissingPL
flowcontrol.apiserver.k8s.io/prioritylevelconfigurations Type|NominalConcurrencyShares|Queues|HandSize|QueueLengthLimit|Age
";

fn described(resource: &Resource) -> String {
    let column = |column: &Column| {
        let wide = if column.priority > 0 { "*" } else { "" };
        let kind = match &*column.r#type {
            "integer" => ":int",
            "boolean" => ":bool",
            "date" => ":date",
            _ => "",
        };
        format!("{}{wide}{kind}", column.name)
    };
    let columns: Vec<_> = resource.columns.iter().map(column).collect();
    format!("{}/{} {}", resource.group, resource.plural, columns.join("|"))
}

#[test]
fn every_kind_that_is_stored_has_the_columns_of_kubectl() {
    let known: Vec<&str> = COLUMNS.lines().filter(|line| !line.is_empty()).collect();
    for resource in kinds::all() {
        if resource.verbs.iter().all(|verb| *verb == crate::resource::Verb::Create) {
            continue;
        }
        let found = described(&resource);
        assert!(known.contains(&found.as_str()), "not as kubectl has it: {found}");
    }
}

fn definitions(resource: &Resource) -> Vec<Value> {
    let now = "2026-01-02T00:00:00Z".parse().unwrap();
    let table = render(&resource.columns, &[], json!({}), IncludeObject::None, now);
    cells::items(&table["columnDefinitions"]).to_vec()
}

#[test]
fn every_column_says_what_it_shows() {
    for resource in kinds::all() {
        for column in definitions(&resource) {
            // Kubernetes looks for these words where they are not.
            let handler = resource.plural == "runtimeclasses" && column["name"] == "Handler";
            let silent = column["description"].as_str().unwrap().is_empty();
            assert_eq!(silent, handler, "{} {column}", resource.plural);
        }
    }
}

#[test]
fn the_words_of_columns_are_those_of_kubernetes() {
    let all = kinds::all();
    for (plural, column, expected) in [
        ("pods", "Ready", "The aggregate readiness state of this pod for accepting traffic."),
        ("pods", "Node", "NodeName indicates in which node this pod is scheduled."),
        ("secrets", "Name", "Name must be unique within a namespace. Is required when"),
        ("secrets", "Age", "CreationTimestamp is a timestamp representing the server time"),
        ("limitranges", "Created At", "CreationTimestamp is a timestamp representing the server"),
        ("nodes", "Version", "Kubelet Version reported by the node."),
        ("clusterrolebindings", "Users", "Users in the clusterRoleBinding"),
        ("certificatesigningrequests", "SignerName", "Requested signer for the request. It is a"),
        ("horizontalpodautoscalers", "MaxPods", "maxReplicas is the upper limit for the number"),
        ("apiservices", "Available", "Whether this service is available."),
    ] {
        let resource = all.iter().find(|r| r.plural == plural).unwrap();
        let found = definitions(resource).into_iter().find(|c| c["name"] == column).unwrap();
        let words = found["description"].as_str().unwrap();
        assert!(words.starts_with(expected), "{plural} {column}: {words}");
    }
}

#[test]
fn flow_schemas_are_shown_in_the_order_in_which_they_match() {
    let all = kinds::all();
    let schemas = all.iter().find(|r| r.plural == "flowschemas").unwrap();
    let schema = |name: &str, precedence: i64| json!({"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}});
    let objects = [schema("a", 9), schema("b", 1), schema("c", 9)];
    let now = "2026-01-02T00:00:00Z".parse().unwrap();
    let table = render(&schemas.columns, &objects, json!({}), IncludeObject::None, now);
    let names = cells::items(&table["rows"]).iter().map(|row| row["cells"][0].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["b", "a", "c"]);
}

#[test]
fn numbers_are_told_as_numbers_also_where_a_column_is_announced_as_text() {
    let all = kinds::all();
    let now = "2026-01-02T00:00:00Z".parse().unwrap();
    let levels = all.iter().find(|r| r.plural == "prioritylevelconfigurations").unwrap();
    let level = json!({"spec": {"limited": {"nominalConcurrencyShares": 30}}});
    let table = render(&levels.columns, &[level], json!({}), IncludeObject::None, now);
    assert_eq!(table["rows"][0]["cells"][2], 30);
    assert_eq!(table["rows"][0]["cells"][3], "<none>");
}

#[test]
fn an_address_shows_an_age_that_no_column_announces() {
    let all = kinds::all();
    let addresses = all.iter().find(|r| r.plural == "ipaddresses").unwrap();
    let names: Vec<_> = definitions(addresses).iter().map(|c| c["name"].clone()).collect();
    assert_eq!(names, ["Name", "ParentRef"]);
    assert_eq!(row(addresses, json!({})).split('|').count(), 3);
}

/// One object a kind, and the row that it makes; all of them are called `x` and five minutes old.
const ROWS: &str = include_str!("../rows.txt");

fn row(resource: &Resource, mut object: Value) -> String {
    let now = "2026-01-02T00:00:00Z".parse().unwrap();
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!("2026-01-01T23:55:00Z");
    let table = render(&resource.columns, &[object], json!({}), IncludeObject::None, now);
    let cells = cells::items(&table["rows"][0]["cells"]).iter().map(cells::printed);
    cells.collect::<Vec<_>>().join("|")
}

#[test]
fn every_kind_shows_what_one_asks_for_first() {
    let all = kinds::all();
    let mut lines = ROWS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let (Some(object), Some(expected)) = (lines.next(), lines.next()) {
        let (name, object) = object.split_once(' ').unwrap();
        let (group, plural) = name.split_once('/').unwrap();
        let resource = all.iter().find(|r| r.group == group && r.plural == plural).unwrap();
        let found = row(resource, serde_json::from_str(object).unwrap());
        assert_eq!(found, expected.trim(), "{name}");
    }
}
