//! What an attack is given: where the server is, how much it may send, and when it may begin.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use steersman_bench_wire::Connection;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use crate::caller::{self, Answer, Ask, Caller, PATIENCE, Who, ask_over};
use crate::seen::Seen;

/// The word with which an attacker says that everything is prepared.
pub(crate) const PREPARED: &str = "prepared";

/// The namespace in which an attacker may do everything.
pub(crate) const HOSTILE: &str = "hostile";

/// The namespace of somebody else, who has nothing to do with it.
pub(crate) const INNOCENT: &str = "innocent";

/// The ground on which an attack takes place.
#[derive(Clone)]
pub(crate) struct Field {
    address: String,
    kubeconfig: PathBuf,
    short: bool,
}

impl Field {
    pub(crate) fn new(address: &str, kubeconfig: &Path, short: bool) -> Self {
        Self { address: address.to_owned(), kubeconfig: kubeconfig.to_owned(), short }
    }

    /// The administrator by certificate.
    pub(crate) fn by_certificate(&self) -> Result<Caller, String> {
        Caller::by_certificate(&self.address, &self.kubeconfig)
    }

    /// The authority of the server, as a `caBundle` has it.
    pub(crate) fn authority(&self) -> Result<String, String> {
        caller::authority(&self.kubeconfig)
    }

    /// Whether this is the short form, for machines that have other things to do.
    pub(crate) fn is_short(&self) -> bool {
        self.short
    }

    /// How many, in full and in short.
    pub(crate) fn size(&self, full: usize, short: usize) -> usize {
        if self.short { short } else { full }
    }

    /// How many seconds, in full and in short.
    pub(crate) fn seconds(&self, full: u64, short: u64) -> Duration {
        Duration::from_secs(if self.short { short } else { full })
    }

    /// The server's host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Somebody who talks to the server.
    pub(crate) fn caller(&self, who: Who) -> Result<Caller, String> {
        Caller::new(&self.address, who)
    }

    /// Says that everything is prepared, and waits until it is time: what comes before is not
    /// measured. Every attack calls it once.
    pub(crate) async fn begin(&self) {
        println!("{PREPARED}");
        let told = || std::io::stdin().read_line(&mut String::new());
        let _ = tokio::task::spawn_blocking(told).await;
    }

    /// Writes a definition and waits until its objects are served. `spec` is the schema of the
    /// field of that name.
    pub(crate) async fn define(&self, plural: &str, spec: Value) -> Result<Answer, String> {
        let attacker = self.caller(Who::Attacker)?;
        let answer = attacker.ask(&Ask::post(DEFINITIONS, &definition(plural, spec))).await?;
        if answer.is_good() {
            let deadline = Instant::now() + PATIENCE;
            let listed = Ask::get(objects(plural));
            while attacker.ask(&listed).await?.status != 200 && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(answer)
    }
}

/// Writes who may do what: the attacker everything, the innocent what is in their namespace.
pub(crate) async fn prepare(address: &str) -> Result<(), String> {
    let admin = Caller::new(address, Who::Admin)?;
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let binding = |kind: &str, user: &str, role: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": user},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        })
    };
    for namespace in [HOSTILE, INNOCENT] {
        let document = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        });
        admin.ask(&Ask::post("/api/v1/namespaces", &document)).await?.good()?;
    }
    let everything = binding("ClusterRoleBinding", "attacker", "cluster-admin");
    admin.ask(&Ask::post(format!("{rbac}/clusterrolebindings"), &everything)).await?.good()?;
    let own = binding("RoleBinding", "innocent", "edit");
    let own = Ask::post(format!("{rbac}/namespaces/{INNOCENT}/rolebindings"), &own);
    admin.ask(&own).await?.good().map(drop)
}

/// Where definitions are written.
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Where the objects of a definition are.
pub(crate) fn objects(plural: &str) -> String {
    format!("/apis/hostile.test/v1/namespaces/{HOSTILE}/{plural}")
}

/// A definition with one version.
pub(crate) fn definition(plural: &str, spec: Value) -> Value {
    let mut schema = json!({"type": "object", "properties": {}});
    schema["properties"]["spec"] = spec;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.hostile.test")},
        "spec": {
            "group": "hostile.test", "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural, "kind": kind(plural)},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// An object of a definition.
pub(crate) fn object(plural: &str, name: &str, spec: Value) -> Value {
    let mut object = json!({
        "apiVersion": "hostile.test/v1", "kind": kind(plural), "metadata": {"name": name},
    });
    object["spec"] = spec;
    object
}

fn kind(plural: &str) -> String {
    let (first, rest) = plural.split_at(1);
    first.to_uppercase() + rest
}

/// A ConfigMap with one value.
pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}})
}

/// Where the attacker's ConfigMaps are.
pub(crate) fn config_maps() -> String {
    format!("/api/v1/namespaces/{HOSTILE}/configmaps")
}

/// Requests, by whoever is next.
type Requests = Arc<Mutex<Box<dyn Iterator<Item = Ask> + Send>>>;

/// How long an answer may still take once no more requests are sent.
const GRACE: Duration = Duration::from_secs(5);

/// Sends requests over so many connections at once, until there is none left or the time is over,
/// and counts the answers. Whatever is not answered soon after that is a fault.
pub(crate) async fn storm(
    caller: &Caller,
    connections: usize,
    time: Duration,
    requests: impl Iterator<Item = Ask> + Send + 'static,
) -> Seen {
    let requests: Requests = Arc::new(Mutex::new(Box::new(requests)));
    let deadline = Instant::now() + time;
    let mut workers = JoinSet::new();
    for _ in 0..connections {
        workers.spawn(work(caller.clone(), Arc::clone(&requests), deadline));
    }
    let mut seen = Seen::default();
    for worker in workers.join_all().await {
        seen.merge(worker);
    }
    let unanswered = seen.answers.get("unanswered").copied().unwrap_or_default();
    seen.fault_if(unanswered > 0, format!("{unanswered} requests are not answered"));
    seen
}

/// Asks over a connection that is open, or opens one; keeps it if it is good.
async fn ask_with(
    caller: &Caller,
    connection: &mut Option<Connection>,
    ask: &Ask,
) -> Result<Answer, String> {
    let mut open = match connection.take() {
        Some(open) => open,
        None => caller.connect().await?,
    };
    let answer = ask_over(&mut open, ask).await?;
    *connection = Some(open);
    Ok(answer)
}

async fn work(caller: Caller, requests: Requests, deadline: Instant) -> Seen {
    let mut seen = Seen::default();
    let mut connection = None;
    while Instant::now() < deadline {
        let next = requests.lock().expect("nobody panics with it").next();
        let Some(ask) = next else { break };
        let began = Instant::now();
        let asked = ask_with(&caller, &mut connection, &ask);
        let Ok(answer) = timeout_at(deadline + GRACE, asked).await else {
            seen.count_as("unanswered");
            break;
        };
        if answer.is_err() {
            // Who is turned away does not come back at once: the count is bounded as well.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        seen.count(&answer, began.elapsed());
    }
    seen
}
