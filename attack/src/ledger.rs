//! A record of what was acknowledged, kept outside the server: whatever happens to the process,
//! each value must be at least the last that was acknowledged and at most the last that was tried.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::time::{Duration, Instant};

use crate::caller::{Answer, Ask, Caller, ask_over};
use crate::field::config_maps;

/// What is known of each object.
#[derive(Clone, Default)]
pub(crate) struct Ledger {
    entries: Arc<Mutex<BTreeMap<String, Entry>>>,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    acknowledged: u64,
    tried: u64,
}

/// Who writes, how much, and until when.
#[derive(Clone)]
pub(crate) struct Writer {
    pub(crate) caller: Caller,
    /// Told from other writers by this.
    pub(crate) number: usize,
    /// How many objects it has.
    pub(crate) objects: usize,
    /// How large they are.
    pub(crate) bytes: usize,
    pub(crate) until: Instant,
    /// How long it rests between two writes.
    pub(crate) rest: Duration,
}

impl Ledger {
    /// Writes until the time is over or the server is gone; says how many were acknowledged.
    pub(crate) async fn write(self, writer: Writer) -> u64 {
        let padding = "x".repeat(writer.bytes);
        let mut acknowledged = 0;
        let Ok(mut connection) = writer.caller.connect().await else { return 0 };
        for turn in 0.. {
            if Instant::now() >= writer.until {
                break;
            }
            let name = format!("ledger-{}-{}", writer.number, turn % writer.objects);
            let (number, exists) = self.next(&name);
            let object = entry(&name, number, &padding);
            let ask = match exists {
                true => Ask::put(format!("{}/{name}", config_maps()), &object),
                false => Ask::post(config_maps(), &object),
            };
            let Ok(answer) = ask_over(&mut connection, &ask).await else { break };
            // A first write may have been done although nobody said so.
            if answer.is_good() || answer.status == 409 {
                self.acknowledge(&name, if answer.is_good() { number } else { 0 });
                acknowledged += u64::from(answer.is_good());
            }
            tokio::time::sleep(writer.rest).await;
        }
        acknowledged
    }

    /// What is lost, or was never written, of everything that was acknowledged.
    pub(crate) async fn losses(&self, caller: &Caller) -> Result<Vec<String>, String> {
        let entries = self.entries.lock().expect("nobody panics with it").clone();
        let mut connection = caller.connect().await?;
        let mut losses = Vec::new();
        for (name, Entry { acknowledged, tried }) in entries {
            let ask = Ask::get(format!("{}/{name}", config_maps()));
            let answer = ask_over(&mut connection, &ask).await?;
            let found = number(&answer);
            let expected = acknowledged..=tried;
            if !expected.contains(&found) {
                losses.push(format!("{name}: {found} is there, acknowledged were {expected:?}"));
            }
        }
        Ok(losses)
    }

    /// How many writes were acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        let entries = self.entries.lock().expect("nobody panics with it");
        entries.values().map(|entry| entry.acknowledged).sum()
    }

    fn next(&self, name: &str) -> (u64, bool) {
        let mut entries = self.entries.lock().expect("nobody panics with it");
        let known = entries.contains_key(name);
        let entry = entries.entry(name.to_owned()).or_default();
        entry.tried += 1;
        (entry.tried, known)
    }

    fn acknowledge(&self, name: &str, number: u64) {
        let mut entries = self.entries.lock().expect("nobody panics with it");
        let entry = entries.entry(name.to_owned()).or_default();
        entry.acknowledged = entry.acknowledged.max(number);
    }
}

fn entry(name: &str, number: u64, padding: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
        "data": {"number": number.to_string(), "padding": padding},
    })
}

/// The number that an object has; zero if it is not there.
fn number(answer: &Answer) -> u64 {
    let document = answer.document();
    let text = document.pointer("/data/number").and_then(Value::as_str);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
