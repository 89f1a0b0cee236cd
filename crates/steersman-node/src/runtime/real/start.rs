//! Starting a container: what it shares with others, its image, the container itself, and what it
//! does right after.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod};
use k8s_openapi::api::node::v1::RuntimeClass;
use steersman::events::{NewEvent, Reference};
use steersman::{Client, Error, Result, clock};

use super::config::{self, NewSandbox, spec_of};
use super::hooks::{self, Hooked};
use super::image_volumes::{self, Images};
use super::moments::Known;
use super::names::{Dns, DnsProblem};
use super::observe::{Parts, addresses, attempt_of, runs};
use super::places::Owner;
use super::pulls::{self, Found, IF_NOT_PRESENT, Wanted};
use super::starting::Starting;
use super::stops;
use super::{Shared, containers, described, locked, names, prepare, uid_of};
use crate::cri::CriError;
use crate::cri::wire::container::{ContainerState, CreateContainerRequest};
use crate::cri::wire::sandbox::{PodSandbox, PodSandboxConfig};
use crate::runtime::{Outcome, Start, StartError};

/// How long the runtime may take to start a container that somebody else has made.
const STARTING: SignedDuration = SignedDuration::from_secs(10);
/// The machine's own.
const RESOLVER: &str = "/etc/resolv.conf";
const HOSTS: &str = "/etc/hosts";

/// Starts a container.
pub(super) async fn start(
    shared: &Arc<Shared>,
    pod: &Pod,
    start: &Start,
    client: &Client,
) -> Result<Outcome> {
    let started = begin(shared, pod, start, client).await;
    match started {
        Ok(outcome) => Ok(outcome),
        Err(Stopped::Failed(why)) => Ok(Outcome::Failed { why, pulled: None }),
        Err(Stopped::Runtime(error)) => Err(error.into()),
        Err(Stopped::Unread(error)) => Err(error),
    }
}

/// Why a start did not come to its end.
enum Stopped {
    /// For a reason that people are told.
    Failed(StartError),
    /// The runtime does not answer.
    Runtime(CriError),
    /// The API server does not.
    Unread(Error),
}

impl From<CriError> for Stopped {
    fn from(error: CriError) -> Self {
        Self::Runtime(error)
    }
}

impl From<StartError> for Stopped {
    fn from(why: StartError) -> Self {
        Self::Failed(why)
    }
}

async fn begin(
    shared: &Arc<Shared>,
    pod: &Pod,
    start: &Start,
    client: &Client,
) -> std::result::Result<Outcome, Stopped> {
    let Some((container, target)) = spec_of(pod, &start.name) else {
        return Err(StartError::Config(format!("no container {:?}", start.name)).into());
    };
    if shared.network_waits.holds(shared, pod) {
        return Ok(Outcome::Waiting);
    }
    let volumes = prepare::volumes(shared, pod, client).await?;
    let secrets = pulls::secrets(shared, pod, client).await.map_err(Stopped::Unread)?;
    let turn = shared.turns.take().await;
    let parts = Parts::of(shared, uid_of(pod)).await?;
    let sandbox = sandbox(shared, pod, &parts, client).await?;
    let images = image_volumes::mount(shared, pod, &container, &volumes, &sandbox.config, &secrets);
    match images.await? {
        Images::Mounted => {}
        Images::Pulling => return Ok(Outcome::Waiting),
        Images::Failed(why) => return Err(why.into()),
    }
    let wanted = Wanted {
        container: &container.name,
        image: container.image.as_deref().unwrap_or_default(),
        policy: container.image_pull_policy.as_deref().unwrap_or(IF_NOT_PRESENT),
    };
    let found = pulls::image(shared, pod, wanted, &sandbox.config, &secrets).await?;
    let (image, pulled) = match found {
        Found::Here(image, pulled) => (image, pulled),
        Found::Pulling => return Ok(Outcome::Pulling),
        Found::Failed(why) => return Err(why.into()),
    };
    shared.pulls.used(uid_of(pod), &container.name);
    let target = match target_of(&parts, target.as_deref()) {
        Ok(target) => target,
        Err(why) => return Ok(Outcome::Failed { why, pulled }),
    };
    let addresses = &sandbox.addresses;
    let recursively = shared.cri.said().borrow().reads_only_recursively(&sandbox.handler);
    let found = prepare::Found { image, target, addresses, volumes: &volumes, recursively };
    let making = Making { pod, start, container: &container, sandbox: &sandbox, parts: &parts };
    let made = launch(shared, making, found).await;
    drop(turn);
    let done = match made {
        Ok(id) => follow(shared, pod, start, &container, &sandbox, &id).await,
        Err(stopped) => Err(stopped),
    };
    match done {
        Ok(()) => Ok(Outcome::Started { pulled }),
        Err(Stopped::Failed(why)) => Ok(Outcome::Failed { why, pulled }),
        Err(stopped) => Err(stopped),
    }
}

