//! cel-go, as Kubernetes compiles and runs the rules of a definition.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::measure::{System, TURN, Times};
use crate::object::schema;

/// A program that is asked a line at a time.
pub(crate) struct CelGo {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl CelGo {
    /// Builds the program where Go is installed, and starts it.
    pub(crate) fn start() -> Result<Self, String> {
        let here = std::env::current_exe().map_err(|error| error.to_string())?;
        let program = here.with_file_name("steersman-bench-cel-go");
        let built = Command::new("go")
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("go"))
            .args(["build", "-o"])
            .arg(&program)
            .arg(".")
            .status()
            .map_err(|error| format!("cannot run `go`: {error}"))?;
        if !built.success() {
            return Err("`go build` failed".to_owned());
        }
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start it: {error}"))?;
        let (questions, answers) = (child.stdin.take(), child.stdout.take());
        let questions = questions.ok_or("it takes no questions")?;
        let answers = BufReader::new(answers.ok_or("it gives no answers")?);
        Ok(Self { child, questions, answers })
    }

    fn ask(&mut self, question: &Value) -> Result<Value, String> {
        writeln!(self.questions, "{question}").map_err(|error| error.to_string())?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).map_err(|error| error.to_string())?;
        serde_json::from_str(&answer).map_err(|error| format!("{answer:?}: {error}"))
    }
}

impl System for CelGo {
    fn name(&self) -> &'static str {
        "cel-go"
    }

    fn measure(&mut self, rule: &str, object: &Value) -> Result<Times, String> {
        let turn = TURN.as_nanos() as u64;
        let answer = self.ask(
            &json!({"rule": rule, "schema": schema(), "object": object, "nanoseconds": turn}),
        )?;
        if let Some(why) = answer["error"].as_str() {
            return Err(why.to_owned());
        }
        let time = |name: &str| answer[name].as_f64().ok_or(format!("no `{name}` in {answer}"));
        Ok(Times { ready: time("ready")?, run: time("run")? })
    }
}

impl Drop for CelGo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
