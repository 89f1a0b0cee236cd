//! The program of the README as a whole: what it prints suffices for what it asks for.
//!
//! It runs as a process of its own, on a cluster that is served here as `steersman up` serves one,
//! with a token of the service account that it prints, so that nobody but its roles allows anything.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::Scope;
use serde_json::{Value, json};
use steersman_cluster::Cluster;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Far more than it takes: whoever waits longer waits for something that does not come.
const PATIENCE: Duration = Duration::from_secs(120);

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn shop() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shop"));
    command.env_remove("RUST_LOG").kill_on_drop(true);
    command
}

/// What `shop manifests` prints.
async fn manifests() -> Result<Vec<Value>> {
    let output = shop().arg("manifests").output().await?;
    assert!(output.status.success(), "{output:?}");
    Ok(serde_saphyr::from_multiple(std::str::from_utf8(&output.stdout)?)?)
}

/// Applies an object, as `kubectl apply` would.
async fn apply(client: &kube::Client, object: &Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object.clone())?;
    let types = object.types.clone().unwrap_or_default();
    let kind = GroupVersionKind::try_from(&types)?;
    let (resource, capabilities) = kube::discovery::pinned_kind(client, &kind).await?;
    let name = object.metadata.name.clone().unwrap_or_default();
    let params = PatchParams::apply("kubectl").force();
    let api: Api<DynamicObject> = match (&object.metadata.namespace, capabilities.scope) {
        (Some(namespace), Scope::Namespaced) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
        _ => Api::all_with(client.clone(), &resource),
    };
    api.patch(&name, &params, &Patch::Apply(&object)).await?;
    Ok(())
}

fn shops(client: &kube::Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("demo.dev", "v1", "Shop");
    let resource = ApiResource::from_gvk(&kind);
    Api::namespaced_with(client.clone(), "default", &resource)
}

/// Waits until the shop's status says that all of it is available.
async fn opened(client: &kube::Client) -> Result<()> {
    let corner = WatchParams::default().fields("metadata.name=corner");
    let mut changes = shops(client).watch(&corner, "0").await?.boxed();
    while let Some(change) = changes.try_next().await? {
        if let WatchEvent::Added(shop) | WatchEvent::Modified(shop) = change
            && shop.data["status"]["available"] == 3
        {
            return Ok(());
        }
    }
    Err("the watch ended".into())
}

/// The program at work on a cluster.
struct Program {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(kubeconfig: &Path, filter: Option<&str>) -> Result<Self> {
        let mut command = shop();
        command.env("KUBECONFIG", kubeconfig).stdout(Stdio::piped());
        if let Some(filter) = filter {
            command.env("RUST_LOG", filter);
        }
        let mut child = command.spawn()?;
        let output = BufReader::new(child.stdout.take().ok_or("it has no output")?);
        Ok(Self { child, output })
    }

    /// The next line that it writes with these words in it; `None` if it ends before.
    async fn line_with(&mut self, words: &str) -> Result<Option<String>> {
        let mut line = String::new();
        while self.output.read_line(&mut line).await? > 0 {
            if line.contains(words) {
                return Ok(Some(line));
            }
            line.clear();
        }
        Ok(None)
    }

    /// Ends it, and gives what it wrote.
    async fn stop(mut self) -> Result<String> {
        self.child.kill().await?;
        let mut written = String::new();
        self.output.read_to_string(&mut written).await?;
        Ok(written)
    }
}

/// A cluster that has what was printed, and a kubeconfig for the account that is among it.
async fn deployed(manifests: &[Value]) -> Result<(Cluster, String)> {
    let cluster = Cluster::builder().listen(([127, 0, 0, 1], 0).into()).start().await?;
    let client = cluster.client();
    for object in manifests {
        apply(&client, object).await?;
    }
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client);
    let asked = TokenRequest::default();
    let answer = accounts.create_token_request("shop", &Default::default(), &asked).await?;
    let token = answer.status.and_then(|status| status.token).ok_or("there is no token")?;
    let administrator = &cluster.endpoint().ok_or("it listens")?.kubeconfig;
    let mut kubeconfig: Value = serde_saphyr::from_str(administrator)?;
    kubeconfig["users"][0]["user"] = json!({"token": token});
    Ok((cluster, kubeconfig.to_string()))
}

/// Asks for a shop.
async fn open(client: &kube::Client) -> Result<()> {
    let corner = json!({"apiVersion": "demo.dev/v1", "kind": "Shop",
        "metadata": {"name": "corner"}, "spec": {"replicas": 3}});
    shops(client).create(&Default::default(), &serde_json::from_value(corner)?).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_prints_allows_whatever_it_asks_for() -> Result<()> {
    let (cluster, kubeconfig) = deployed(&manifests().await?).await?;
    let folder = Folder::new("allowed")?;
    let kubeconfig = folder.write("kubeconfig", &kubeconfig)?;
    let program = Program::start(&kubeconfig, None)?;
    open(&cluster.client()).await?;
    timeout(PATIENCE, opened(&cluster.client())).await??;
    let written = program.stop().await?;
    assert!(!written.contains("DEBUG"), "{written}");
    assert!(!written.contains("forbidden"), "{written}");

    // It also tells as much as `RUST_LOG` asks for.
    let mut program = Program::start(&kubeconfig, Some("debug"))?;
    let line = timeout(PATIENCE, program.line_with("DEBUG")).await??;
    assert!(line.is_some(), "it ended without a debug line");
    program.stop().await?;
    cluster.stop().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_rule_that_it_prints_it_is_refused() -> Result<()> {
    let mut manifests = manifests().await?;
    let role = manifests.iter_mut().find(|object| object["kind"] == "ClusterRole");
    let rules = role.and_then(|role| role["rules"].as_array_mut()).ok_or("there are rules")?;
    rules.retain(|rule| rule["resources"] != json!(["shops/status"]));
    let (cluster, kubeconfig) = deployed(&manifests).await?;
    let folder = Folder::new("refused")?;
    let mut program = Program::start(&folder.write("kubeconfig", &kubeconfig)?, None)?;
    open(&cluster.client()).await?;
    let refused =
        "User \"system:serviceaccount:default:shop\" cannot patch resource \"shops/status\"";
    let line = timeout(PATIENCE, program.line_with("forbidden")).await??;
    // Quotes within a field of a log line are escaped.
    let line = line.unwrap_or_default().replace('\\', "");
    assert!(line.contains(refused), "{line}");
    program.stop().await?;
    cluster.stop().await;
    Ok(())
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self> {
        let name = format!("steersman-shop-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.0.join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