/// The container whose processes another is to see: the last of the name that it says. Whether that
/// can be done if it has ended, the runtime knows.
fn target_of(
    parts: &Parts,
    named: Option<&str>,
) -> std::result::Result<Option<String>, StartError> {
    let Some(name) = named.filter(|name| !name.is_empty()) else { return Ok(None) };
    match parts.all_named(name).next() {
        Some(found) => Ok(Some(found.id.clone())),
        None => Err(StartError::Config(format!("unable to find target container {name}"))),
    }
}

/// A container that is to be made.
#[derive(Clone, Copy)]
struct Making<'a> {
    pod: &'a Pod,
    start: &'a Start,
    container: &'a Container,
    sandbox: &'a Ready,
    /// What there was of the Pod when this was its turn.
    parts: &'a Parts,
}

/// Makes a container whose image is there, and lets it run.
async fn launch(
    shared: &Arc<Shared>,
    making: Making<'_>,
    found: prepare::Found<'_>,
) -> std::result::Result<String, Stopped> {
    let Making { pod, start, .. } = making;
    let id = create(shared, making, found).await?;
    run(shared, &Starting { uid: uid_of(pod), name: &start.name, attempt: start.attempt, id: &id })
        .await?;
    Ok(id)
}

/// Does what is to be done right after a start, to its end unless the Pod is to end before.
async fn follow(
    shared: &Arc<Shared>,
    pod: &Pod,
    start: &Start,
    container: &Container,
    sandbox: &Ready,
    id: &str,
) -> std::result::Result<(), Stopped> {
    let log = shared.places.log(pod, &container.name, start.attempt);
    containers::link(shared, pod, &container.name, &log, id);
    containers::prune(shared, pod, start).await;
    let hook = container.lifecycle.as_ref().and_then(|all| all.post_start.as_ref());
    let Some(hook) = hook else { return Ok(()) };
    let address = sandbox.addresses.first().map(String::as_str);
    let about = Reference::of(pod);
    let at = Hooked { container, id, address, pod: &about };
    let done = tokio::select! {
        done = hooks::run(shared, hook, &at) => done,
        () = shared.endings.told(uid_of(pod)) => Err("context canceled".to_owned()),
    };
    if let Err(why) = done {
        tracing::warn!(container = container.name, why, "the hook after a start failed");
        stops::stop(shared, pod, std::slice::from_ref(&start.name)).await?;
        return Err(StartError::PostStart(failed_hook(pod, container, hook, &why)).into());
    }
    Ok(())
}

/// What is said of a hook that failed.
fn failed_hook(pod: &Pod, container: &Container, hook: &LifecycleHandler, why: &str) -> String {
    let what = match (&hook.exec, &hook.http_get, &hook.sleep) {
        (Some(exec), ..) => {
            let command = exec.command.as_deref().unwrap_or_default().join(" ");
            format!("Exec lifecycle hook ([{command}])")
        }
        (None, Some(get), _) => {
            format!("HTTP lifecycle hook ({})", get.path.as_deref().unwrap_or_default())
        }
        (None, None, sleep) => {
            let seconds = sleep.as_ref().map_or(0, |sleep| sleep.seconds);
            format!("Sleep lifecycle hook ({seconds})")
        }
    };
    let (name, pod) = (&container.name, described(pod));
    format!("{what} for Container {name:?} in Pod {pod:?} failed - error: {why}")
}

/// Lets a container run that was made.
async fn run(shared: &Shared, starting: &Starting<'_>) -> std::result::Result<(), Stopped> {
    let unnoted = |error: io::Error| StartError::Config(error.to_string());
    starting.begin(&shared.places).map_err(unnoted)?;
    locked(&shared.seen).containers.insert(starting.id.to_owned(), Known::made());
    let answer = shared.cri.start_container(starting.id).await;
    let answer = match answer {
        // It may still be at it, or have been killed.
        Err(error @ (CriError::Absent { .. } | CriError::Deadline { .. })) => {
            return Err(error.into());
        }
        answer => answer,
    };
    starting.answered(&shared.places);
    answer.map_err(|error| match error {
        CriError::Refused { .. } => Stopped::Failed(StartError::Run(error.message())),
        error => Stopped::Runtime(error),
    })
}

