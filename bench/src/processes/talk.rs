//! Processes that are listened to, line by line; ended when dropped.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::wire::Line;

/// A process that says nothing for so long has failed.
const SILENCE_MAX: Duration = Duration::from_secs(300);

/// A running process.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a process; what it says on standard error is shown.
    pub(crate) fn start(mut command: Command) -> Result<Self, String> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = child.spawn().map_err(|error| format!("cannot start: {error}"))?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = child.stdout.take().ok_or("no output")?;
        Ok(Self { child, input, lines: BufReader::new(output).lines() })
    }

    /// What the process says next; `None` when it has ended well.
    pub(crate) async fn hear(&mut self) -> Result<Option<Line>, String> {
        let line = timeout(SILENCE_MAX, self.lines.next_line()).await;
        let line = line.map_err(|_| "the process has fallen silent")?;
        if let Some(line) = line.map_err(|error| error.to_string())? {
            let parsed = serde_json::from_str(&line);
            return parsed.map(Some).map_err(|error| format!("{line}: {error}"));
        }
        let status = self.child.wait().await.map_err(|error| error.to_string())?;
        if status.success() { Ok(None) } else { Err(format!("the process failed: {status}")) }
    }

    /// Gives the process a command.
    pub(crate) async fn tell(&mut self, line: &str) -> Result<(), String> {
        let line = format!("{line}\n");
        self.input.write_all(line.as_bytes()).await.map_err(|error| error.to_string())
    }
}
