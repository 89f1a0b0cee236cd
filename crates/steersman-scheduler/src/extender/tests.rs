//! Extenders are a small server here, which answers what a test says and remembers what it was asked.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use steersman::events::Recorder;
use steersman::metrics::Metrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use super::Extenders;
use crate::config::Configuration;
use crate::framework::{Binding, Candidate, CycleState, Failure, PodInfo, Snapshot};
use crate::testing::{Objects, Outcome, World, asking, node, nowhere, on, pod};

/// What was asked: the path, and the question.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// A server, and a runtime for it and for who asks it.
struct Server {
    runtime: Runtime,
    url: String,
    asked: Asked,
}

impl Server {
    /// Answers with a code and a document, by path.
    fn answering(answer: fn(&str) -> (u16, Value)) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/plan", listener.local_addr().unwrap());
        let asked = Asked::default();
        let remembered = Arc::clone(&asked);
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer, Arc::clone(&remembered)));
            }
        });
        Self { runtime, url, asked }
    }

    /// The extenders of this server with such a configuration.
    fn extenders(&self, extender: &Value) -> Extenders {
        let mut extender = extender.clone();
        extender["urlPrefix"] = self.url.clone().into();
        let document = json!({
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [extender],
        });
        let configuration = Configuration::parse(&document.to_string()).unwrap();
        let _entered = self.runtime.enter();
        Extenders::start(&configuration.extenders).unwrap()
    }

    fn place(&self, world: &World, extenders: &Extenders, pod: &Pod) -> Outcome {
        world.attempt(pod, |profile, mut cycle| {
            let mut start = 0;
            let search = extenders.schedule(profile, &mut cycle, &mut start);
            match self.runtime.block_on(search) {
                Ok(node) => Outcome::Node(node.name().to_owned()),
                Err(Failure::Fit(error)) => Outcome::Nowhere(error.message()),
                Err(Failure::NoNodes) => Outcome::Nowhere("no nodes".to_owned()),
                Err(Failure::Error(error)) => Outcome::Nowhere(error),
            }
        })
    }

    fn asked(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

async fn serve(mut stream: TcpStream, answer: fn(&str) -> (u16, Value), asked: Asked) {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    let (head, length) = loop {
        let count = stream.read(&mut buffer).await.unwrap();
        read.extend_from_slice(&buffer[..count]);
        if let Some(end) = read.windows(4).position(|it| it == b"\r\n\r\n") {
            let head = String::from_utf8(read[..end].to_vec()).unwrap().to_lowercase();
            let mut lines = head.lines().filter_map(|it| it.strip_prefix("content-length: "));
            let length: usize = lines.next().unwrap().parse().unwrap();
            break (String::from_utf8(read.drain(..end + 4).collect()).unwrap(), length);
        }
    };
    while read.len() < length {
        let count = stream.read(&mut buffer).await.unwrap();
        read.extend_from_slice(&buffer[..count]);
    }
    let path = head.split(' ').nth(1).unwrap().to_owned();
    let (code, answer) = answer(&path);
    asked.lock().unwrap().push((path, serde_json::from_slice(&read).unwrap()));
    let body = answer.to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {code} X\r\ncontent-length: {length}\r\nconnection: close\r\n\
         content-type: application/json\r\n\r\n"
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
}

fn world() -> World {
    World::of(["a", "b", "c"].map(|name| node(name, &json!({}))))
}

#[test]
fn an_extender_filters_and_scores_nodes_whose_names_are_enough_for_it() {
    let server = Server::answering(|path| match path {
        "/plan/filter" => (200, json!({"NodeNames": ["b", "c"], "FailedNodes": {"a": "busy"}})),
        _ => (200, json!([{"Host": "b", "Score": 1}, {"host": "c", "score": 9}])),
    });
    let extender = json!({"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 5,
                          "nodeCacheCapable": true});
    let extenders = server.extenders(&extender);
    assert_eq!(server.place(&world(), &extenders, &asking("p", "1")), on("c"));
    let asked = server.asked();
    assert_eq!(
        asked.iter().map(|it| &*it.0).collect::<Vec<_>>(),
        ["/plan/filter", "/plan/prioritize"]
    );
    assert_eq!(asked[0].1["NodeNames"], json!(["a", "b", "c"]));
    assert_eq!(asked[0].1["Nodes"], Value::Null);
    assert_eq!(asked[0].1["Pod"]["metadata"]["name"], "p");
    assert_eq!(asked[1].1["NodeNames"], json!(["b", "c"]));
}

#[test]
fn whoever_knows_no_nodes_is_told_them_and_its_reasons_are_passed_on() {
    let server = Server::answering(|_| {
        let failed = json!({"a": "busy", "b": "busy"});
        (
            200,
            json!({"Nodes": {"items": []}, "FailedNodes": failed,
                     "FailedAndUnresolvableNodes": {"c": "no licence"}}),
        )
    });
    let extenders = server.extenders(&json!({"filterVerb": "filter"}));
    let message = "0/3 nodes are available: 1 no licence, 2 busy.";
    assert_eq!(server.place(&world(), &extenders, &asking("p", "1")), nowhere(message));
    let (_, question) = server.asked().remove(0);
    assert_eq!(question["Nodes"]["items"][2]["metadata"]["name"], "c");
    assert_eq!(question["NodeNames"], Value::Null);
}

#[test]
fn an_extender_that_fails_keeps_pods_from_everywhere_unless_it_may_be_ignored() {
    let server = Server::answering(|path| match path {
        "/plan/wrong" => (200, json!({"Error": "out of order"})),
        "/plan/strange" => (200, json!({"NodeNames": ["x"]})),
        _ => (500, json!({})),
    });
    let placed = |change: Value| {
        let mut extender = json!({"nodeCacheCapable": true});
        extender.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        server.place(&world(), &server.extenders(&extender), &asking("p", "1"))
    };
    let url = &server.url;
    let failed = format!("failed filter with extender at URL {url}/filter, code 500");
    assert_eq!(placed(json!({"filterVerb": "filter"})), nowhere(&failed));
    assert_eq!(placed(json!({"filterVerb": "wrong"})), nowhere("out of order"));
    let strange = format!(
        "extender {url:?} claims a filtered node \"x\" which is not found in the input node list"
    );
    assert_eq!(placed(json!({"filterVerb": "strange"})), nowhere(&strange));
    assert_eq!(placed(json!({"filterVerb": "filter", "ignorable": true})), on("a"));
    // What it cannot score, others do.
    assert_eq!(placed(json!({"prioritizeVerb": "p", "weight": 1})), on("a"));
}

#[test]
fn a_node_that_was_nominated_is_only_tried_first() {
    // Of that node alone it makes no sense.
    let server = Server::answering(|_| (200, json!({"NodeNames": ["b"]})));
    let extenders = server.extenders(&json!({"filterVerb": "f", "nodeCacheCapable": true}));
    let nominated = pod("p", &json!({"status": {"nominatedNodeName": "a"}}));
    assert_eq!(server.place(&world(), &extenders, &nominated), on("b"));
    let asked: Vec<Value> = server.asked().iter().map(|it| it.1["NodeNames"].clone()).collect();
    assert_eq!(asked, [json!(["a"]), json!(["a", "b", "c"])]);
}

#[test]
fn an_extender_is_asked_about_pods_with_its_resources_only() {
    let server = Server::answering(|_| (200, json!({"NodeNames": ["b"]})));
    let managed = json!([{"name": "example.com/gpu", "ignoredByScheduler": true}]);
    let extender =
        json!({"filterVerb": "f", "nodeCacheCapable": true, "managedResources": managed});
    let extenders = server.extenders(&extender);
    assert_eq!(server.place(&world(), &extenders, &asking("p", "1")), on("a"));
    assert!(server.asked().is_empty());
    let limits = json!({"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}});
    let containers = json!([{"name": "c", "resources": limits}]);
    let wanting = pod("p", &json!({"spec": {"containers": containers}}));
    let mut world = world();
    let lacking = "0/3 nodes are available: 3 Insufficient example.com/gpu.";
    assert_eq!(server.place(&world, &extenders, &wanting), nowhere(lacking));
    let document = json!({
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": "http://x", "managedResources": managed}],
    });
    world.configuration = Configuration::parse(&document.to_string()).unwrap();
    assert_eq!(server.place(&world, &extenders, &wanting), on("b"));
}

#[test]
fn an_extender_strikes_out_whom_a_pod_would_make_go() {
    let server = Server::answering(|path| match path {
        "/plan/preempt" => {
            let pods = json!([{"UID": "v-b"}]);
            (200, json!({"NodeNameToMetaVictims": {"b": {"Pods": pods, "NumPDBViolations": 1}}}))
        }
        _ => (200, json!({"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": "x"}]}}})),
    });
    let mut world = world();
    let victim = |node: &str| asking(&format!("v-{node}"), "8");
    for name in ["a", "b"] {
        world.put(name, &victim(name));
    }
    let snapshot = Snapshot::of(world.nodes.iter().cloned().map(Arc::new));
    let candidates = || {
        ["a", "b"].map(|name| Candidate {
            node: name.into(),
            victims: vec![Arc::new(PodInfo::of(&victim(name)))],
            violations: 0,
        })
    };
    let preempt = |extender: Value| {
        let extenders = server.extenders(&extender);
        let read = |key: &steersman::ObjectKey| Some(Arc::new(asking(&key.name, "8")));
        let preemptor = asking("p", "8");
        let left = extenders.preempt(&preemptor, candidates().to_vec(), &snapshot, read);
        let left = server.runtime.block_on(left);
        left.map(|left| {
            left.iter().map(|it| (it.node.to_string(), it.violations)).collect::<Vec<_>>()
        })
    };
    let only_b = Ok(vec![("b".to_owned(), 1)]);
    assert_eq!(preempt(json!({"preemptVerb": "preempt", "nodeCacheCapable": true})), only_b);
    let (_, question) = server.asked().remove(0);
    assert_eq!(question["NodeNameToMetaVictims"]["a"]["Pods"], json!([{"UID": "v-a"}]));
    assert_eq!(preempt(json!({"preemptVerb": "preempt"})), only_b);
    let (_, question) = server.asked().remove(0);
    let told = &question["NodeNameToVictims"]["b"]["Pods"][0]["metadata"]["name"];
    assert_eq!(told, "v-b");
    let url = &server.url;
    let wrong = format!(
        "extender: {url} claims to preempt pod (UID: &{{x}}) on node: b, but the pod is not found on \
         that node"
    );
    assert_eq!(preempt(json!({"preemptVerb": "wrong"})), Err(wrong));
    assert_eq!(preempt(json!({"preemptVerb": "wrong", "ignorable": true})).unwrap().len(), 2);
    assert_eq!(preempt(json!({"filterVerb": "f"})).unwrap().len(), 2, "it is not asked");
}

