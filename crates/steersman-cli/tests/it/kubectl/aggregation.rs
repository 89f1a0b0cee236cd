//! An API that another program serves, through this one.

use crate::program::{Program, read_until};

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tides.sea.test}
spec:
  group: sea.test
  scope: Namespaced
  names: {plural: tides, singular: tide, kind: Tide, shortNames: [td]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Height, type: integer, jsonPath: .spec.height}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              height: {type: integer, description: How high the water stands.}
";

const TIDE: &str = "
apiVersion: sea.test/v1
kind: Tide
metadata: {name: low}
spec: {height: 3}
";

/// Leads to a port of this machine.
fn api_service(port: &str) -> String {
    format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: tides, namespace: kube-system}}
spec: {{type: ExternalName, externalName: 127.0.0.1}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {{name: v1.sea.test}}
spec:
  group: sea.test
  version: v1
  groupPriorityMinimum: 1500
  versionPriority: 10
  insecureSkipTLSVerify: true
  service: {{name: tides, namespace: kube-system, port: {port}}}
"
    )
}

/// Two programs: the second believes the first when that says who asks.
fn front_and_behind() -> (Program, Program) {
    let front = Program::up(&[]);
    let get = "get configmap extension-apiserver-authentication -n kube-system \
               -o jsonpath={.data.requestheader-client-ca-file}";
    // Each look takes kubectl a while, so this ends by itself.
    let mut looks = (0..200).map(|_| front.run("", get));
    let (_, authority) = looks.find(|(found, _)| *found).expect("nobody tells of the authority");
    let file = front.file("front-proxy-ca.pem", &authority);
    let behind = Program::up_on_disk(&["--requestheader-client-ca-file", &file]);
    behind.says_to(DEFINITION, "apply -f -", &["created"]);
    let flags = behind.bearing("");
    let port = flags.split_once("127.0.0.1:").unwrap().1.split(' ').next().unwrap();
    front.says_to(&api_service(port), "apply -f -", &["apiservice.apiregistration.k8s.io/v1.sea"]);
    front.says("wait --for=condition=Available apiservice/v1.sea.test --timeout=60s", &["met"]);
    (front, behind)
}

#[test]
fn an_api_of_another_server_is_used_like_any_other() {
    let (front, behind) = front_and_behind();
    front.says("get apiservices", &["v1.apps", "Local", "kube-system/tides", "True"]);
    front.says("api-resources --api-group=sea.test", &["tides", "td", "sea.test/v1", "Tide"]);
    let arguments = ["get", "tides", "-w"];
    let (mut watch, output) = front.kubectl_in_background(&arguments);
    front.says_to(TIDE, "apply -f -", &["tide.sea.test/low created"]);
    read_until(&output, "low");
    front.says_to(TIDE, "apply -f -", &["tide.sea.test/low unchanged"]);
    front.says_to(TIDE, "apply --server-side --force-conflicts -f -", &["serverside-applied"]);
    front.says("get td", &["NAME", "HEIGHT", "low", "3"]);
    front.says("explain tide.spec.height", &["GROUP:      sea.test", "How high the water stands."]);
    front.says("patch tide low --type=merge -p '{\"spec\":{\"height\":4}}'", &["patched"]);
    read_until(&output, "4");
    behind.says("get tides", &["low", "4"]);
    front.says("delete tide low", &["deleted"]);
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn a_server_that_dies_takes_only_its_own_api_with_it() {
    let (front, mut behind) = front_and_behind();
    front.says_to(TIDE, "apply -f -", &["created"]);
    behind.kill();
    front.refuses("get tides", &[]);
    front.says(
        "wait --for=condition=Available=false apiservice/v1.sea.test --timeout=60s",
        &["met"],
    );
    front.says("get apiservice v1.sea.test", &["False (FailedDiscoveryCheck)"]);
    let why = "get apiservice v1.sea.test -o jsonpath={.status.conditions[0].message}";
    front.says(why, &["failing or missing response from https://", "connection refused"]);
    // Everything else is served meanwhile.
    front.says("create configmap calm --from-literal=a=b", &["created"]);
    front.says("get configmaps,namespaces", &["calm", "kube-system"]);
    front.says("create namespace calm", &["created"]);
    front.says("get --raw /apis/apps/v1", &["deployments"]);

    behind.start_again();
    front.says("wait --for=condition=Available apiservice/v1.sea.test --timeout=60s", &["met"]);
    front.says("get tides", &["low", "3"]);
}