/// A sandbox that containers can be started in.
struct Ready {
    id: String,
    config: PodSandboxConfig,
    addresses: Vec<String>,
    /// In which of the runtime's ways it runs.
    handler: String,
}

/// The Pod's sandbox, made if there is none.
async fn sandbox(
    shared: &Arc<Shared>,
    pod: &Pod,
    parts: &Parts,
    client: &Client,
) -> std::result::Result<Ready, Stopped> {
    let attempt_of = |one: &PodSandbox| one.metadata.as_ref().map_or(0, |it| it.attempt);
    let log_directory = shared.places.logs_of(&Owner::of(pod));
    let resolver = fs::read_to_string(RESOLVER).unwrap_or_default();
    let Dns { config: dns, problems } = names::dns(pod, &shared.ground.dns, &resolver);
    let new = |attempt| NewSandbox {
        attempt,
        log_directory: log_directory.display().to_string(),
        cgroup_parent: shared.cgroups.parent(pod),
        dns,
    };
    if let Some(current) = parts.current() {
        let config = config::sandbox(pod, &shared.ground, new(attempt_of(current)));
        let config = config.map_err(StartError::Sandbox)?;
        let addresses = addresses(shared, &current.id).await?;
        let (id, handler) = (current.id.clone(), current.runtime_handler.clone());
        return Ok(Ready { id, config, addresses, handler });
    }
    // What is left of the one before would keep its ports and its addresses.
    for old in &parts.sandboxes {
        shared.cri.stop_sandbox(&old.id).await?;
    }
    let unmade = |error: io::Error| StartError::Sandbox(error.to_string());
    // First of all: what has one is known to be ours.
    fs::create_dir_all(shared.places.of_pod(uid_of(pod))).map_err(unmade)?;
    shared.cgroups.make(pod).map_err(unmade)?;
    fs::create_dir_all(&log_directory).map_err(unmade)?;
    let attempt = parts.sandboxes.first().map_or(0, |old| attempt_of(old).saturating_add(1));
    let config = config::sandbox(pod, &shared.ground, new(attempt)).map_err(StartError::Sandbox)?;
    let handler = handler(pod, client).await?;
    tell(shared, pod, &problems);
    locked(&shared.wound_down).remove(uid_of(pod));
    let id = match shared.cri.run_sandbox(config.clone(), handler.clone()).await {
        Ok(id) => id,
        Err(error @ CriError::Absent { .. }) => return Err(error.into()),
        Err(error) => return Err(StartError::Sandbox(error.to_string()).into()),
    };
    let addresses = addresses(shared, &id).await?;
    Ok(Ready { id, config, addresses, handler })
}

/// Tells whom a Pod does not ask for names although it is said to.
fn tell(shared: &Shared, pod: &Pod, problems: &[DnsProblem]) {
    for problem in problems {
        let event =
            NewEvent::warning(problem.reason()).action("Creating").note(problem.to_string());
        let event = match problem {
            DnsProblem::NoClusterDns => {
                shared.recorder.event(&shared.node(), event.clone());
                event.note(format!("pod: {:?}. {problem}", described(pod)))
            }
            DnsProblem::Servers(_) | DnsProblem::Searches(_) => event,
        };
        shared.recorder.event(pod, event);
    }
}

/// Which of the runtime's ways to run a Pod its class names.
async fn handler(pod: &Pod, client: &Client) -> std::result::Result<String, StartError> {
    let class = pod.spec.as_ref().and_then(|spec| spec.runtime_class_name.as_deref());
    let Some(class) = class.filter(|class| !class.is_empty()) else { return Ok(String::new()) };
    match client.get::<RuntimeClass>(class).await {
        Ok(Some(found)) => Ok(found.handler),
        Ok(None) => Err(StartError::Sandbox(format!(
            "failed to get sandbox runtime: RuntimeClass {class:?} not found"
        ))),
        Err(error) => Err(StartError::Sandbox(error.to_string())),
    }
}

