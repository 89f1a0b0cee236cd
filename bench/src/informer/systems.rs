//! What is compared, and how each is started.

use std::path::PathBuf;

use tokio::process::Command;

use crate::go;

/// A system under test.
#[derive(Clone)]
pub(crate) struct System {
    /// Its name in reports.
    pub(crate) name: &'static str,
    /// Whether it has an informer.
    pub(crate) informer: bool,
    /// Whether it has a work queue.
    pub(crate) queue: bool,
    /// Whether it is the plain map that reads are compared with.
    pub(crate) map: bool,
    program: PathBuf,
    /// Whether it is part of this program, which has to be told who to be.
    ours: bool,
    /// Variables of its environment.
    settings: &'static [(&'static str, &'static str)],
}

/// Every system that can be measured here; says which cannot.
pub(crate) fn all() -> Result<Vec<System>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let ours = System {
        name: "steersman",
        informer: true,
        queue: true,
        map: false,
        program,
        ours: true,
        settings: &[],
    };
    let typed = System { name: "steersman-typed", queue: false, ..ours.clone() };
    let kube_runtime = System { name: "kube-runtime", queue: false, ..ours.clone() };
    let map = System { name: "hash-map", informer: false, map: true, ..kube_runtime.clone() };
    let mut systems = vec![ours.clone(), typed, kube_runtime];
    match go::build("go", go::RIVALS) {
        Ok(program) => systems.extend(client_go(&System { program, ours: false, ..ours })),
        Err(reason) => eprintln!("informer: client-go was not measured: {reason}"),
    }
    systems.push(map);
    Ok(systems)
}

/// client-go as it comes, which streams its first list, and told to list and then watch: with
/// JSON, which it reads several times over in a stream, that is the faster way.
fn client_go(program: &System) -> [System; 2] {
    let settings = &[("KUBE_FEATURE_WatchListClient", "false")];
    let streaming = System { name: "client-go", ..program.clone() };
    let listing = System { name: "client-go-list", queue: false, settings, ..program.clone() };
    [streaming, listing]
}

impl System {
    /// The command that measures: what (`informer`, `queue`, `map`) and how much.
    pub(crate) fn command(&self, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.program);
        command.envs(self.settings.iter().copied());
        let mut arguments = arguments.to_vec();
        if self.ours {
            command.arg("child");
            if arguments.first().is_some_and(|what| what == "informer") {
                arguments.insert(1, self.name.to_owned());
            }
        }
        command.args(arguments);
        command
    }
}
