//! The columns of every kind, and what stands in them for an object of that kind.

use serde_json::{Value, json};

use crate::resource::{Resource, builtin};
use crate::table::{Column, IncludeObject, cells, render};

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
networking.k8s.io/ipaddresses ParentRef
networking.k8s.io/networkpolicies Pod-Selector|Age
networking.k8s.io/servicecidrs CIDRs|Age
policy/poddisruptionbudgets Min Available|Max Unavailable|Allowed Disruptions:int|Age
rbac.authorization.k8s.io/clusterrolebindings Role|Age|Users*|Groups*|ServiceAccounts*
rbac.authorization.k8s.io/clusterroles Created At:date
rbac.authorization.k8s.io/rolebindings Role|Age|Users*|Groups*|ServiceAccounts*
rbac.authorization.k8s.io/roles Created At:date
storage.k8s.io/csidrivers AttachRequired:bool|PodInfoOnMount:bool|StorageCapacity:bool|TokenRequests|RequiresRepublish:bool|Modes|Age
storage.k8s.io/csinodes Drivers:int|Age
storage.k8s.io/csistoragecapacities StorageClassName|Capacity
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
    for resource in builtin::all() {
        if resource.verbs.iter().all(|verb| *verb == crate::resource::Verb::Create) {
            continue;
        }
        let found = described(&resource);
        assert!(known.contains(&found.as_str()), "not as kubectl has it: {found}");
    }
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
    let all = builtin::all();
    let mut lines = ROWS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    while let (Some(object), Some(expected)) = (lines.next(), lines.next()) {
        let (name, object) = object.split_once(' ').unwrap();
        let (group, plural) = name.split_once('/').unwrap();
        let resource = all.iter().find(|r| r.group == group && r.plural == plural).unwrap();
        let found = row(resource, serde_json::from_str(object).unwrap());
        assert_eq!(found, expected.trim(), "{name}");
    }
}
