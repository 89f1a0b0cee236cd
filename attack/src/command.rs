//! The command lines.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::attacks::{ATTACKS, Attack, Run};
use crate::field::Field;
use crate::seen::Seen;
use crate::soak::Soak;
use crate::suite::{self, Suite};
use crate::verdict;

/// Attacks the program `steersman` and says what it withstood.
#[derive(Parser)]
struct AttackLine {
    /// Only these attacks; all else.
    names: Vec<String>,
    /// Small counts, and no goals for times: for the tests.
    #[arg(long)]
    short: bool,
    /// Keep the cluster in an etcd, which is started.
    #[arg(long)]
    etcd: bool,
    /// The program to attack [default: the one beside this].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Only say which attacks there are.
    #[arg(long)]
    list: bool,
    /// Be the attacker of this name; started by this program itself.
    #[arg(long, hide = true, requires = "address")]
    as_attacker: Option<String>,
    #[arg(long, hide = true)]
    address: Option<String>,
    #[arg(long, hide = true)]
    kubeconfig: Option<PathBuf>,
}

/// Lets load, churn, watches and kills happen together, and says whether memory stays flat and
/// nothing is lost.
#[derive(Parser)]
struct SoakLine {
    /// For how long.
    #[arg(long, value_name = "N", default_value_t = 30.0)]
    minutes: f64,
    /// The program to run [default: the one beside this].
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Runs what the command line names.
pub(crate) fn attack() -> ExitCode {
    let line = AttackLine::parse();
    ended(block_on(attack_by(line)))
}

/// Runs the soak.
pub(crate) fn soak() -> ExitCode {
    let line = SoakLine::parse();
    let soak = async move {
        let program = line.program.map_or_else(suite::beside, Ok)?;
        Soak { program, minutes: line.minutes }.run().await
    };
    ended(block_on(soak))
}

async fn attack_by(line: AttackLine) -> Result<(), String> {
    if let Some(name) = line.as_attacker {
        let address = line.address.unwrap_or_default();
        let kubeconfig = line.kubeconfig.unwrap_or_default();
        let field = Field::new(&address, &kubeconfig, line.short);
        return be_attacker(&name, field).await;
    }
    if line.list {
        ATTACKS.iter().for_each(|attack| println!("{}", attack.name));
        return Ok(());
    }
    let program = line.program.map_or_else(suite::beside, Ok)?;
    let suite = Suite { program, short: line.short, etcd: line.etcd };
    run(&suite, &chosen(&line.names, line.short)?).await
}

/// The attacks that are named, or all.
fn chosen(names: &[String], short: bool) -> Result<Vec<&'static Attack>, String> {
    let known = |name: &&String| ATTACKS.iter().any(|attack| attack.name == name.as_str());
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let all: Vec<&str> = ATTACKS.iter().map(|attack| attack.name).collect();
        return Err(format!("there is no attack `{unknown}`; there are {}", all.join(", ")));
    }
    let named = |attack: &Attack| names.iter().any(|name| name == attack.name);
    let all = names.is_empty();
    let wanted = |attack: &&Attack| named(attack) || all && !(short && attack.only_full);
    Ok(ATTACKS.iter().filter(wanted).collect())
}

async fn run(suite: &Suite, attacks: &[&'static Attack]) -> Result<(), String> {
    println!("{}", verdict::header());
    let mut failed = Vec::new();
    for attack in attacks {
        // What starts its own programs has its own storage.
        if suite.etcd && matches!(attack.run, Run::Owns(_)) {
            continue;
        }
        match suite.run(attack).await {
            Ok(row) => {
                println!("{}", row.described());
                let faults = row.faults();
                for fault in &faults {
                    println!("{:<21} ! {fault}", "");
                }
                for note in &row.seen.notes {
                    println!("{:<21} - {note}", "");
                }
                failed.extend((!faults.is_empty()).then_some(attack.name));
            }
            Err(why) => {
                println!("{:<21} cannot be tried: {why}", attack.name);
                failed.push(attack.name);
            }
        }
    }
    let count = attacks.len();
    match failed.len() {
        0 => {
            println!("all of {count} attacks withstood");
            Ok(())
        }
        some => Err(format!("{some} of {count} attacks not withstood: {}", failed.join(", "))),
    }
}

async fn be_attacker(name: &str, field: Field) -> Result<(), String> {
    let attack = ATTACKS.iter().find(|attack| attack.name == name);
    let Some(Attack { run: Run::Sends(run), .. }) = attack else {
        return Err(format!("there is no attacker `{name}`"));
    };
    let seen = run(field).await.unwrap_or_else(|why| {
        let mut seen = Seen::default();
        seen.fault(why);
        seen
    });
    let line = serde_json::to_string(&seen).map_err(|error| error.to_string())?;
    println!("{line}");
    Ok(())
}

fn block_on(work: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| error.to_string())?.block_on(work)
}

fn ended(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attacks_are_chosen_by_name() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(chosen(&names(&["paths"]), true).unwrap().len(), 1);
        assert!(chosen(&names(&["nonsense"]), true).err().unwrap().contains("paths"));
        let short = chosen(&[], true).unwrap().len();
        assert!(short < chosen(&[], false).unwrap().len());
        assert!(chosen(&names(&["idle-http2"]), true).unwrap().len() == 1, "what is named runs");
    }

    #[test]
    fn every_attack_has_a_name_of_its_own() {
        let mut names: Vec<&str> = ATTACKS.iter().map(|attack| attack.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ATTACKS.len());
    }
}