async fn create(
    shared: &Arc<Shared>,
    making: Making<'_>,
    found: prepare::Found<'_>,
) -> std::result::Result<String, Stopped> {
    let Making { pod, start, container, sandbox, parts } = making;
    files(shared, pod, container, start, sandbox)
        .map_err(|error| StartError::Config(error.to_string()))?;
    let prepared = prepare::prepare(shared, pod, container, start, found)?;
    let config = config::container(pod, container, start.attempt, &shared.ground, prepared);
    let config = config.map_err(StartError::Config)?;
    make_way(shared, pod, start, parts).await?;
    let request = CreateContainerRequest {
        pod_sandbox_id: sandbox.id.clone(),
        config: Some(config),
        sandbox_config: Some(sandbox.config.clone()),
    };
    shared.cri.create_container(request).await.map_err(|error| match error {
        CriError::Absent { .. } => Stopped::Runtime(error),
        error => Stopped::Failed(StartError::Create(error.message())),
    })
}

/// Removes what still has the name of a container that is to be made: one that was made and never
/// started. An agent that was killed may have begun to start it, and the runtime may still be at it:
/// who removed it then would kill what is about to run.
async fn make_way(
    shared: &Shared,
    pod: &Pod,
    start: &Start,
    parts: &Parts,
) -> std::result::Result<(), CriError> {
    // Nobody else makes containers of this Pod, but for an agent before this one.
    let alone = clock::now().duration_since(shared.started) > STARTING;
    if alone && parts.all_named(&start.name).next().is_none() {
        return Ok(());
    }
    let parts = Parts::of(shared, uid_of(pod)).await?;
    for left in parts.all_named(&start.name) {
        let is_made = left.state == i32::from(ContainerState::Created);
        if !is_made && attempt_of(left) != start.attempt {
            continue;
        }
        if runs(left) || is_made && is_recent(shared, left.created_at) {
            return Err(CriError::Starting { container: left.id.clone() });
        }
        shared.cri.remove_container(&left.id).await?;
    }
    Ok(())
}

/// Whether what was made at this time, by the system's clock, may still be about to start. If that
/// clock was set back since, all that is known is that it was made before this agent was started.
fn is_recent(shared: &Shared, created_at: i64) -> bool {
    let created = Timestamp::from_nanosecond(created_at.into()).unwrap_or_default();
    let age = clock::of_system().duration_since(created);
    let known = clock::now().duration_since(shared.started);
    if age.is_negative() { known < STARTING } else { age < STARTING }
}

/// Makes the files and directories that a container is given.
fn files(
    shared: &Shared,
    pod: &Pod,
    container: &Container,
    start: &Start,
    sandbox: &Ready,
) -> io::Result<()> {
    let places = &shared.places;
    let words = places.last_words(uid_of(pod), &start.name, start.attempt);
    if let Some(directory) = words.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(&words, "")?;
    // Whoever the container is, it may say why it ends.
    fs::set_permissions(&words, fs::Permissions::from_mode(0o666))?;
    let log = places.log(pod, &container.name, start.attempt);
    if let Some(directory) = log.parent() {
        fs::create_dir_all(directory)?;
    }
    let of_machine = fs::read_to_string(HOSTS).unwrap_or_default();
    let domain = &shared.ground.dns.domain;
    let hosts = names::hosts(pod, &sandbox.addresses, &of_machine, domain);
    fs::write(places.hosts(uid_of(pod)), hosts)
}

#[cfg(test)]
mod tests {
    use super::super::labels::CONTAINER_NAME;
    use super::*;
    use crate::cri::wire::container::Container as Listed;

    #[test]
    fn a_target_is_the_last_of_its_name_whether_it_runs_or_not() {
        let listed = |name: &str, id: &str, state: ContainerState| Listed {
            id: id.to_owned(),
            state: state.into(),
            labels: [(CONTAINER_NAME.to_owned(), name.to_owned())].into(),
            ..Listed::default()
        };
        let containers = vec![
            listed("other", "id3", ContainerState::Running),
            listed("main", "id2", ContainerState::Exited),
            listed("main", "id1", ContainerState::Running),
        ];
        let parts = Parts { sandboxes: Vec::new(), containers };
        assert_eq!(target_of(&parts, None), Ok(None));
        assert_eq!(target_of(&parts, Some("")), Ok(None));
        assert_eq!(target_of(&parts, Some("main")), Ok(Some("id2".into())));
        let why = target_of(&parts, Some("absent")).unwrap_err();
        assert_eq!(why.to_string(), "unable to find target container absent");
        assert_eq!(why.reason(), Some("CreateContainerConfigError"));
    }
}
