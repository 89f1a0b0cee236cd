//! The program `steersman`, started as a user would.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use steersman::Error;
use tokio::time::{Duration, Instant};

/// `steersman up` on a free port, stopped when dropped.
pub(crate) struct Program {
    child: Child,
    started: Instant,
    kubeconfig: PathBuf,
    /// New with every start, and gone with the program.
    data: PathBuf,
}

impl Program {
    /// Starts `steersman up` and returns once it has printed where it is. Without `--memory` it
    /// keeps its data in a new directory.
    pub(crate) fn start(arguments: &[&str]) -> Result<Self, String> {
        let here = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = here.with_file_name("steersman");
        let place = std::env::temp_dir().join(format!("steersman-bench-{}", std::process::id()));
        let kubeconfig = place.with_extension("kubeconfig");
        let data = place.with_extension("data");
        let data_dir = [OsStr::new("--data-dir"), data.as_os_str()];
        let on_disk = !arguments.contains(&"--memory");
        let started = Instant::now();
        let mut child = Command::new(&program)
            .args(["up", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(arguments)
            .args(data_dir.iter().filter(|_| on_disk))
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(output).lines();
        let greeted = lines.by_ref().map_while(Result::ok).any(|line| line.contains("Ctrl-C"));
        if !greeted {
            return Err("steersman up ended before it was ready".into());
        }
        std::thread::spawn(move || lines.for_each(drop)); // keeps the pipe from filling up
        Ok(Self { child, started, kubeconfig, data })
    }

    /// A client of the program, over HTTPS.
    pub(crate) async fn client(&self) -> steersman::Result<kube::Client> {
        let kubeconfig = kube::config::Kubeconfig::read_from(&self.kubeconfig)?;
        let options = kube::config::KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        Ok(kube::Client::try_from(config)?)
    }

    /// The time from the start of the process until `/readyz` answered ok.
    pub(crate) async fn ready(&self) -> steersman::Result<Duration> {
        let client = self.client().await?;
        loop {
            let request = http::Request::get("/readyz").body(Vec::new())?;
            match client.request_text(request).await {
                Ok(text) if text.starts_with("ok") => return Ok(self.started.elapsed()),
                _ if self.started.elapsed() > Duration::from_secs(10) => {
                    return Err(Error::message("not ready after 10 s"));
                }
                _ => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    }

    /// How to reach the program.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The resident memory of the process, in megabytes.
    pub(crate) fn resident(&self) -> Result<f64, String> {
        resident(self.child.id())
    }

    /// How much time processors have spent on it.
    pub(crate) fn processor_time(&self) -> Result<Duration, String> {
        processor_time(self.child.id())
    }

    /// The most that it ever was.
    pub(crate) fn peak(&self) -> Result<f64, String> {
        peak(self.child.id())
    }
}

/// How much time processors have spent on a process.
pub(crate) fn processor_time(process: u32) -> Result<Duration, String> {
    let path = format!("/proc/{process}/stat");
    let stat = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    // The name, in parentheses, may contain anything.
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum::<u64>();
    Ok(Duration::from_millis(ticks * 10))
}

/// The resident memory of a process, in megabytes.
pub(crate) fn resident(process: u32) -> Result<f64, String> {
    memory(process, "VmRSS:")
}

/// What of that is its own, in megabytes. The rest are pages of files, above all of the program, which
/// others share and the kernel takes back when it needs them.
pub(crate) fn own(process: u32) -> Result<f64, String> {
    memory(process, "RssAnon:")
}

/// The most that it ever was.
pub(crate) fn peak(process: u32) -> Result<f64, String> {
    memory(process, "VmHWM:")
}

fn memory(process: u32, field: &str) -> Result<f64, String> {
    let path = format!("/proc/{process}/status");
    let status = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = status.lines().find(|line| line.starts_with(field));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1));
    let kilobytes: Option<f64> = kilobytes.and_then(|text| text.parse().ok());
    kilobytes.map(|kb| kb / 1024.0).ok_or_else(|| format!("{path} has no {field}"))
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.kubeconfig);
        let _ = fs::remove_dir_all(&self.data);
    }
}
