use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{ConfigMap, Container, Pod, Secret, Service};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde_json::{Value, from_value, json};

use super::{Environment, Inputs, VolumeFile, command, environment};
use crate::downward::{Addresses, Defaults};
use crate::objects::Objects;

fn objects() -> Objects {
    let config: ConfigMap =
        from_value(json!({ "data": { "color": "blue", "1-odd.key": "odd" } })).unwrap();
    let secret: Secret =
        from_value(json!({ "data": { "token": "c2VzYW1l", "raw": "/w==" } })).unwrap();
    let mut objects = Objects::default();
    objects.config_maps.insert("config".into(), Ok(Arc::new(config)));
    objects.config_maps.insert("away".into(), Err("etcdserver: request timed out".into()));
    objects.secrets.insert("secret".into(), Ok(Arc::new(secret)));
    objects
}

fn service(namespace: &str, name: &str, spec: &Value) -> Arc<Service> {
    let meta = json!({ "namespace": namespace, "name": name });
    Arc::new(from_value(json!({ "metadata": meta, "spec": spec })).unwrap())
}

/// Reads files of a volume `files`.
fn files(volume: &str, path: &str) -> Option<VolumeFile> {
    let content = match path {
        "env" => Ok("A='1'\nEMPTY=''\n".to_owned()),
        "broken" => Ok("A=1".to_owned()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let path = Path::new("/pods/u-1/files").join(path);
    (volume == "files").then_some(VolumeFile { path, content })
}

struct Case {
    pod: Value,
    container: Value,
    services: Vec<Arc<Service>>,
}

impl Case {
    fn of(container: Value) -> Self {
        Self { pod: json!({}), container, services: Vec::new() }
    }

    fn run(&self) -> Result<(Container, Environment), String> {
        let mut pod: Pod = from_value(json!({
            "metadata": { "name": "web-0", "namespace": "shop" },
            "spec": { "containers": [] },
        }))
        .unwrap();
        let links = self.pod["enableServiceLinks"].as_bool();
        pod.spec.as_mut().unwrap().enable_service_links = links;
        let mut container = self.container.clone();
        container["name"] = json!("main");
        let container: Container = from_value(container).unwrap();
        let allocatable = BTreeMap::from([("cpu".to_owned(), Quantity("4".into()))]);
        let inputs = Inputs {
            pod: &pod,
            container: &container,
            objects: &objects(),
            services: &self.services,
            addresses: Addresses { pod: &["10.0.0.7".to_owned()], host: &[] },
            defaults: Defaults { allocatable: &allocatable, pod_limits: true },
            files: &files,
        };
        let environment = environment(&inputs).map_err(|error| error.to_string())?;
        Ok((container, environment))
    }

    /// As `A=1 B=2`, or the error.
    fn told(&self) -> String {
        match self.run() {
            Ok((_, environment)) => shown(&environment),
            Err(error) => format!("! {error}"),
        }
    }
}

fn shown(environment: &Environment) -> String {
    let one =
        |(name, value): (&String, &Vec<u8>)| format!("{name}={}", String::from_utf8_lossy(value));
    environment.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn variables_come_from_these_sources() {
    let key = |kind: &str, name: &str, key: &str, optional: bool| {
        json!([{ "name": "V", "valueFrom": { kind: {
            "name": name, "key": key, "optional": optional,
        } } }])
    };
    let file = |volume: &str, path: &str, key: &str, optional: bool| {
        json!([{ "name": "V", "valueFrom": { "fileKeyRef": {
            "volumeName": volume, "path": path, "key": key, "optional": optional,
        } } }])
    };
    let field =
        |path: &str| json!([{ "name": "V", "valueFrom": { "fieldRef": { "fieldPath": path } } }]);
    let resource = |name: &str| json!([{ "name": "V", "valueFrom": { "resourceFieldRef": { "resource": name } } }]);
    let config = |name, it, optional| key("configMapKeyRef", name, it, optional);
    let secret = |name, it, optional| key("secretKeyRef", name, it, optional);
    for (env, expected) in [
        (json!([]), ""),
        (json!([{ "name": "A", "value": "1" }, { "name": "B" }]), "A=1 B="),
        // References see what stands before them, and only that.
        (
            json!([{ "name": "A", "value": "$(B)" }, { "name": "B", "value": "2" },
                   { "name": "C", "value": "$(B)$$(B)" }]),
            "A=$(B) B=2 C=2$(B)",
        ),
        (json!([{ "name": "A", "value": "1" }, { "name": "A", "value": "$(A)2" }]), "A=12"),
        (field("metadata.name"), "V=web-0"),
        (field("status.podIP"), "V=10.0.0.7"),
        (field("spec.tea"), "! field label not supported: spec.tea"),
        (resource("limits.cpu"), "V=4"),
        (resource("tea"), "! unsupported container resource : tea"),
        (config("config", "color", false), "V=blue"),
        (config("none", "color", false), "! configmap \"none\" not found"),
        (config("none", "color", true), ""),
        (config("config", "k", false), "! couldn't find key k in ConfigMap shop/config"),
        (config("config", "k", true), ""),
        (config("away", "k", true), "! etcdserver: request timed out"),
        (secret("secret", "token", false), "V=sesame"),
        (secret("none", "token", false), "! secret \"none\" not found"),
        (secret("none", "token", true), ""),
        (secret("secret", "k", false), "! couldn't find key k in Secret shop/secret"),
        (secret("secret", "k", true), ""),
        (file("files", "env", "A", false), "V=1"),
        (file("files", "env", "B", true), ""),
        (
            file("files", "env", "EMPTY", false),
            "! environment variable key \"EMPTY\" not found in file \"/pods/u-1/files/env\"",
        ),
        (file("files", "broken", "A", true), "! couldn't parse env file"),
        (file("files", "missing", "A", true), "! couldn't parse env file"),
        (
            file("tea", "env", "A", true),
            "! cannot find the volume \"tea\" referenced by FileKeyRef",
        ),
    ] {
        assert_eq!(Case::of(json!({ "env": env.clone() })).told(), expected, "{env}");
    }
}

#[test]
fn whole_objects_come_with_a_prefix_and_any_name_and_go_behind_single_variables() {
    let from = |kind: &str, name: &str, prefix: &str, optional: bool| json!({ "prefix": prefix, kind: { "name": name, "optional": optional } });
    let config = |prefix| from("configMapRef", "config", prefix, false);
    for (sources, expected) in [
        (vec![config("")], "1-odd.key=odd color=blue"),
        (vec![config("C_")], "C_1-odd.key=odd C_color=blue"),
        (vec![from("configMapRef", "none", "", true)], ""),
        (vec![from("configMapRef", "none", "", false)], "! configmap \"none\" not found"),
        (vec![from("secretRef", "none", "", true)], ""),
        (vec![from("secretRef", "none", "", false)], "! secret \"none\" not found"),
        (vec![from("configMapRef", "away", "", true)], "! etcdserver: request timed out"),
    ] {
        assert_eq!(Case::of(json!({ "envFrom": sources.clone() })).told(), expected, "{sources:?}");
    }
    let case = Case::of(json!({
        "envFrom": [config("")],
        "env": [{ "name": "color", "value": "not $(color)" }, { "name": "X", "value": "$(color)" }],
    }));
    assert_eq!(case.told(), "1-odd.key=odd X=not blue color=not blue");
}

#[test]
fn secrets_may_hold_any_bytes() {
    let case = Case::of(json!({ "envFrom": [{ "secretRef": { "name": "secret" } }] }));
    let (_, found) = case.run().unwrap();
    assert_eq!(found["raw"], [0xff]);
    assert_eq!(found["token"], b"sesame");
}

#[test]
fn services_of_the_namespace_are_linked_and_the_api_server_always_is() {
    let port = |name: &str, port: u16, protocol: &str| json!({ "name": name, "port": port, "protocol": protocol });
    let api = service(
        "default",
        "kubernetes",
        &json!({ "clusterIP": "10.0.0.1", "ports": [port("https", 443, "TCP")] }),
    );
    let web = service(
        "shop",
        "my-web",
        &json!({ "clusterIP": "fd00::2", "ports": [port("u-d-p", 53, "UDP"), port("", 80, "TCP")] }),
    );
    let headless = service(
        "shop",
        "headless",
        &json!({ "clusterIP": "None", "ports": [port("", 80, "TCP")] }),
    );
    let foreign = service(
        "else",
        "foreign",
        &json!({ "clusterIP": "10.0.0.3", "ports": [port("", 80, "TCP")] }),
    );
    let mut case = Case::of(json!({}));
    case.services = vec![web, headless, foreign, api];
    let kubernetes = "KUBERNETES_PORT=tcp://10.0.0.1:443 \
        KUBERNETES_PORT_443_TCP=tcp://10.0.0.1:443 KUBERNETES_PORT_443_TCP_ADDR=10.0.0.1 \
        KUBERNETES_PORT_443_TCP_PORT=443 KUBERNETES_PORT_443_TCP_PROTO=tcp \
        KUBERNETES_SERVICE_HOST=10.0.0.1 KUBERNETES_SERVICE_PORT=443 \
        KUBERNETES_SERVICE_PORT_HTTPS=443";
    let linked = "MY_WEB_PORT=udp://[fd00::2]:53 MY_WEB_PORT_53_UDP=udp://[fd00::2]:53 \
        MY_WEB_PORT_53_UDP_ADDR=fd00::2 MY_WEB_PORT_53_UDP_PORT=53 MY_WEB_PORT_53_UDP_PROTO=udp \
        MY_WEB_PORT_80_TCP=tcp://[fd00::2]:80 MY_WEB_PORT_80_TCP_ADDR=fd00::2 \
        MY_WEB_PORT_80_TCP_PORT=80 MY_WEB_PORT_80_TCP_PROTO=tcp MY_WEB_SERVICE_HOST=fd00::2 \
        MY_WEB_SERVICE_PORT=53 MY_WEB_SERVICE_PORT_U_D_P=53";
    assert_eq!(case.told(), format!("{kubernetes} {linked}"));
    case.pod = json!({ "enableServiceLinks": false });
    assert_eq!(case.told(), kubernetes);

    // Its own namespace goes before, and hides all of the other.
    case.pod = json!({});
    let own = service(
        "shop",
        "kubernetes",
        &json!({ "clusterIP": "10.0.0.4", "ports": [port("", 81, "TCP")] }),
    );
    let before = std::mem::replace(&mut case.services, vec![own]);
    let hidden = case.told();
    case.services.extend(
        before.iter().filter(|it| it.metadata.name.as_deref() == Some("kubernetes")).cloned(),
    );
    assert_eq!(case.told(), hidden);
    case.services.reverse();
    assert_eq!(case.told(), hidden);
    case.services = before;

    // Values refer to them, and what the container sets itself goes before them.
    case.container = json!({ "env": [
        { "name": "URL", "value": "https://$(KUBERNETES_SERVICE_HOST)" },
        { "name": "KUBERNETES_SERVICE_PORT", "value": "1" },
    ] });
    let (_, found) = case.run().unwrap();
    assert_eq!(found["URL"], b"https://10.0.0.1");
    assert_eq!(found["KUBERNETES_SERVICE_PORT"], b"1");
}

#[test]
fn commands_are_filled_in() {
    let case = Case::of(json!({
        "env": [{ "name": "A", "value": "1" }],
        "command": ["/bin/sh", "$(A)", "$$(A)"],
        "args": ["$(B)", "-$(A)-"],
    }));
    let (container, environment) = case.run().unwrap();
    let found = command(&container, &environment);
    assert_eq!(found.command, ["/bin/sh", "1", "$(A)"]);
    assert_eq!(found.args, ["$(B)", "-1-"]);
}