#[test]
fn an_extender_binds_if_it_says_so() {
    let server = Server::answering(|path| match path {
        "/plan/bind" => (200, json!({})),
        _ => (200, json!({"Error": "taken"})),
    });
    let pod = asking("p", "1");
    let bind = |extender: Value| {
        let extenders = server.extenders(&extender);
        let _entered = server.runtime.enter();
        let config = kube::Config::new(server.url.parse().unwrap());
        let client = kube::Client::try_from(config).unwrap();
        let client = steersman::Client::new(client, "test");
        let binding = Binding {
            pod: Arc::new(pod.clone()),
            info: Arc::new(PodInfo::of(&pod)),
            node: "b".into(),
            state: CycleState::default(),
            lister: Arc::new(Objects::default()),
            recorder: Recorder::new(client.clone(), &Metrics::default()).0,
            client,
            storage_changes: tokio::sync::watch::channel(0).1,
            device_changes: tokio::sync::watch::channel(0).1,
        };
        server.runtime.block_on(extenders.bind(&binding))
    };
    assert_eq!(bind(json!({"bindVerb": "bind"})), Some(Ok(())));
    let expected = json!({"PodName": "p", "PodNamespace": "default", "PodUID": "p", "Node": "b"});
    assert_eq!(server.asked(), [("/plan/bind".to_owned(), expected)]);
    assert_eq!(bind(json!({"bindVerb": "wrong"})), Some(Err("taken".to_owned())));
    assert_eq!(bind(json!({"bindVerb": "wrong", "ignorable": true})), None);
    assert_eq!(bind(json!({"filterVerb": "f"})), None);
}
